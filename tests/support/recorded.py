"""Numbers that commands print, beside those that they printed when they were recorded."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from derive.cli import main

HERE = Path(__file__).resolve().parents[1]
PLACE = HERE / "settings" / "recorded_numbers.json"
"""Commands and their numbers; `tests/campaigns/record_numbers.py` writes it."""
DRAWN = HERE / "declarations" / "drawn"
"""Declarations drawn at random, of which some are recorded."""
ENTRIES = 4
"""Entries of a longer list that are recorded, evenly spaced, beside its sum."""
DIGITS = 10
"""Digits of a recorded number."""
UNSETTLED = re.compile(
    r"(.*\.)?(digest|certificate|residual|condition|discrepancy|doubt|dimension|setting|parameters|sampling\.memory)"
)
"""Places of what rounding, the machine or another test decides."""
TOLERANCE, FLOOR = 1e-7, 1e-9
"""A number agrees within this share of the largest of its list, or within this distance."""


def printed(command: str) -> dict:
    """What a command prints with --json, run in this process. A file stands for the declaration of that name."""
    names = {path.name: str(path) for place in (HERE / "declarations", DRAWN) for path in place.glob("*.py")}
    verb, setting, *rest = shlex.split(command)
    result = CliRunner().invoke(main, [verb, names.get(setting, setting), *rest, "--json"])
    try:
        return json.loads(result.stdout)
    except ValueError:
        note = f"derive {command}: exit code {result.exit_code}\n{result.output[-2000:]}"
        raise AssertionError(note) from result.exception


def numbers_of(command: str) -> dict[str, object]:
    """Numbers and words that a command prints, by where they stand; of long lists some entries and the sum."""
    return dict(_leaves("", printed(command)))


def _leaves(place: str, value: object) -> Iterator[tuple[str, object]]:
    match value:
        case dict():
            for key, one in value.items():
                inner = f"{place}.{key}" if place else key
                if not UNSETTLED.fullmatch(inner):
                    yield from _leaves(inner, one)
        case list() if "{" in repr(value):
            for k, one in enumerate(value):
                yield from _leaves(f"{place}.{k}", one)
        case list():
            yield place, _summary(value)
        case str() if " " in value and not place.endswith(("series", "cell")):
            pass  # a sentence
        case float():
            yield place, _rounded(value)
        case _:
            yield place, value


def _summary(value: list) -> list:
    """The shape of a list of numbers, its sum, and some of its entries; null counts as zero in the sum."""
    try:
        array = np.array(value, float)
    except (ValueError, TypeError):  # ragged, or words
        return [_summary(one) if isinstance(one, list) else one for one in value]
    flat = array.ravel()
    chosen = np.unique(np.linspace(0, flat.size - 1, min(flat.size, ENTRIES)).astype(int)) if flat.size else []
    return [list(array.shape), _rounded(float(np.nansum(flat))), [_rounded(float(flat[k])) for k in chosen]]


def _rounded(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def differences(found: Mapping[str, object], recorded: Mapping[str, object]) -> list[str]:
    """One line for each place whose value differs from the recorded one by more than rounding explains."""
    return [
        f"{place}: {recorded.get(place, 'nothing')}, now {found.get(place, 'nothing')}"
        for place in sorted({*found, *recorded})
        if place not in found or place not in recorded or not agrees(found[place], recorded[place])
    ]


def agrees(found: object, recorded: object) -> bool:
    """Whether values are equal, or for floats within `TOLERANCE` of the largest beside them."""
    if isinstance(found, list) and isinstance(recorded, list):
        if len(found) != len(recorded):
            return False
        sizes = [abs(one) for one in recorded if isinstance(one, float)]
        return all(_agree(a, b, max(sizes, default=0.0)) for a, b in zip(found, recorded, strict=True))
    return _agree(found, recorded, 0.0)


def _agree(found: object, recorded: object, size: float) -> bool:
    match found, recorded:
        case list(), list():
            return agrees(found, recorded)
        case float() | int(), float() if not isinstance(found, bool):
            return abs(found - recorded) <= FLOOR + TOLERANCE * max(abs(recorded), size)
        case float(), int() if not isinstance(recorded, bool):
            return abs(found - recorded) <= FLOOR + TOLERANCE * abs(recorded)
    return found == recorded
