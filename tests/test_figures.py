"""Figures of the README: its table names every notebook, its commands can be typed, its pictures are current."""

from __future__ import annotations

import re
import runpy
import shlex
from pathlib import Path

import pytest

from derive.loading import setting_names
from derive.problems import load_grid

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| [^|`]+ \| \[(\w+)\]\(notebooks/(\w+)\.ipynb\) \| `derive ([^`]+)` \|$", TEXT, flags=re.M)


def test_table_names_every_notebook_of_a_figure():
    there = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if not path.stem[0].isdigit()}
    assert {name for name, _, _ in ROWS} == there
    assert all(name == file for name, file, _ in ROWS)


@pytest.mark.slow
def test_parameters_of_their_commands_exist():
    for _, _, command in ROWS:
        words = shlex.split(command)
        pairs = [word for word in words if re.fullmatch(r"\w+=[\w./,:-]+", word)]
        if pairs and words[0] != "expand":
            (target,) = [word for word in words if word in setting_names()]
            assert load_grid(target, pairs).problems, command


def test_pictures_are_those_of_the_notebooks_and_small():
    made = runpy.run_path(str(ROOT / "notebooks" / "pictures.py"))
    for name in made["SHOWN"]:
        picture = (ROOT / "notebooks" / "pictures" / f"{name}.png").read_bytes()
        assert picture == made["first_picture"](ROOT / "notebooks" / f"{name}.ipynb"), (
            "run python notebooks/pictures.py"
        )
        assert len(picture) < 80_000 and f"notebooks/pictures/{name}.png" in TEXT
