"""Results of commands as files: JSON lines with everything, CSV with one number per cell, netCDF or Zarr."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.cli.output import plain
from derive.errors import DeriveError
from derive.support.extras import check_installed
from derive.support.guarded import write_whole

if TYPE_CHECKING:
    from derive.results import Comparison, Simulation, Solution, Sweep

MEANING = {".jsonl": "everything", ".csv": "one number per cell", ".nc": "for derive.open", ".zarr": "the same as Zarr"}


def check_table(out: str | None, kinds: Sequence[str] = (".jsonl", ".csv")) -> None:
    """Raise if a file cannot be written, before any computation."""
    if out is None:
        return
    path = Path(out)
    if path.suffix not in kinds:
        endings = " or ".join(f"{kind} ({MEANING[kind]})" for kind in kinds)
        raise DeriveError(f"--out {out}: the name must end in {endings}")
    if path.suffix in (".nc", ".zarr"):
        check_installed("xarray")
        check_installed("h5netcdf")
    if path.suffix == ".zarr":
        from derive.results.saving import check_zarr

        check_zarr(path)
    if (path.is_dir() and path.suffix != ".zarr") or not (path.parent.is_dir() and os.access(path.parent, os.W_OK)):
        raise DeriveError(f"--out {out}: cannot be written; choose a file in a directory that exists")


def write_result(out: str, result: Solution | Simulation | Comparison | Sweep) -> None:
    """Write a result in the format of the file's suffix."""
    from derive.results.sweep import points_of, row_of

    suffix = Path(out).suffix
    points = points_of(result)
    if suffix in (".nc", ".zarr"):
        result.save(out)
    elif suffix == ".csv":
        write_rows(out, [row_of(point) for point in points])
    else:
        write_rows(out, [plain(point.as_dict()) for point in points])


def write_rows(out: str, rows: list[dict[str, Any]]) -> None:
    """Write all rows, or nothing on failure."""
    path = Path(out)
    text = _csv(rows) if path.suffix == ".csv" else "".join(json.dumps(r, allow_nan=False) + "\n" for r in rows)
    try:
        write_whole(path, text.encode(errors="backslashreplace"))
    except OSError as error:
        raise DeriveError(f"--out {out}: cannot be written ({error.strerror}); choose another file") from None


def _csv(rows: list[dict[str, Any]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))
    names.sort(key=lambda name: name == "trouble")
    file = io.StringIO()
    writer = csv.DictWriter(file, names, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None or v != v else v for k, v in row.items()} for row in rows)
    return file.getvalue()
