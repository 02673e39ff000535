"""The documentation site builds without a warning and loads nothing from elsewhere; its recipes run."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import derive

ROOT = Path(__file__).parents[2]
PYTHON = re.compile(r"^## (.+?)$.*?^```python\n(.*?)^```$", flags=re.M | re.S)
RECIPES = PYTHON.findall((ROOT / "notebooks" / "manual" / "recipes.md").read_text(encoding="utf-8"))


def declarations() -> str:
    """The lines of the README's model above MODEL."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (body,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.M | re.S)
    return body.partition("MODEL = ")[0]


@pytest.mark.slow
@pytest.mark.parametrize(("title", "body"), RECIPES, ids=[title for title, _ in RECIPES])
def test_recipe_solves(title, body, tmp_path):
    path = tmp_path / "recipe.py"
    path.write_text("from derive import *\n" + declarations() + body, encoding="utf-8")
    solution = derive.load(str(path)).solve(T=3)
    assert solution.certificate and np.isfinite(solution["activity"]).all()


class References(HTMLParser):
    """What a page loads or links to."""

    def __init__(self):
        super().__init__()
        self.loaded: list[str] = []
        self.identifiers: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag, attrs):
        of = dict(attrs)
        self.identifiers.add(of.get("id") or "")
        if tag in ("script", "img", "iframe"):
            self.loaded.append(of.get("src") or "")
        elif tag == "link" and of.get("rel") in ("stylesheet", "icon", "preload"):
            self.loaded.append(of["href"] or "")
        elif tag == "a":
            self.links.append(of.get("href") or "")


def references(path: Path) -> References:
    found = References()
    found.feed(path.read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="the site is built by Sphinx: pip install -e '.[docs]'")
    place = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "derive", "docs", "--no-browser", "--out", str(place)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr  # any warning of Sphinx is an error
    return place


@pytest.mark.slow
def test_every_page_has_its_place_and_every_link_a_target(site):
    pages = {path: references(path) for path in site.rglob("*.html")}
    manual = {path.stem for path in (ROOT / "notebooks" / "manual").glob("*.md")} - {"README"}
    notebooks = {f"notebooks/{path.stem}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    names = {path.relative_to(site).as_posix().removesuffix(".html") for path in pages}
    assert {"index", "manual", "api", *manual, *notebooks} <= names
    for path, page in pages.items():
        for link in page.links:
            file, _, anchor = link.partition("#")
            if "://" in file or link.startswith("mailto:"):
                continue
            target = (path.parent / file).resolve() if file else path.resolve()
            assert target.exists(), (path.name, link)
            if anchor and target in pages:
                assert anchor in pages[target].identifiers, (path.name, link)


@pytest.mark.slow
def test_the_site_loads_nothing_from_elsewhere(site):
    for path in site.rglob("*.html"):
        for source in references(path).loaded:
            assert "//" not in source, (path.name, source)
    assert (site / "searchindex.js").exists() and "<math" in (site / "notebooks" / "01_first_model.html").read_text()
