"""Results of many points as files: JSON lines with everything, or CSV with one number a cell."""

from __future__ import annotations

import csv
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from derive.errors import DeriveError

KINDS = (".jsonl", ".csv")


def check_table(out: str | None) -> None:
    """Refuse a file that cannot be written before any work is done."""
    if out is None:
        return
    path = Path(out)
    if path.suffix not in KINDS:
        raise DeriveError(f"--out {out}: the name must end in .jsonl (everything) or .csv (one number a cell)")
    if path.is_dir() or not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise DeriveError(f"--out {out}: cannot be written; choose a file in a directory that exists")


def write_table(out: str, points: list[dict[str, Any]]) -> None:
    """Write solved points: everything as JSON lines, or single numbers as CSV."""
    write_rows(out, [row_of(point) for point in points] if Path(out).suffix == ".csv" else points)


def write_rows(out: str, rows: list[dict[str, Any]]) -> None:
    """Write all rows, or on failure nothing."""
    path = Path(out)
    text = _csv(rows) if path.suffix == ".csv" else "".join(json.dumps(r, allow_nan=False) + "\n" for r in rows)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except OSError as error:
        raise DeriveError(f"--out {out}: cannot be written ({error.strerror}); choose another file") from None


def row_of(point: dict[str, Any]) -> dict[str, Any]:
    """One point as single numbers: parameters, observables at the last time, edges and outliers of each layer."""
    row: dict[str, Any] = dict(point["parameters"])
    if "error" in point:
        return {**row, "error": point["error"]}
    from numerics.labelled import single_series

    row |= {name: series[-1] for name, series in single_series(point["observables"], None).items() if series}
    for layer in point.get("layers", [point]):
        if not layer["bulk_edges"]:
            continue
        tail = f"_{layer['layer']}" if "layer" in layer else ""
        row[f"lower_edge{tail}"], row[f"upper_edge{tail}"] = layer["bulk_edges"][0][0], layer["bulk_edges"][-1][1]
        row[f"outliers{tail}"] = len(layer["outliers"])
        atoms = [atom["at"] for atom in layer.get("atoms") or []]
        row[f"largest{tail}"] = max([layer["bulk_edges"][-1][1], *layer["outliers"], *atoms])
        row[f"smallest{tail}"] = min([layer["bulk_edges"][0][0], *layer["outliers"], *atoms])
        row[f"intervals{tail}"] = len(layer["bulk_edges"])
        if layer.get("outlier_path") is not None:
            row[f"bbp_time{tail}"] = layer["bbp_time"]
    return row


def _csv(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    names.sort(key=lambda name: name == "error")
    file = io.StringIO()
    writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None else v for k, v in row.items()} for row in rows)
    return file.getvalue()
