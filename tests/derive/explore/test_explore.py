"""The page with sliders: ranges, what a point gives, and the page itself in a real browser."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from browser import Browser, find_browser
from click.testing import CliRunner

import derive
from derive import Domain, nonnegative, positive, real, whole_nonnegative, whole_positive
from derive.cli import main
from derive.explore.points import (
    Explorer,
    Wish,
    density_of,
    eigenvalue_of,
    histogram_of,
    observables_of,
    outliers_of,
    path_of,
    slider_range,
)
from derive.inputs.loading import load_declaration

ROOT = Path(__file__).parents[3]
HERE = str(ipaddress.IPv4Address(socket.INADDR_LOOPBACK))
FORCES = """
from derive import *
rate = parameter("rate", default=0.5, domain=positive, doc="learning rate, with words enough for two lines")
T = parameter("T", default=6, domain=whole_positive, doc="steps")
D = sectors("D")
t = training_clock("t", steps=T)
M0 = goe("M0", D)
start = normal("start", D)
v = field("v", D, t)
M = weights("M", D, D, t)
MODEL = Model(
    parameters=(rate, T),
    equations=[
        Eq(v(0), start),
        Eq(v(t + 1), (v(t) + M(t) @ v(t)) / 2),
        Eq(M(0), M0),
        Eq(M(t + 1), M(t) + rate / D * outer(v(t), v(t))),
    ],
    observe={"activity": mean(v(t) ** 2)},
    probe=spectrum(M(T)),
)
"""


# Sliders


@pytest.mark.parametrize("domain", [real, positive, nonnegative, whole_positive, whole_nonnegative, Domain(0, 1)])
@pytest.mark.parametrize("start", [0.5, 1.0, 0.0, 7.0, 300.0])
def test_every_position_of_a_slider_is_a_value_of_the_domain(domain, start):
    if not domain.contains(start):
        return
    reach = slider_range(domain, start)
    assert reach.low < reach.high and reach.whole is domain.whole
    assert reach.low <= reach.position(start) <= reach.high
    for position in np.arange(reach.low, reach.high + reach.step / 2, reach.step):
        assert domain.contains(reach.value(min(position, reach.high)))


def test_positive_numbers_go_by_logarithm_and_others_do_not():
    assert slider_range(positive, 0.01).log and not slider_range(nonnegative, 0.01).log
    assert slider_range(positive, 0.02).value(slider_range(positive, 0.02).position(0.02)) == 0.02
    assert not slider_range(Domain(0, 1), 0.5).log and not slider_range(real, 1.0).log


# Points


@pytest.mark.slow
def test_a_point_shows_what_solving_it_gives_and_its_lines_give_it_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("forces.py").write_text(FORCES)
    explorer, wish = Explorer("forces.py", {}, None), Wish((), (("rate", 1.5), ("T", 6)), 60)
    shown, solved = explorer.shown(wish), derive.load("forces.py").solve(rate=1.5, T=6, path=True)
    assert not shown.trouble and outliers_of(shown, None) == solved.outliers.tolist() != []
    assert path_of(shown, None)["t"] == [float(t) for t, at in enumerate(solved.outlier_path) for _ in at]
    theory, drawn = observables_of(shown)["activity"]
    assert theory == solved["activity"].tolist() and len(drawn) == len(theory)
    density, bars = density_of(shown, None), histogram_of(shown, None)
    assert np.trapezoid(density["y"], density["x"]) == pytest.approx(1.0, abs=1e-3)
    assert np.dot(bars["top"], np.subtract(bars["right"], bars["left"])) == pytest.approx(1.0)
    result = CliRunner().invoke(main, explorer.command(wish).split()[1:])
    assert result.exit_code == 0, result.output
    names: dict = {}
    exec(explorer.python(wish), names)  # noqa: S102
    assert names["s"].outliers.tolist() == solved.outliers.tolist() and names["sim"].size == 60


def test_the_axis_of_eigenvalues_names_the_probed_matrix():
    model = derive.load("deep_linear", L=2).model
    assert eigenvalue_of(model, None) == eigenvalue_of(model, "0") == "eigenvalue of (1/N1) W0(T)^T W0(T)"
    assert "W1(T)" in eigenvalue_of(model, "1")


def test_a_point_that_diverges_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("forces.py").write_text(FORCES)
    shown = Explorer("forces.py", {}, None).shown(Wish((), (("rate", 1e80), ("T", 6)), 60))
    assert shown.trouble and shown.simulation is None
    assert outliers_of(shown, None) == [] == density_of(shown, None)["x"] and observables_of(shown) == {}
    wrong = Explorer("forces.py", {}, None).shown(Wish((), (("rate", -1.0),)))
    assert wrong.solution is None and "rate" in wrong.trouble


# The command


def test_without_bokeh_there_is_a_sentence_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "bokeh", None)
    result = CliRunner().invoke(main, ["explore", "spiked_wigner"])
    assert result.exit_code == 2 and "pip install" in result.stderr and "[explore]" in result.stderr


def test_bad_input_is_refused_before_anything_is_served():
    pytest.importorskip("bokeh", reason="Bokeh is not installed; install the explore extra")
    for words in (
        ["nothing"],
        ["spiked_wigner", "gamma0=1,2"],
        ["spiked_wigner", "gamma0=-1"],
        ["spiked_wigner", "x=1"],
    ):
        result = CliRunner().invoke(main, ["explore", *words, "--port", "0"])
        assert result.exit_code == 2 and result.stdout == "", words
    taken = socket.socket()
    taken.bind((HERE, 0))
    taken.listen()
    result = CliRunner().invoke(main, ["explore", "spiked_wigner", "--port", str(taken.getsockname()[1])])
    taken.close()
    assert result.exit_code == 2 and "--port" in result.stderr


def test_a_family_has_lists_and_whole_sliders_and_another_member_other_parameters():
    pytest.importorskip("bokeh", reason="Bokeh is not installed; install the explore extra")
    from bokeh.document import Document
    from bokeh.models import Select, Slider

    from derive.explore.page import Page

    choices = (("L", 1), ("data", "online"), ("param", "mup"))
    explorer = Explorer("deep_linear", {}, None)
    start = tuple((p.name, p.default) for p in explorer.theory(choices).parameters)
    page = Page(Document(), explorer, Wish(choices, start), None)
    controls = {control.name: control for control in page.sliders.children}
    assert isinstance(controls["data"], Select) and controls["data"].value == "online"
    assert isinstance(controls["L"], Slider) and controls["L"].step == 1
    assert set(controls) == {*dict(load_declaration("deep_linear").choices), *dict(start)}
    controls["nu"].value = 0.5
    assert dict(page.wish.values)["nu"] == pytest.approx(10**0.5, rel=1e-3)
    controls["data"].value = "full_batch"
    assert dict(page.wish.choices)["data"] == "full_batch" and "data=full_batch" in page.command.text
    assert dict(page.wish.values)["nu"] == pytest.approx(10**0.5, rel=1e-3)
    page._chosen("L", 0)
    assert "no result: L=0 is out of range" in page.status.text and dict(page.wish.choices)["L"] == 1


# The page


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[str]:
    """The address of a page, from the command itself."""
    pytest.importorskip("bokeh", reason="Bokeh is not installed; install the explore extra")
    place = tmp_path_factory.mktemp("explore")
    (place / "forces.py").write_text(FORCES)
    command = [sys.executable, "-m", "derive", "explore", "forces.py", "rate=1.5", "--port", "0", "--no-browser"]
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        command,
        cwd=place,
        env={**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "BOKEH_RESOURCES": "cdn"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        line = process.stdout.readline()
        found = re.search(rf"http://{re.escape(HERE)}:\d+/", line)
        assert found, line + process.stdout.read()
        yield found[0]
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip("no Chromium here: the page is not looked at")
    with Browser(program, tmp_path_factory.mktemp("profile")) as found:
        yield found


MODEL = "Bokeh.documents[0].get_model_by_name"


def wait_until(browser: Browser, script: str, patience: float = 60.0) -> None:
    until = time.monotonic() + patience
    while not browser.run(script):
        assert time.monotonic() < until, f"never: {script}"
        time.sleep(0.05)


def settle(browser: Browser) -> str:
    """Wait for the last point to be shown; what the page says about it."""
    wait_until(browser, f"window.Bokeh && Bokeh.documents.length && {MODEL}('status').text.includes(' s)')")
    return browser.run(f"{MODEL}('status').text")


@pytest.mark.slow
def test_the_page_follows_the_hand_and_asks_nobody_else(served, browser):
    browser.open(served, 1280)
    assert "solved" in settle(browser)
    first = browser.run(f"{MODEL}('numbers').text")
    solved = derive.load(_declared()).solve(rate=1.5)
    assert f"{solved.outliers[0]:.6g}" in first

    began = time.monotonic()
    browser.run(f"{MODEL}('rate').value = Math.log10(3)")
    wait_until(browser, f"{MODEL}('numbers').text != {first!r}")
    assert time.monotonic() - began < 2.0
    assert f"{derive.load(_declared()).solve(rate=3).outliers[0]:.6g}" in browser.run(f"{MODEL}('numbers').text")
    assert "rate=3.0" in browser.run(f"{MODEL}('command').text")
    assert "rate=3.0" in browser.run(f"{MODEL}('python').text")

    browser.run(f"{MODEL}('size').value = 'simulate, size 200'")
    wait_until(browser, f"{MODEL}('command').text.includes('--size 200')")
    assert "solved" in settle(browser)

    browser.run(f"{MODEL}('T').value = 7")
    wait_until(browser, f"{MODEL}('command').text.includes('T=7')")
    assert "solved" in settle(browser)

    assert [url for url in browser.requests() if urlsplit(url).hostname != HERE] == []
    assert not [text for text in browser.complaints() if "rror" in text and "favicon" not in text]


@pytest.mark.long_cases("1280")
@pytest.mark.slow
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_the_window(width, served, browser, tmp_path):
    browser.open(served, width)
    assert "solved" in settle(browser)
    assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
    assert browser.run("document.body.scrollWidth <= window.innerWidth")
    assert browser.run("document.querySelector('meta[name=viewport]') !== null")
    browser.screenshot(tmp_path / "page.png", whole=True)
    assert (tmp_path / "page.png").stat().st_size > 10_000


def _declared() -> object:
    names: dict = {}
    exec(FORCES, names)  # noqa: S102
    return names["MODEL"]
