"""The page, with a slider for each parameter and figures that follow them, and its server on this machine only.

Bokeh synchronises widgets and figures between browser and process. Points are solved in a thread, one after the other;
after each the latest position of the sliders is solved next.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import escape
from typing import Any

from bokeh.application import Application
from bokeh.application.handlers.function import FunctionHandler
from bokeh.document import Document, without_document_lock
from bokeh.models import (
    Button,
    Column,
    ColumnDataSource,
    CustomJS,
    CustomJSTickFormatter,
    Div,
    HoverTool,
    PreText,
    Select,
    Slider,
    UIElement,
)
from bokeh.plotting import figure
from bokeh.server.server import Server
from bokeh.settings import settings
from jinja2 import Template

from derive.errors import DeriveError
from derive.explore.points import (
    Explorer,
    Range,
    Shown,
    Wish,
    density_of,
    eigenvalue_of,
    histogram_of,
    observables_of,
    outliers_of,
    path_of,
    slider_range,
)
from derive.language.family import Choice, Family
from numerics.support.formatting import shown_number

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#bbbbbb"
COLOURS = (BLUE, ORANGE, "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
SIZES = {"no simulation": None, "simulate, size 200": 200, "simulate, size 400": 400, "simulate, size 1000": 1000}
TITLES = "label, .bk-slider-title { white-space: normal; overflow-wrap: anywhere; }"
WRAPPED = "pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0; }"
PAGE = Template(
    """{% extends base %}
{% block inner_head %}{{ super() }}
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  body { margin: 12px; font-family: sans-serif; }
  .page, .pictures { display: flex; flex-wrap: wrap; gap: 16px; align-items: flex-start; }
  .controls { flex: 1 1 280px; max-width: 360px; }
  .pictures { flex: 3 1 320px; min-width: 0; }
  .pictures > div { flex: 1 1 320px; min-width: 0; }
</style>
{% endblock %}
{% block contents %}
<div class="page">
  <div class="controls">{{ embed(roots.controls) }}</div>
  <div class="pictures">
    {% for name in ("spectrum", "way", "observables", "lines") %}<div>{{ embed(roots[name]) }}</div>{% endfor %}
  </div>
</div>
{% endblock %}"""
)


class Page:
    """The page of one visitor."""

    def __init__(self, document: Document, explorer: Explorer, start: Wish, pool: ThreadPoolExecutor) -> None:
        self.document, self.explorer, self.pool = document, explorer, pool
        self.choices, self.values = dict(start.choices), dict(start.values)
        self.busy = False
        self.shown: Shown | None = None
        self.status = Div(text="solving ...", name="status", sizing_mode="stretch_width")
        self.numbers = Div(text="", name="numbers", sizing_mode="stretch_width")
        self.command, self.python = (
            PreText(text="", name=name, sizing_mode="stretch_width", stylesheets=[WRAPPED])
            for name in ("command", "python")
        )
        self.size = Select(
            title="beside the theory",
            options=list(SIZES),
            value="no simulation",
            name="size",
            sizing_mode="stretch_width",
        )
        self.size.on_change("value", lambda attr, old, new: self._moved())
        self.layer = Select(title="layer", options=[], value="", name="layer", visible=False)
        self.layer.on_change("value", lambda attr, old, new: self.redraw())
        self.sliders = Column(sizing_mode="stretch_width")
        self.pictures = Pictures()
        self._lay_out()
        self._make_sliders()
        self._moved()

    # -- controls

    def _lay_out(self) -> None:
        controls = Column(
            Div(text=f"<h2 style='margin:0'>{escape(self.explorer.target)}</h2>"),
            self.sliders,
            self.size,
            self.layer,
            self.status,
            self.numbers,
            name="controls",
            sizing_mode="stretch_width",
        )
        lines = Column(
            Div(text="<b>this point in the shell</b>"),
            self.command,
            _copy_button(self.command),
            Div(text="<b>this point in Python</b>"),
            self.python,
            _copy_button(self.python),
            name="lines",
            sizing_mode="stretch_width",
        )
        for root in (controls, *self.pictures.figures, lines):
            self.document.add_root(root)
        self.document.title = f"{self.explorer.target} - derive explore"
        self.document.template = PAGE

    def _make_sliders(self) -> None:
        """Create a control for each choice and parameter of the chosen model."""
        theory = self.explorer.theory(tuple(self.choices.items()))
        controls: list[UIElement] = []
        if isinstance(theory.declared, Family):
            for name, choice in theory.declared.choices:
                controls.append(self._choice(name, choice))
        for parameter in theory.parameters:
            if parameter.name in self.explorer.fixed:
                continue
            value = self.values.setdefault(parameter.name, parameter.default)
            reach = slider_range(parameter.domain, value)
            slider = _slider(parameter.name, parameter.doc, reach, value)
            slider.on_change("value", self._slid(parameter.name, reach))
            controls.append(slider)
        self.values = {p.name: self.values[p.name] for p in theory.parameters if p.name in self.values}
        self.sliders.children = controls
        labels = [label for label, _ in theory.model.probes if label]
        self.layer.update(options=labels, value=labels[0] if labels else "", visible=len(labels) > 1)

    def _choice(self, name: str, choice: Choice) -> UIElement:
        value = self.choices.setdefault(name, choice.default)
        title = f"{name}: {choice.doc}" if choice.doc else name
        if choice.offered:
            words = list(choice.offered)
            options = list(dict.fromkeys([*words, str(value)]))
            select = Select(
                title=title,
                options=options,
                value=str(value),
                name=name,
                sizing_mode="stretch_width",
                stylesheets=[TITLES],
            )
            select.on_change("value", lambda attr, old, new: self._chosen(name, new))
            return select
        slider = _slider(name, choice.doc, slider_range(choice.allowed, float(value)), float(value))
        slider.on_change("value_throttled", lambda attr, old, new: self._chosen(name, int(new)))
        return slider

    def _chosen(self, name: str, value: int | str) -> None:
        """Switch to another member of the family, with other equations and possibly other parameters."""
        before = dict(self.choices)
        self.choices[name] = value
        try:
            self._make_sliders()
        except DeriveError as error:
            self.choices = before
            self._make_sliders()
            self.status.text = _warning(f"no result: {error}")
            return
        self._moved()

    def _slid(self, name: str, reach: Range) -> Callable[[str, float, float], None]:
        def slid(attr: str, old: float, new: float) -> None:
            self.values[name] = reach.value(new)
            self._moved()

        return slid

    # -- work

    @property
    def wish(self) -> Wish:
        return Wish(tuple(self.choices.items()), tuple(self.values.items()), SIZES[self.size.value])

    def _moved(self) -> None:
        wish = self.wish
        self.command.text, self.python.text = self.explorer.command(wish), self.explorer.python(wish)
        if not self.busy:
            self.busy = True
            self.status.text = "solving ..."
            self.document.add_next_tick_callback(self._work())

    def _work(self) -> Callable[[], Any]:
        async def work() -> None:
            loop = asyncio.get_running_loop()
            wish = None
            while wish != self.wish:
                wish = self.wish
                shown = await loop.run_in_executor(self.pool, self.explorer.shown, wish)
                self.document.add_next_tick_callback(partial(self._arrived, shown))
            self.busy = False

        return without_document_lock(work)

    # -- pictures

    def _arrived(self, shown: Shown) -> None:
        self.shown = shown
        self.redraw()

    def redraw(self) -> None:
        if self.shown is None:
            return
        shown, label = self.shown, self.layer.value or None
        diverged = shown.solution is None or shown.solution.failed
        before = "no result: " if diverged else "not to be trusted: "
        words = _warning(before + shown.trouble) if shown.trouble else "solved"
        self.status.text = f"{words} ({shown.seconds:.2f} s)"
        self.numbers.text = "" if diverged else _numbers(shown)
        self.pictures.show(shown, label)
        self.pictures.name_eigenvalues(eigenvalue_of(self.explorer.theory(tuple(self.choices.items())).model, label))


def _warning(sentence: str) -> str:
    return f"<span style='color:{ORANGE}'>{escape(sentence)}</span>"


def _numbers(shown: Shown) -> str:
    """Return edges and outliers as text."""
    assert shown.solution is not None
    lines = []
    for layer in shown.solution.layers:
        where = f" of layer {layer.label}" if layer.label else ""
        edges = ", ".join(f"[{shown_number(a)}, {shown_number(b)}]" for a, b in layer.bulk_edges)
        outliers = ", ".join(shown_number(value) for value in layer.outliers[:6])
        lines += [f"bulk{where}: {edges or 'none'}", f"outliers{where}: {outliers or 'none'}"]
    return "<br>".join(map(escape, lines))


def _slider(name: str, doc: str, reach: Range, value: float) -> Slider:
    """Return a slider over its range, widened to include its initial value."""
    place = reach.position(value)
    slider = Slider(
        start=min(reach.low, place),
        end=max(reach.high, place),
        value=place,
        step=reach.step,
        title=f"{name}: {doc}" if doc else name,
        name=name,
        sizing_mode="stretch_width",
        stylesheets=[TITLES],
    )
    if reach.log:
        slider.format = CustomJSTickFormatter(code="return String(Number(Math.pow(10, tick).toPrecision(4)))")
    elif not reach.whole:
        slider.format = CustomJSTickFormatter(code="return String(Number(tick.toPrecision(4)))")
    return slider


def _copy_button(text: PreText) -> Button:
    button = Button(label="copy", width=70, height=28)
    button.js_on_click(CustomJS(args={"text": text}, code="navigator.clipboard.writeText(text.text)"))
    return button


class Pictures:
    """Three figures whose data are replaced at each point."""

    def __init__(self) -> None:
        self.density = ColumnDataSource({"x": [], "y": []})
        self.bars = ColumnDataSource({"top": [], "left": [], "right": []})
        self.outliers = ColumnDataSource({"x": [], "y": [], "top": []})
        self.path = ColumnDataSource({"t": [], "x": []})
        self.edges = ColumnDataSource({"t": [], "low": [], "high": []})
        self.theory = ColumnDataSource({"xs": [], "ys": [], "name": [], "colour": []})
        self.drawn = ColumnDataSource({"t": [], "y": [], "colour": []})
        spectrum = _figure("spectrum", "bulk and outliers", "eigenvalue", "density")
        spectrum.quad(
            top="top", bottom=0, left="left", right="right", source=self.bars, color=GREY, legend_label="simulation"
        )
        spectrum.varea(x="x", y1=0, y2="y", source=self.density, color=BLUE, alpha=0.25)
        spectrum.line("x", "y", source=self.density, color=BLUE, width=2, legend_label="bulk")
        spectrum.segment("x", 0, "x", "top", source=self.outliers, color=ORANGE, width=2)
        marks = spectrum.scatter(
            "x", "top", source=self.outliers, color=ORANGE, size=9, marker="triangle", legend_label="outliers"
        )
        spectrum.add_tools(HoverTool(renderers=[marks], tooltips=[("outlier", "@x{0.00000}")]))
        path = _figure("way", "outliers over time", "time", "eigenvalue")
        band = {"color": BLUE, "alpha": 0.2, "legend_label": "bulk"}
        path.vbar(x="t", width=1.0, bottom="low", top="high", source=self.edges, **band)
        path.scatter("t", "x", source=self.path, color=ORANGE, size=5, legend_label="outliers")
        series = _figure("observables", "observables", "time", "value")
        series.multi_line("xs", "ys", source=self.theory, color="colour", width=2, legend_field="name")
        series.scatter("t", "y", source=self.drawn, color="colour", size=4, alpha=0.6)
        for one in (spectrum, path, series):
            (legend,) = one.legend
            one.add_layout(legend, "below")
            legend.update(
                orientation="horizontal", ncols=3, label_text_font_size="11px", border_line_alpha=0.0, padding=0
            )
        self.simulated = spectrum.legend[0].items[0]
        self.figures = [spectrum, path, series]

    def name_eigenvalues(self, name: str) -> None:
        spectrum, path, _ = self.figures
        spectrum.xaxis.axis_label = path.yaxis.axis_label = name

    def show(self, shown: Shown, label: str | None) -> None:
        density, bars, outliers = density_of(shown, label), histogram_of(shown, label), outliers_of(shown, label)
        height = 0.6 * max([*density["y"], *bars["top"]], default=1.0)
        self.density.data, self.bars.data = density, bars
        self.simulated.visible = bool(bars["top"])
        self.outliers.data = {"x": outliers, "y": [0.0] * len(outliers), "top": [height] * len(outliers)}
        self.path.data, self.edges.data = path_of(shown, label), _edges(shown, label)
        series = observables_of(shown)
        colours = [COLOURS[k % len(COLOURS)] for k in range(len(series))]
        self.theory.data = {
            "xs": [list(range(len(values))) for values, _ in series.values()],
            "ys": [values for values, _ in series.values()],
            "name": list(series),
            "colour": colours,
        }
        dots = [
            (float(when), value, colour)
            for (_, drawn), colour in zip(series.values(), colours, strict=True)
            for when, value in enumerate(drawn)
        ]
        self.drawn.data = {name: [dot[k] for dot in dots] for k, name in enumerate(("t", "y", "colour"))}
        self.figures[1].visible = bool(self.edges.data["t"])
        self.figures[2].visible = any(len(values) > 1 for values, _ in series.values())


def _edges(shown: Shown, label: str | None) -> Mapping[str, list[float]]:
    """Return the intervals of the bulk at each time."""
    if shown.solution is None or shown.solution.failed or not shown.solution.layers:
        return {"t": [], "low": [], "high": []}
    layer = shown.solution.layer(label)
    times = range(len(layer.outlier_path or ()))
    bars = [(float(t), float(low), float(high)) for t in times for low, high in layer.bulk_at(t) if len(times) > 1]
    return {name: [bar[k] for bar in bars] for k, name in enumerate(("t", "low", "high"))}


def _figure(name: str, title: str, across: str, up: str) -> Any:
    plot = figure(
        name=name,
        title=title,
        x_axis_label=across,
        y_axis_label=up,
        height=320,
        sizing_mode="stretch_width",
        tools="pan,box_zoom,wheel_zoom,reset,save",
        active_scroll=None,
        toolbar_location="above",
    )
    plot.title.text_font_size = "12px"  # beside the tools there is little room on a phone
    plot.toolbar.logo = None
    return plot


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
