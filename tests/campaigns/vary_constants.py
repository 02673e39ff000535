"""Sensitivity of results to the numerical constants of a module: a panel of models, solved with one constant changed.

    python tests/campaigns/vary_constants.py numerics/outliers/finding.py
    python tests/campaigns/vary_constants.py numerics/bulk/branch.py:BISECTIONS --factors 0.25 4 --only anti_hebbian

Each constant is a number in capitals at the top of a module. It is multiplied by each factor in a new interpreter,
which solves the models of the panel. The columns are the largest relative change of an exact result (edges, outliers,
overlaps, observables), the largest change of a sampled result in its standard errors, models that are refused or
whose certificate fails, and the CPU time, relative to the unchanged constant. Rows without a change above rounding
belong to a safety margin; a constant that changes results needs a reason for its value. Constants computed from the
changed one at import keep their values. A row takes as long as the panel, about a minute.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FACTORS = (0.25, 4.0)
PANEL: dict[str, dict[str, Any]] = {
    "spiked_wigner": {"gamma0": 1.2},
    "anti_hebbian": {"gamma0": 4.0, "dt": 0.1, "T": 30},
    "coupled_spikes": {},
    "deep_linear": {"L": 2, "T": 10},
    "structured_regression": {"T": 10},
    "extensive_two_layer": {"nu": 3.0},
    "wide_network": {"T": 5, "P": 3, "B": 3, "D": 4},
    "tests/declarations/two_steps_both_layers.py": {},
    "tests/declarations/tanh_jacobian.py": {},
    "tests/declarations/uneven_wigner.py": {},
    "tests/declarations/mixed_polynomial.py": {},
}
"""Exact, quadrature and sampled models, with and without a curve, with point masses and with diagonals."""
SAMPLES = 3000


def constants(path: Path) -> Iterator[tuple[str, float]]:
    """Return the numbers in capitals that a module assigns at its top."""
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.Assign):
            continue
        target, value = node.targets[0], node.value
        several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
        pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]
        for name, number in pairs:
            if isinstance(name, ast.Name) and name.id.isupper() and isinstance(number, ast.Constant):
                if type(number.value) in (int, float):
                    yield name.id, number.value


def changed(value: float, factor: float) -> float:
    return max(1, round(value * factor)) if type(value) is int else value * factor


def answers(only: str) -> dict[str, Any]:
    """Return the results of each model of the panel and the CPU time of all."""
    import derive
    from derive.errors import DeriveError

    results: dict[str, Any] = {}
    began = time.process_time()
    for name, values in PANEL.items():
        if only not in name:
            continue
        model = derive.load(str(ROOT / name) if name.endswith(".py") else name)
        try:
            solution = model.solve(**values, samples=SAMPLES)
            content = solution.as_dict()
        except DeriveError as error:
            results[name] = str(error)
            continue
        results[name] = dict(numbers(content)) if solution else "; ".join(solution.trouble)
    return {"results": results, "cpu": time.process_time() - began}


def numbers(content: Mapping[str, Any]) -> Iterator[tuple[str, tuple[list[float], list[float] | None]]]:
    """Return each quantity of a solution, or of its layers, with its errors if it is sampled."""
    for label, layer in content.get("layers", {"": content}).items():
        for kind, errors in (("bulk_edges", "edge_errors"), ("outliers", "outlier_errors")):
            yield f"{kind} {label}", (flat(layer.get(kind)), flat(layer[errors]) if layer.get(errors) else None)
        yield f"overlaps {label}", (flat([list(one.values()) for one in layer.get("overlaps") or []]), None)
    errors = content.get("observable_errors") or {}
    for name, series in content.get("observables", {}).items():
        yield name, (flat(series), flat(errors[name]) if errors.get(name) else None)


def flat(values: Any) -> list[float]:
    if isinstance(values, list):
        return [number for part in values for number in flat(part)]
    return [] if values is None else [float(values)]


def compare(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[float, float, list[str]]:
    """Return the largest change of exact numbers, that of sampled ones in standard errors, and what else differs."""
    exact, sampled, other = 0.0, 0.0, []
    for name, known in before.items():
        now = after[name]
        if isinstance(known, str) or isinstance(now, str):
            other += [f"{name}: {now}"] if known != now else []
            continue
        for quantity, (old, errors) in known.items():
            new = now.get(quantity, ([], None))[0]
            if len(new) != len(old):
                other.append(f"{name}: {len(new)} {quantity.strip()} instead of {len(old)}")
            elif errors is None:
                scale = max(map(abs, old), default=0.0) or 1.0
                exact = max([exact, *(abs(x - y) / scale for x, y in zip(old, new, strict=True))])
            else:
                apart = [abs(x - y) / e if e else 0.0 for x, y, e in zip(old, new, errors, strict=True)]
                sampled = max([sampled, *(x for x in apart if math.isfinite(x))])
    return exact, sampled, other


def solved(module: str, name: str, value: float, only: str) -> dict[str, Any]:
    """Solve the panel in a new interpreter in which one constant has another value."""
    order = [sys.executable, __file__, module, "--only", only, "--set", name, repr(value)]
    done = subprocess.run(order, capture_output=True, text=True, cwd=ROOT, check=False)
    if done.returncode:
        return {"results": None, "cpu": 0.0, "error": done.stderr.strip().splitlines()[-1]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("module", help="FILE.py, or FILE.py:CONSTANT")
    parser.add_argument("--factors", type=float, nargs="+", default=FACTORS)
    parser.add_argument("--only", default="", help="models whose name contains this")
    parser.add_argument("--set", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    file, _, wanted = options.module.partition(":")
    if options.set is not None:
        name, text = options.set
        sys.path.insert(0, str(ROOT))
        module = import_module(file.removesuffix(".py").replace("/", "."))
        setattr(module, name, type(getattr(module, name))(float(text)))  # before others import it by name
        print(json.dumps(answers(options.only)))
        return
    known = dict(constants(ROOT / file))
    if wanted and wanted not in known:
        parser.error(f"{file} has no number {wanted}; it has {', '.join(known) or 'none'}")
    first = next(iter(known), None)
    if first is None:
        parser.error(f"{file} has no numbers in capitals at its top")
    solved(file, first, known[first], options.only)  # fills the caches of compiled programs
    base = solved(file, first, known[first], options.only)
    print(f"{'constant':24s} {'value':>10s} {'factor':>6s} {'exact':>8s} {'sampled':>8s} {'CPU':>6s}")
    for name, value in known.items():
        for factor in options.factors if wanted in ("", name) else ():
            answer = solved(file, name, changed(value, factor), options.only)
            if answer["results"] is None:
                print(f"{name:24s} {value:10.3g} {factor:6.3g} {answer['error']}", flush=True)
                continue
            exact, sampled, other = compare(base["results"], answer["results"])
            row = (
                f"{name:24s} {value:10.3g} {factor:6.3g} {exact:8.1e} {sampled:8.2f} {answer['cpu'] / base['cpu']:6.2f}"
            )
            print("\n    ".join([row, *other]), flush=True)


if __name__ == "__main__":
    main()
