"""Every item of the paper keeps its status, and what it rests on exists."""

from __future__ import annotations

import runpy
from collections import Counter
from pathlib import Path

from derive.claims import load_claims
from derive.claims.reading import project_claims

ROOT = Path(__file__).resolve().parents[2]
REFERENCE = runpy.run_path(str(ROOT / "notebooks" / "manual" / "reference.py"))


def test_every_item_keeps_its_status():
    """`derive verify` proves each claim (tests/derive/claims); here each item has claims, and none goes missing."""
    items = REFERENCE["paper_items"]()
    assert len(items) == len({item["number"] for item in items}) == 127
    others = {
        "compared": "R1d L3 G10 G21 H1",
        "declared": "M3",
        "figure": "F2 F3 F4 F5 F6 F9 FA FB FD1 FD2 FD3 FE1 FE2 FG1 FG2 FG3 FG4",
        "not applicable": "F7 F8 FH H2",
    }
    allowed = {number: status for status, numbers in others.items() for number in numbers.split()}
    rank = ("proved", "compared", "declared", "figure", "not applicable")
    for item in items:
        least = allowed.get(item["number"], "proved")
        assert rank.index(item["status"]) <= rank.index(least), f"{item['number']} was {least}"
    for item in items:
        assert item["status"] != "proved" or item["matched"], item["number"]
        assert item["status"] not in ("compared", "declared", "figure") or item.get("links"), item["number"]
        assert item["status"] != "not applicable" or item.get("note"), item["number"]
        assert all((ROOT / link).is_file() for link in item.get("links", ())), item["number"]


def test_the_readme_counts_the_items():
    counts = Counter(item["status"] for item in REFERENCE["paper_items"]())
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    assert f"[{counts['proved']} of 127 items](notebooks/manual/paper.md) proved, {counts['compared']} compared" in text


def test_the_readme_counts_the_claims():
    count = sum(len(load_claims(path).claims) for path in project_claims())
    assert f"(all {count} claims are proved)" in (ROOT / "README.md").read_text(encoding="utf-8")
    evidence = (ROOT / "notebooks" / "manual" / "evidence.md").read_text(encoding="utf-8")
    assert f"proves {count} of {count} claims" in evidence
