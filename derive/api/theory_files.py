"""The theory to which a trained network is compared: a file with the output of `derive solve --json`, checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from derive.errors import CheckpointError
from derive.support.bounds import THEORY_SIZE
from derive.support.guarded import DIGEST, has_its_digest, parsed_json, read_text
from derive.support.shapes import fits
from numerics.simulation.compare import bulk_intervals
from numerics.spectra.theory import ExpectedSpectrum


def read_solutions(path: Path) -> Any:
    """Return the content of a file written by `derive solve --json`, or of several under names."""
    make = f"make it with derive solve SETTING --json > {path.name}"
    text = read_text(path, THEORY_SIZE, CheckpointError)
    try:
        content = parsed_json(text)
    except ValueError as error:
        raise CheckpointError(f"the theory file {path} is not JSON ({error}); {make}") from None
    whole = content if fits(content, dict) else {}
    parts = [content] if DIGEST in whole or "bulk_edges" in whole else whole.get("layers", content)
    for part in parts.values() if fits(parts, dict) else parts if fits(parts, list) else []:
        if not fits(part, dict) or DIGEST not in part:
            raise CheckpointError(f"the theory file {path} has no digest, so changes cannot be detected; {make}")
        if not has_its_digest(part):
            raise CheckpointError(f"the theory file {path} was modified after it was printed; {make}")
    return content


def theory_of(content: Any, path: Path, layer: str | None = None) -> ExpectedSpectrum:
    """Return the theory stored in a file, or the theory of one of its layers."""
    solved, name = _layer(path, content, layer)
    edges, outliers = solved["bulk_edges"], solved.get("outliers", [])
    errors = solved.get("outlier_errors")
    wrong = f"the theory file {path} is not output of derive solve --json"
    if not fits(edges, list[list[Any]]) or any(len(pair) != 2 for pair in edges):
        raise CheckpointError(f"{wrong}: bulk_edges must be a list of [low, high]")
    errors = [None] * len(outliers) if errors is None and fits(outliers, list) else errors
    if not (fits(outliers, list) and fits(errors, list)) or len(outliers) != len(errors):
        raise CheckpointError(
            f"{wrong}: outliers must be a list of numbers, and outlier_errors null or a list of the same length"
        )
    numbers = [*sum(edges, []), *outliers, *(e for e in errors if e is not None)]
    if not fits(numbers, list[float]) or not all(map(math.isfinite, numbers)):
        raise CheckpointError(f"{wrong}: edges and outliers must be finite numbers")
    intervals = bulk_intervals(edges)
    if not intervals:
        raise CheckpointError(
            f"the theory file {path} has no bulk; solve a model that probes a matrix such as W^T W / N"
        )
    low, high = intervals[0][0], intervals[-1][1]
    if low < -1e-9 * high or high <= 0.0:
        raise CheckpointError(
            f"the theory file {path} has negative eigenvalues ({low:.6g}), and W^T W has none; solve a model that "
            "probes a matrix such as W^T W / N"
        )
    return ExpectedSpectrum(name, (max(low, 0.0), high), tuple(map(float, outliers)), tuple(errors))


def _layer(path: Path, content: Any, layer: str | None) -> tuple[dict[str, Any], str]:
    """Return the solution of the requested layer: the only one, or by name or number from 1."""
    whole = content if fits(content, dict) else {}
    if "bulk_edges" in whole:
        if layer is not None:
            raise CheckpointError(f"the theory file {path} holds one solution and no layers; leave out --layer")
        return whole, str(whole.get("setting", path.stem))
    listed = whole.get("layers", content)
    named = listed.items() if fits(listed, dict) else enumerate(listed, start=1) if fits(listed, list) else ()
    layers = {str(name): part for name, part in named if fits(part, dict) and "bulk_edges" in part}
    if not layers:
        raise CheckpointError(
            f"the theory file {path} has no bulk_edges; make it with derive solve SETTING --json > {path.name}"
        )
    if layer is None and len(layers) == 1:
        layer = str(next(iter(layers)))
    if layer is None or layer not in layers:
        complaint = f"has no layer {layer!r}" if layer is not None else "holds several layers"
        raise CheckpointError(f"the theory file {path} {complaint}; choose with --layer one of {', '.join(layers)}")
    return layers[layer], layer
