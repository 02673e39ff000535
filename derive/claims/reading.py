"""Reader of claims files: TOML, validated key by key, with formulas as text."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from derive.errors import ClaimError
from derive.support.bounds import CLAIMS_COUNT, CLAIMS_DEPTH, CLAIMS_SIZE, NUMBER_DIGITS
from derive.support.guarded import check_depth, read_text
from derive.support.places import checkout
from derive.support.shapes import fits

KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "resolvent": (("value",), ()),
    "curve": (("value",), ()),
    "equation": (("value",), ()),
    "edges": (("value",), ()),
    "atom": (("position", "value"), ("at",)),
    "outlier": (("value",), ("eigenproblem", "at")),
    "threshold": (("parameter", "value"), ("eigenproblem", "at")),
    "block": (("row", "column", "value"), ()),
    "matrix": (("labels", "value"), ("size", "rows_times", "columns_times")),
    "inverse_map": (("value",), ("eigenproblem",)),
    "scalar_map": (("value",), ("eigenproblem",)),
    "critical": (("value",), ("eigenproblem",)),
    "projected": (("unknown", "value"), ("times",)),
    "law": (("target", "value"), ("lag", "shift", "start")),
    "weights": (("target", "value"), ("shift", "start")),
    "source": (("matrix", "value"), ()),
    "average": (("matrix", "value"), ("same_time",)),
    "order_parameter": (("of", "value"), ()),
    "observable": (("of", "value"), ()),
    "symmetry": (("of", "value"), ()),
    "conjugate": (("of", "value"), ()),
    "effective_action": (("value",), ("same_time",)),
    "kernel": (("target", "value"), ("lag", "same_time")),
    "covariance": (("noises", "value"), ("same_time",)),
    "site": (("target", "value"), ("lag", "shift", "start", "same_time")),
    "moment": (("order", "value"), ()),
    "series": (
        ("of", "order", "value"),
        ("in", "set", "eigenproblem", "parameter", "number", "position", "derivative"),
    ),
}
"""Required and optional keys of each kind of claim."""

COMMON = ("name", "kind", "where", "paper", "evidence", "define", "region")


@dataclass(frozen=True)
class Claim:
    """One claimed formula. `keys` contains the entries of its kind; `define` names used in its formulas.

    `where` is its location in the paper; `region` contains the inequalities under which it applies.
    """

    name: str
    kind: str
    keys: tuple[tuple[str, object], ...]
    define: tuple[tuple[str, str], ...] = ()
    where: str = ""
    paper: str = ""
    evidence: str = ""
    region: tuple[str, ...] = ()

    def get(self, key: str, default: Any = None) -> Any:
        return dict(self.keys).get(key, default)


@dataclass(frozen=True)
class ClaimsFile:
    """The claims of a file, and the name of their model."""

    path: Path
    model: str
    claims: tuple[Claim, ...]
    choices: tuple[tuple[str, int | str], ...] = ()
    layer: str = ""
    notation: str = "model"


def load_claims(path: str | Path) -> ClaimsFile:
    """Return the claims of a file.

    Raises:
        ClaimError: the file is not a valid claims file.
    """
    path = Path(path)
    text = read_text(path, CLAIMS_SIZE, ClaimError)
    try:
        data = tomllib.loads(text.replace("\r\n", "\n"))
        check_depth(data, CLAIMS_DEPTH)
    except RecursionError:
        raise ClaimError(f"{path}: more than {CLAIMS_DEPTH} levels of nested tables and lists") from None
    except ValueError as error:  # whatever is no TOML, or has a number of thousands of digits
        raise ClaimError(f"{path}: is not TOML ({error}); quote formulas as strings") from None
    _only(data, ("model", "choices", "layer", "notation", "claim", "define"), str(path))
    model = data.get("model")
    if not fits(model, str) or not model:
        raise ClaimError(f'{path}: say which model the claims are about, model = "setting" or a path to a .py file')
    choices = data.get("choices", {})
    if not fits(choices, dict[str, int | str]):
        raise ClaimError(f"{path}: choices must be a table such as choices = {{ L = 3 }}")
    notation = data.get("notation", "model")
    if notation not in ("model", "paper"):
        raise ClaimError(f"{path}: notation must be model or paper, not {notation!r}")
    tables = data.get("claim", [])
    if not fits(tables, list[dict[str, Any]]) or not tables:
        raise ClaimError(f"{path}: there are no claims; add [[claim]] tables with name, kind and value")
    if len(tables) > CLAIMS_COUNT.most:
        raise ClaimError(f"{path}: has {len(tables)} claims, and a file has at most {CLAIMS_COUNT}; split it")
    shared = _definitions(data.get("define", {}), str(path))
    claims = tuple(_claim(table, number, shared, path) for number, table in enumerate(tables, start=1))
    names = [claim.name for claim in claims]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ClaimError(f"{path}: two claims are named {twice[0]!r}; give each a name of its own")
    return ClaimsFile(path, model, claims, tuple(choices.items()), str(data.get("layer", "")), notation)


def _claim(table: dict[str, Any], number: int, shared: tuple[tuple[str, str], ...], path: Path) -> Claim:
    name = table.get("name")
    if not fits(name, str) or not name.strip():
        raise ClaimError(f'{path}: claim {number} has no name; add name = "..."')
    place = f"{path}, claim {name!r}"
    kind = table.get("kind")
    if not fits(kind, str) or kind not in KINDS:
        near = get_close_matches(str(kind).lower(), KINDS, n=1, cutoff=0.5)
        cure = f"did you mean {near[0]}?" if near else f"the kinds are {', '.join(KINDS)}"
        raise ClaimError(f"{place}: unknown kind {kind!r}; {cure}")
    needed, optional = KINDS[kind]
    _only(table, (*COMMON, *needed, *optional), place)
    for key in needed:
        if key not in table:
            raise ClaimError(f"{place}: a claim of kind {kind} needs {key}; add {key} = ...")
    for key in ("where", "paper", "evidence"):
        if not fits(table.get(key, ""), str):
            raise ClaimError(f"{place}: {key} must be text in quotes")
    keys = tuple((key, _checked(key, kind, table[key], place)) for key in (*needed, *optional) if key in table)
    define = {**dict(shared), **dict(_definitions(table.get("define", {}), place))}
    where, paper, evidence = (table.get(key, "") for key in ("where", "paper", "evidence"))
    return Claim(name, kind, keys, tuple(define.items()), where, paper, evidence, _region(table.get("region"), place))


def _region(value: Any, place: str) -> tuple[str, ...]:
    """Return the inequalities of a region as text: one string or a list of them."""
    texts = [] if value is None else value if fits(value, list) else [value]
    if value == [] or not fits(texts, list[str]) or not all(map(str.strip, texts)):
        raise ClaimError(f'{place}: region must be inequalities in quotes, such as region = "nu > 1 and chi < 2"')
    return tuple(texts)


def _checked(key: str, kind: str, value: Any, place: str) -> Any:
    """Return the value of a key in the form required by its kind; formulas become text, lists tuples."""
    if key in ("lag", "shift", "start", "eigenproblem", "number", "derivative") or (
        key == "order" and kind == "moment"
    ):
        if not fits(value, int) or value < (key in ("eigenproblem", "number")):
            raise ClaimError(f"{place}: {key} must be a whole number, not {value!r}")
        return value
    if key == "same_time":
        if not fits(value, bool):
            raise ClaimError(f"{place}: same_time must be true or false, not {value!r}")
        return value
    if key == "at":
        if not fits(value, dict):
            raise ClaimError(f'{place}: at must be a table of values, such as at = {{ alpha = "1/2" }}')
        return tuple((name, _formula(text, f"{place}: at.{name}")) for name, text in value.items())
    if key in ("labels", "noises", "rows_times", "columns_times") or (key == "value" and kind in ("edges", "critical")):
        if not fits(value, list) or not value:
            raise ClaimError(f"{place}: {key} must be a list in square brackets")
        if key == "noises" and len(value) != 2:
            raise ClaimError(f'{place}: noises must name two noises, such as ["chi", "chi"]')
        return tuple(_formula(item, f"{place}: {key}") for item in value)
    if key == "value" and kind == "matrix":
        if not fits(value, list[list[Any]]) or any(len(row) != len(value) for row in value):
            raise ClaimError(f"{place}: value must be a square list of rows, each a list of formulas")
        return tuple(tuple(_formula(item, f"{place}: {key}") for item in row) for row in value)
    return _formula(value, f"{place}: {key}")


def _formula(value: Any, place: str) -> str:
    if fits(value, int):
        if abs(value) >= 10**NUMBER_DIGITS.most:
            raise ClaimError(f"{place} has more than {NUMBER_DIGITS}; this is implausibly long")
        return str(value)
    if not fits(value, str) or not value.strip():
        raise ClaimError(f"{place} must be a formula in quotes, not {value!r}")
    return value


def _definitions(table: Any, place: str) -> tuple[tuple[str, str], ...]:
    if not fits(table, dict):
        raise ClaimError(f"{place}: define must be a table of names and formulas")
    for name in table:
        if not name.isidentifier():
            raise ClaimError(f"{place}: {name!r} in define is not a name; use letters, digits and underscores")
    return tuple((name, _formula(text, f"{place}: define.{name}")) for name, text in table.items())


def _only(table: dict[str, Any], allowed: tuple[str, ...], place: str) -> None:
    for key in table:
        if key not in allowed:
            raise ClaimError(f"{place}: unknown key {key!r}; the keys here are {', '.join(allowed)}")


def project_claims() -> list[Path]:
    """Return the claims files of the project."""
    return sorted(reference_directory().glob("*.toml"))


def reference_directory() -> Path:
    """Return the directory of hand-written formulas: in the tests of a checkout, or in the installed package."""
    sources = checkout()
    place = Path(__file__).parent / "formulas" if sources is None else sources / "tests" / "reference_formulas"
    if not place.is_dir():
        raise ClaimError("the project's claims are not installed; give a file with --claims FILE")
    return place
