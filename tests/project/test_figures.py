"""Figures: the table of the manual names every notebook, and the picture of the README is current."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "notebooks" / "manual" / "figures.md").read_text(encoding="utf-8")
TEXT = (ROOT / "README.md").read_text(encoding="utf-8") + TABLE.replace("(../pictures/", "(notebooks/pictures/")
ROWS = re.findall(r"^\| [^|`]+ \| \[(\w+)\]\(\.\./(\w+)\.ipynb\) \| `derive [^`]+` \|$", TABLE, flags=re.M)


def test_table_names_every_notebook_of_a_figure():
    there = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb") if not path.stem[0].isdigit()}
    assert {name for name, _ in ROWS} == there
    assert all(name == file for name, file in ROWS)


def test_pictures_are_those_of_the_notebooks_and_small():
    made = runpy.run_path(str(ROOT / "notebooks" / "pictures.py"))
    for name in made["SHOWN"]:
        picture = (ROOT / "notebooks" / "pictures" / f"{name}.png").read_bytes()
        assert picture == made["first_picture"](ROOT / "notebooks" / f"{name}.ipynb"), (
            "run python notebooks/pictures.py"
        )
        assert len(picture) < 80_000 and f"notebooks/pictures/{name}.png" in TEXT
