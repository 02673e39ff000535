"""Numbers and small tables for people, on a terminal of 80 columns and in a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

DIGITS = 6
SAME = 1e-7
"""Relative difference below which outliers are treated as one of higher multiplicity."""
NOISE = 1e-13
"""Numbers below this are rounding errors, and so are standard errors below this fraction of their number."""


def shown_number(value: float | None, error: float | None = None) -> str:
    """Return a number with six digits; with an error, with the digits that the error leaves, 2.912(6); rounding errors
    become 0."""
    if value is None:
        return "-"
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return f"{value:d}"
    if not math.isfinite(value):
        return "-" if math.isnan(value) else str(value)
    if error is not None and math.isfinite(error) and error > NOISE * abs(value):
        return with_error(value, error)
    return "0" if abs(value) < NOISE else f"{value:.{DIGITS}g}"


def shown_cell(value: Any, error: float | None = None) -> str:
    """Return a value of a table as text: a number with its error, yes or no, a text as it is."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return shown_number(value, error) if isinstance(value, (int, float)) else str(value)


def with_error(value: float, error: float) -> str:
    """Return a number with its standard error in units of the last digits: 2.912(6), 0.0123(15), 1.20(3)e-7."""
    if abs(value) > 0 and error < 10.0 ** -(DIGITS + 4) * abs(value):
        return f"{value:.{DIGITS + 4}g}({error:.1e})"
    size = max(abs(value), error)
    power = math.floor(math.log10(size))
    scale = power if power < -4 or power > 6 else 0
    mantissa, spread = value / 10.0**scale, error / 10.0**scale
    # two digits of an error that begins with 1, else one
    last = math.floor(math.log10(spread))
    if round(spread / 10.0**last, 6) < 2:
        last -= 1
    digits = max(0, -last)
    units = round(spread * 10.0**digits)
    text = f"{mantissa:.{digits}f}({units})"
    return f"{text}e{scale}" if scale else text


def grouped(values: Sequence[float] | np.ndarray) -> list[tuple[int, int, float]]:
    """Return runs of equal values: position of the first, length, value."""
    found: list[tuple[int, int, float]] = []
    for place, value in enumerate(values):
        if found and abs(value - found[-1][2]) <= SAME * abs(value):
            found[-1] = (found[-1][0], found[-1][1] + 1, found[-1][2])
        else:
            found.append((place, 1, float(value)))
    return found


def counted(count: int, one: str, several: str = "") -> str:
    """Return a number with its noun, in the plural unless it is one."""
    return f"{count} {one if count == 1 else several or f'{one}s'}"


def listed(names: Iterable[str]) -> str:
    return ", ".join(names)


def some(words: Sequence[str], most: int = 5) -> str:
    """Return the first words of a list, and how many more there are."""
    return listed(words[:most]) + (f" and {len(words) - most} more" if len(words) > most else "")


def table(rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of two columns."""
    width = max((len(left) for left, _ in rows), default=0)
    return [f"  {left:<{width}}  {right}" for left, right in rows]


def html_table(
    title: str, rows: Sequence[tuple[str, ...]], trouble: Sequence[str] = (), head: Sequence[str] = ()
) -> str:
    """A small table for a notebook."""
    heads = (
        "<tr>" + "".join(f"<th style='text-align:left'>{escape(name)}</th>" for name in head) + "</tr>" if head else ""
    )
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    warnings = "".join(f"<div><b>not to be trusted:</b> {escape(reason)}</div>" for reason in trouble)
    return f"<div><code>{escape(title)}</code>{warnings}<table>{heads}{body}</table></div>"
