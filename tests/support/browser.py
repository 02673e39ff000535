"""A headless Chromium for tests, driven over its debugging pipe: no driver, no port, no other package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-extensions --disable-dev-shm-usage --hide-scrollbars "
    "--remote-debugging-pipe about:blank"
).split()


def find_browser() -> str | None:
    return next((path for path in map(shutil.which, NAMES) if path is not None), None)


class Browser:
    """One browser with one page. Use it as a context: it ends with the block."""

    def __init__(self, program: str, profile: Path, patience: float = 40.0):
        self.patience = patience
        self.events: list[dict[str, Any]] = []
        self.waiting = b""
        self.last = 0
        self.session = self.address = ""
        to_read, self.to = os.pipe()
        self.back, to_write = os.pipe()
        command = ["bash", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "bash", program, f"--user-data-dir={profile}"]
        self.process = subprocess.Popen(
            [*command, *FLAGS],
            pass_fds=(to_read, to_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)

    def __enter__(self) -> Browser:
        page = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.back)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol; events that come meanwhile are kept."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._message()
            if answer.get("id") == self.last:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self.events.append(answer)

    def _message(self) -> dict[str, Any]:
        until = time.monotonic() + self.patience
        while b"\0" not in self.waiting:
            ready, _, _ = select.select([self.back], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self.back, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self.waiting += part
        found, _, self.waiting = self.waiting.partition(b"\0")
        return json.loads(found)

    def open(self, page: Path | str, width: int, height: int = 900, dark: bool = False, touch: bool = False) -> None:
        """Load a page, a file or an address, at a width; returns when it is drawn."""
        self.events.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=touch)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.address = page if isinstance(page, str) else page.resolve().as_uri()
        self.call("Page.navigate", url=self.address)
        until = time.monotonic() + self.patience
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            assert time.monotonic() < until, "the page does not load"
            self.events.append(self._message())

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is waited for."""
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings on the console since the page was opened."""
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(event["params"]["exceptionDetails"].get("text")))
            elif event.get("method") == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            elif event.get("method") == "Runtime.consoleAPICalled":
                found.append(str(event["params"]["args"]))
        return found

    def requests(self) -> list[str]:
        """What the page asked for, itself and data inside it left out."""
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return [url for url in asked if url != self.address and not url.startswith("data:")]

    def screenshot(self, path: Path, whole: bool = False) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))
