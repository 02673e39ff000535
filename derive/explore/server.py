"""A local web server for the page, reachable from this machine only."""

from __future__ import annotations

import ipaddress
import logging
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document
from bokeh.server.server import Server
from bokeh.settings import settings

from derive.errors import DeriveError
from derive.explore.page import Page
from derive.explore.points import Explorer, Wish

HERE = str(ipaddress.IPv4Address(socket.INADDR_LOOPBACK))
"""The loopback address."""


def free_port(wanted: int) -> int:
    """Return the port if it is free; any free one for 0."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HERE, wanted))
        except OSError as error:
            raise DeriveError(f"port {wanted} cannot be used ({error.strerror}); give another with --port") from None
        return int(probe.getsockname()[1])


def serve(explorer: Explorer, start: Wish, port: int, ready: Callable[[str, Any], None]) -> None:
    """Serve until interrupted; call `ready` with the address and the server's event loop once it listens."""
    logging.getLogger("bokeh").setLevel(logging.ERROR)  # a page that was closed while a point was solved is no news
    settings.resources = "server"  # scripts and styles from this process: the page asks nobody else
    pool = ThreadPoolExecutor(1)

    def page(document: Document) -> None:
        Page(document, explorer, start, pool)

    server = Server(
        {"/": Application(FunctionHandler(page))},
        port=port,
        address=HERE,
        allow_websocket_origin=[f"{HERE}:{port}"],
    )
    try:
        server.start()
        ready(f"http://{HERE}:{port}/", server.io_loop)
        server.io_loop.start()
    finally:
        server.stop()
        pool.shutdown(wait=False, cancel_futures=True)
