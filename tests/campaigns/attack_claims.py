"""Mutate every claim of the project and hold each verdict "proved" against numbers at random points of the region.

    python tests/campaigns/attack_claims.py --count 2000 --seed 1

A mutant may still be true (C[a,b].T for C[b,a], a region that became smaller). Then numbers agree with it; a mutant
that is proved although they do not is a bug in `derive/cells` or `derive/claims`. The numbers come from the formulas as
Python evaluates them in mpmath, with random matrices for C and R, and from the bulk equations by Newton's method.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import mpmath
import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.physical import physical_values
from derive.algebra.sites import without_averages
from derive.cells.verdicts import PROVED
from derive.claims import Claim, ClaimsFile, load_claims, project_claims
from derive.claims.checking import _verdict, claim_context
from derive.claims.context import ClaimContext
from derive.errors import ClaimError, DeriveError
from derive.expansions.cases import Case
from derive.expansions.spikes import CaseSpikes
from derive.records.method import LabelGroup
from derive.records.probe import MAP

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "derive" / "claims"))
from test_held_out_claims import HELD_OUT  # noqa: E402
from test_selection import CLAIMS  # noqa: E402

DIGITS = 60
AGREEING = mpmath.mpf(10) ** -40
"""The relative difference up to which two numbers count as equal."""
BESIDE = mpmath.mpf(10) ** -6
"""The relative distance from an edge at which the density is looked at."""
HEIGHT = mpmath.mpf(10) ** -13
"""The relative height above the real axis at which the density is looked at."""
POINTS = 2
"""So many random points of the region are looked at for one mutant."""
TRIES = 300
"""So many points of the domains are drawn before a region counts as not met."""
SIZE = 3
"""Rows of the random matrices."""
MATRICES = ("block", "matrix", "kernel", "covariance")
ACTION = ("average", "source", "order_parameter")
"""Kinds whose formulas have scalar products or dyads of vectors."""
TERMS = ("kernel", "covariance", "law", "conjugate", "effective_action", "projected", *ACTION)
"""Kinds whose formulas are sums of terms to which no scalar can be added."""
VERBS = ("dot", "outer", "hat", "past", "tanh")
SELECTED = ("resolvent", "edges", "atom", "outlier", "threshold")
"""Kinds whose truth depends on the region."""
ATTACKED = ("a domain that ends", "a root in the declaration")
"""Models of claims that are held out, whose true claims are changed too."""
CHEAP = ("spiked_wigner", "anti_hebbian", "coupled_spikes")


@dataclass(frozen=True)
class Mutant:
    """A changed claim, the claim it comes from, and what was changed."""

    file: ClaimsFile
    original: Claim
    claim: Claim
    change: str

    def __str__(self) -> str:
        shown = {**dict(self.claim.keys), "region": " and ".join(self.claim.region)}
        return f"{self.file.path.name}, {self.original.name!r}, {self.change}: {shown}"


# how a claim is changed


def formulas(tree: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Changed copies of a formula, each with the name of its change."""
    text = ast.unparse(tree)
    for index, node in enumerate(ast.walk(tree)):
        for what, other in _others(node):
            copy = ast.parse(text, mode="eval").body
            if index == 0:
                yield what, other
                continue
            place = list(ast.walk(copy))[index]
            yield what, _Swap(place, other).visit(copy)


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.expr):
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else super().visit(node)


def _others(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """What may stand in the place of a node."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        flipped = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield "sign of a term", ast.BinOp(node.left, flipped, node.right)
        yield "a dropped term", node.left
    if isinstance(node, ast.Call):
        yield "other branch of a root", ast.UnaryOp(ast.USub(), node)
    if isinstance(node, ast.Attribute):
        yield "a transposed block", node.value
    if isinstance(node, ast.Subscript):
        yield "a transposed block", ast.Attribute(node, "T", ast.Load())
        if isinstance(node.slice, ast.Tuple):
            swapped = ast.Tuple(node.slice.elts[::-1], ast.Load())
            yield "swapped fields", ast.Subscript(node.value, swapped, ast.Load())
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        yield "another number", ast.Constant(node.value + 1)
    if isinstance(node, ast.Name) and node.id not in ("I", "C", "R", "sqrt", "exp", "log", *VERBS):
        yield "positive values only", ast.parse(f"sqrt({node.id}**2)", mode="eval").body


def changed(text: str, work: ClaimContext, kind: str) -> Iterator[tuple[str, str]]:
    """Changed formulas of one formula."""
    signed = {f"sqrt({p.name} ** 2)" for p in work.parameters if p.domain.low >= 0}  # the same for positive ones
    if work.letters is not None:  # no Python, such as R^{psi_0 r^0}
        yield from _changed_signs(text)
        return
    for what, tree in formulas(ast.parse(text.strip(), mode="eval").body):
        if (
            re.search(r"\[[^]]*sqrt", ast.unparse(tree))
            or what == "positive values only"
            and kind in TERMS
            and any(f"sqrt({name} ** 2)" in ast.unparse(tree) for name in _vectors(work))
            or what == "positive values only"
            and any(part in ast.unparse(tree) for part in signed)
        ):
            continue
        yield what, ast.unparse(ast.fix_missing_locations(tree))
    one = "*I" if kind in ("block", "matrix") else ""
    yield "sign", f"-({text})"
    yield "factor", f"2*({text})"
    if kind not in TERMS:
        yield "a tiny term", f"{text} + 1e-13{one}"
        for p in work.parameters:
            default = Fraction(repr(p.default) if isinstance(p.default, float) else p.default)
            yield "true at the defaults", f"{text} + ({p.name} - {default}){one}"
            if p.domain.whole:
                near = "*".join(f"({p.name} - {int(default) + k})" for k in range(3))
                yield f"true for three values of {p.name}", f"{text} + {near}{one}"


def _changed_signs(text: str) -> Iterator[tuple[str, str]]:
    """A formula with the sign of one term, or of all, changed, and twice the formula."""
    for match in re.finditer(r" [+-] ", text):
        flipped = " - " if match[0] == " + " else " + "
        yield "sign of a term", text[: match.start()] + flipped + text[match.end() :]
    yield "sign", f"-({text})"
    yield "factor", f"2*({text})"


def _vectors(work: ClaimContext) -> tuple[str, ...]:
    """The names that stand for vectors and matrices in formulas of terms."""
    unknowns = work.blocks.labels if work.probed else ()
    sources = (f"source_{name}" for name in work.fields)
    matrices = (matrix.name for matrix in (*work.disorder, *work.weights))
    return (*work.fields, *unknowns, *sources, *matrices, "j")


def mutants(file: ClaimsFile, work: ClaimContext) -> Iterator[Mutant]:
    """All changes of all claims of a file."""
    for claim in file.claims:
        keys = dict(claim.keys)

        def made(change: str, claim: Claim = claim, region: Any = None, **new: Any) -> Mutant:
            merged = tuple({**dict(claim.keys), **new}.items())
            within = claim.region if region is None else region
            return Mutant(file, claim, replace(claim, keys=merged, region=within), change)

        value = keys["value"]
        if claim.kind == "symmetry":
            for group in LabelGroup:
                if group.value != value:
                    yield made("another group", value=group.value)
            continue
        rows = [value] if isinstance(value, str) else list(value)
        for i, row in enumerate(rows):
            for j, text in enumerate([row] if isinstance(row, str) else row):
                for what, other in changed(text, work, claim.kind):
                    if isinstance(row, str):
                        new: Any = other if isinstance(value, str) else (*rows[:i], other, *rows[i + 1 :])
                    else:
                        new = (*rows[:i], (*row[:j], other, *row[j + 1 :]), *rows[i + 1 :])
                    yield made(what, value=new)
        if "noises" in keys:
            yield made("swapped noises", noises=tuple(reversed(keys["noises"])))
        if "row" in keys:
            yield made("a transposed block", row=keys["column"], column=keys["row"])
        if "size" in keys:
            for what, other in changed(keys["size"], work, "size"):
                yield made(what, size=other)
        if "at" in keys:
            yield Mutant(file, claim, replace(claim, keys=tuple(k for k in claim.keys if k[0] != "at")), "no values")
        if claim.region:
            yield made("no region", region=())
            for text in _regions(" and ".join(claim.region)):
                yield made("another region", region=(text,))
        elif claim.kind in SELECTED:
            for p in work.parameters[:2]:
                yield made("a smaller region", region=(f"{p.name} < {Fraction(p.default).limit_denominator(100)}",))


def _regions(text: str) -> Iterator[str]:
    """Regions with moved or reversed inequalities."""
    tree = ast.parse(text, mode="eval").body
    for index, node in enumerate(ast.walk(tree)):
        if not isinstance(node, ast.Compare):
            continue
        for share in (Fraction(1, 3), Fraction(99, 100), Fraction(101, 100)):
            copy = ast.parse(text, mode="eval").body
            place: Any = list(ast.walk(copy))[index]
            place.comparators[0] = ast.parse(f"({ast.unparse(node.comparators[0])})*{share}", mode="eval").body
            yield ast.unparse(ast.fix_missing_locations(copy))
        copy = ast.parse(text, mode="eval").body
        place = list(ast.walk(copy))[index]
        place.ops[0] = ast.Lt() if isinstance(node.ops[0], (ast.Gt, ast.GtE)) else ast.Gt()
        yield ast.unparse(copy)


# numbers


class _Exact(ast.NodeTransformer):
    """Numbers of a formula as numbers of mpmath."""

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        return ast.Call(ast.Name("number", ast.Load()), [ast.Constant(str(node.value))], [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        letters = ast.Name(f"letters_{ast.unparse(node.value)}", ast.Load())  # a parameter may be named C
        return ast.Subscript(letters, ast.Constant(ast.unparse(node.slice)), ast.Load())


@dataclass
class Letters:
    """Random matrices: C[b,a] is the transpose of C[a,b], responses have no symmetry."""

    kind: str
    draw: random.Random
    known: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, index: str) -> Any:
        a, b = index.strip("()").replace(" ", "").split(",")
        key, other = f"{a},{b}", f"{b},{a}"
        if key not in self.known:
            if self.kind == "C" and other in self.known:
                return self.known[other].T
            made = random_matrix(self.draw)
            self.known[key] = made + made.T if self.kind == "C" and a == b else made
        return self.known[key]


def random_matrix(draw: random.Random) -> Any:
    return mpmath.matrix(SIZE, SIZE).apply(lambda _: mpmath.mpf(draw.randint(-99, 99)) / draw.randint(1, 40))


@dataclass(frozen=True)
class Bilinear:
    """A scalar product of vectors at two times; in a product of two both times are summed over."""

    value: Any

    def __add__(self, other: Any) -> Any:
        return Bilinear(self.value + other.value) if isinstance(other, Bilinear) else NotImplemented

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __neg__(self) -> Bilinear:
        return Bilinear(-self.value)

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, Bilinear):
            return mpmath.fsum(a * b for a, b in zip(list(self.value), list(other.value), strict=True))
        return Bilinear(other * self.value)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Bilinear:
        return Bilinear(self.value / other)

    @property
    def T(self) -> Bilinear:
        return Bilinear(self.value.T)


class Numbers:
    """Formulas of a claim as numbers at one random point of its region; None stands for what cannot be evaluated."""

    def __init__(self, work: ClaimContext, claim: Claim, draw: random.Random):
        self.work, self.claim = work, claim
        self.point = self._drawn(draw)
        self.names: dict[str, Any] = {
            **{name: random_matrix(draw) for name in work.fields},  # the fields that kernels carry
            **{p.name: mpmath.mpf(v.numerator) / v.denominator for p, v in self.point.items()},
            "letters_C": Letters("C", draw),
            "letters_R": Letters("R", draw),
            "I": mpmath.eye(SIZE),
            "pi": mpmath.pi,
            "number": mpmath.mpf,
            "sqrt": mpmath.sqrt,
            "exp": mpmath.exp,
            "log": mpmath.log,
            "tanh": mpmath.tanh,
            "i": mpmath.j,
        }
        if claim.kind in TERMS:
            self.names = {**self._of_terms(claim, draw), **self.names}
        if claim.kind == "weights":
            matrices = (*work.disorder, *work.weights)
            self.names = {
                **self._of_terms(claim, draw),
                **{str(m): random_matrix(draw) for m in matrices},
                **self.names,
            }
            self.names["outer"] = lambda a, b: a * b.T
        if claim.kind in ACTION:
            self.names |= self._of_actions()
        if claim.kind == "law" and any(f.rule.laws for f in work.system.fields if f.field.name == claim.get("target")):
            self.names |= {name: mpmath.mpf(draw.randint(-99, 99)) / 60 for name in work.fields}

    def _of_terms(self, claim: Claim, draw: random.Random) -> dict[str, Any]:
        """Sizes, random matrices, unknowns and sources, by name."""
        earlier, size = random_matrix(draw), mpmath.mpf(draw.randint(10, 99)) / 7
        point = {p: sp.Rational(v.numerator, v.denominator) for p, v in self.point.items()}
        sizes = {s.name: size * mpmath.mpmathify(s.ratio.subs(point).evalf(DIGITS)) for s in self.work.system.sectors}
        vectors = {name: random_matrix(draw) for name in _vectors(self.work)}
        return {**sizes, **vectors, "past": lambda x: earlier * x}

    def _of_actions(self) -> dict[str, Any]:
        """Scalar products and dyads of fields and their response fields, and C and R made of them."""
        hats = {id(self.names[name]): random_matrix(random.Random(name)) for name in self.work.fields}

        def hat(vector: Any) -> Any:
            return hats[id(vector)]

        def dot(a: Any, b: Any) -> Bilinear:
            return Bilinear(a * b.T)

        class Defined:
            def __init__(self, numbers: Numbers, response: bool):
                self.numbers, self.response = numbers, response

            def __getitem__(self, index: str) -> Bilinear:
                names, fields = self.numbers.names, self.numbers.work.fields
                a, b = index.strip("()").replace(" ", "").split(",")
                size = names[fields[a].sector.name]
                return (
                    dot(names[a], hat(names[b])) * (-mpmath.j / size)
                    if self.response
                    else dot(names[a], names[b]) / size
                )

        letters = {"letters_C": Defined(self, False), "letters_R": Defined(self, True)}
        return {**letters, "hat": hat, "dot": dot, "outer": lambda a, b: a.T * b}

    def _drawn(self, draw: random.Random) -> dict[Any, Fraction]:
        fixed = dict(self.claim.get("at", ()))
        for _ in range(TRIES):
            point = {p: Fraction(fixed[p.name]) if p.name in fixed else _value(p, draw) for p in self.work.parameters}
            self.names = {p.name: mpmath.mpf(v.numerator) / v.denominator for p, v in point.items()}
            self.names |= {"number": mpmath.mpf, "sqrt": mpmath.sqrt}
            if all(p.domain.contains(float(v)) for p, v in point.items()) and all(
                self(text) for text in self.claim.region
            ):
                return point
        raise NotMet

    def __call__(self, text: str, claim: Claim | None = None, **given: Any) -> Any:
        """The value of a formula; names that the claim defines are put in."""
        define = dict((claim or self.claim).define)
        names = {**self.names, **given}
        for name, inner in define.items():
            if name in {n.id for n in ast.walk(ast.parse(text.strip(), mode="eval")) if isinstance(n, ast.Name)}:
                names[name] = self(inner, replace(claim or self.claim, define=tuple(_without(define, name))), **given)
        tree = ast.fix_missing_locations(ast.Expression(_Exact().visit(ast.parse(text.strip(), mode="eval").body)))
        return eval(compile(tree, "<formula>", "eval"), {"__builtins__": {}}, names)  # noqa: S307

    @property
    def rational(self) -> dict[Any, Any]:
        return {p: sp.Rational(v.numerator, v.denominator) for p, v in self.point.items()}

    def physical(self, z: Any) -> dict[Any, Any]:
        """The responses of the bulk at a point z, by Newton's method from far above."""
        projected = self.work.bulk.projected
        return physical_values(projected.algebraic, projected.bulk_symbols, self.rational, DIGITS, z)

    def bulk_names(self, z: Any) -> dict[str, Any]:
        values = self.physical(z)
        named = {"z": values.pop(Z), **{s.name: v for s, v in values.items()}}
        return {**named, "G": values[self.work.bulk.projected.resolvent]}

    def dense(self, x: Any) -> bool:
        """Whether the density is positive at a real number that is no edge: Im G does not vanish with the height."""
        projected = self.work.bulk.projected
        scale = abs(x) or mpmath.mpf(1)  # next to a point mass at zero the height must be small beside x
        heights = (HEIGHT * scale, HEIGHT * scale / 100)
        points = (mpmath.mpc(x, height) for height in heights)
        values = (physical_values(projected.algebraic, projected.bulk_symbols, self.rational, 30, z) for z in points)
        high, low = (abs(mpmath.im(value[projected.resolvent])) for value in values)
        return bool(10 * low > high)

    @cached_property
    def beyond(self) -> Any:
        """A real number above the spectrum: all edges are among the roots of a few polynomials."""
        factors = [f.subs(self.rational) for f in self.work.bulk.edge_factors if f.has(Z)]
        roots = [abs(root) for f in factors for root in sp.Poly(f, Z).nroots(15, maxsteps=200)]
        if roots:
            return 1 + mpmath.mpf(str(2 * max(roots)))
        x = mpmath.mpf(4) ** 9
        while not self.dense(x / 4) and not self.dense(x / 5) and x > 8:
            x /= 2
        return x


class NotMet(Exception):
    """No point of a region was drawn, or there is nothing to hold a claim against."""


def _without(define: dict[str, str], name: str) -> Iterator[tuple[str, str]]:
    return ((n, text) for n, text in define.items() if n != name)


def _value(parameter: Any, draw: random.Random) -> Fraction:
    low, high = parameter.domain.low, parameter.domain.high
    if parameter.domain.whole:
        return Fraction(max(int(low), 1) + draw.randint(0, 40) if low > -1e9 else draw.randint(-40, 40))
    if low > -1e9 and high < 1e9:
        return Fraction(low) + (Fraction(high) - Fraction(low)) * Fraction(draw.randint(1, 96), 97)
    size = Fraction(draw.randint(1, 97), draw.choice((1, 7, 23, 89)))
    if low > -1e9:
        return Fraction(low) + size
    return size * draw.choice((1, -1))


def equal(a: Any, b: Any) -> bool:
    """Whether two numbers or matrices agree; the number zero is the matrix zero."""
    if isinstance(a, mpmath.matrix) != isinstance(b, mpmath.matrix):
        a, b = (x if isinstance(x, mpmath.matrix) else x * mpmath.eye(SIZE) for x in (a, b))
    if isinstance(a, Bilinear) and isinstance(b, Bilinear):
        a, b = a.value, b.value
    if isinstance(a, mpmath.matrix):
        return all(equal(x, y) for x, y in zip(list(a), list(b), strict=True))
    return bool(abs(a - b) <= AGREEING * max(1, abs(a), abs(b)))


# whether a mutant is true


def holds(work: ClaimContext, mutant: Mutant, draw: random.Random) -> bool | None:
    """Whether numbers agree with a claim at random points of its region.

    None where none was drawn, and for claims in the letters of a source.
    """
    if work.letters is not None:  # numbers are known by the names of the model
        return None
    looked = False
    with mpmath.workdps(DIGITS):
        for _ in range(POINTS):
            try:
                numbers = Numbers(work, mutant.claim, draw)
                if not _TRUE.get(mutant.claim.kind, _as_before)(numbers, mutant):
                    return False
                looked = True
            except (NotMet, ZeroDivisionError):
                continue
    return True if looked else None


def _as_before(numbers: Numbers, mutant: Mutant) -> bool:
    """Whether the changed formulas have the values of the original ones, which are unique."""
    old, new = dict(mutant.original.keys), dict(mutant.claim.keys)
    spectral = mutant.claim.kind in ("block", "matrix", "scalar_map", "projected") and numbers.work.probed
    given = numbers.bulk_names(numbers.beyond) if spectral else {"G": mpmath.mpf(3) / 7}
    given |= {"dtau": given["z"]} if spectral else {}
    if old.get("noises") != new.get("noises"):
        return _symmetric(numbers, mutant)
    if (old.get("row"), old.get("column")) != (new.get("row"), new.get("column")):
        there = [c for c in mutant.file.claims if (c.get("row"), c.get("column")) == (new["row"], new["column"])]
        if not there:
            raise NotMet
        return equal(numbers(there[0].get("value"), there[0], **given), numbers(new["value"], **given))
    if "size" in new and not equal(numbers(old["size"]), numbers(new["size"])):
        return False
    texts = [_flat(keys["value"]) for keys in (old, new)]
    if mutant.claim.kind == "critical":
        values = [sorted((numbers(t) for t in text), key=lambda x: (mpmath.re(x), mpmath.im(x))) for text in texts]
        return len(values[0]) == len(values[1]) and all(map(equal, *values))
    return all(equal(numbers(a, **given), numbers(b, **given)) for a, b in zip(*texts, strict=True))


def _flat(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [text for item in value for text in _flat(item)]


def _symmetric(numbers: Numbers, mutant: Mutant) -> bool:
    """A covariance of a noise with itself, or of two whose value is its own transpose."""
    found = numbers(mutant.claim.get("value"))
    return len(set(mutant.claim.get("noises"))) == 1 or not isinstance(found, mpmath.matrix) or equal(found, found.T)


def _resolvent(numbers: Numbers, mutant: Mutant) -> bool:
    names = numbers.bulk_names(numbers.beyond)
    return equal(numbers(mutant.claim.get("value"), **names), names["G"])


def _equation(numbers: Numbers, mutant: Mutant) -> bool:
    return equal(numbers(mutant.claim.get("value"), **numbers.bulk_names(numbers.beyond)), mpmath.mpf(0))


def _curve(numbers: Numbers, mutant: Mutant) -> bool:
    """Whether two curves are multiples of each other at three places."""
    ratios = []
    for z, g in ((2, 3), (-1, 5), (7, -2)):
        given = {"z": mpmath.mpf(z), "G": mpmath.mpf(g) / 11}
        ratios.append([numbers(m.get("value"), m, **given) for m in (mutant.original, mutant.claim)])
    return all(equal(a * d, b * c) for (a, b), (c, d) in zip(ratios, ratios[1:], strict=False))


def _edges(numbers: Numbers, mutant: Mutant) -> bool:
    values = [numbers(text) for text in mutant.claim.get("value")]
    if any(abs(mpmath.im(v)) > AGREEING for v in values):
        return False
    edges = sorted(mpmath.re(v) for v in values)
    size = max(map(abs, edges)) or mpmath.mpf(1)
    for edge in edges:
        if (
            numbers.dense(edge - BESIDE * abs(edge)) == numbers.dense(edge + BESIDE * abs(edge))
            and abs(edge) > AGREEING
        ):
            return False
    marks = sorted([-3 * size, mpmath.mpf(0), *edges, 3 * size])
    for low, high in zip(marks, marks[1:], strict=False):
        if high - low > 4 * BESIDE * size and len({numbers.dense(low + (high - low) * k / 9) for k in range(1, 9)}) > 1:
            return False
    exact = [t for t in zip(mutant.original.get("value"), mutant.claim.get("value"), strict=False) if t[0] != t[1]]
    return all(any(equal(numbers(new), numbers(old)) for old in mutant.original.get("value")) for _, new in exact)


def _atom(numbers: Numbers, mutant: Mutant) -> bool:
    near = mpmath.mpf(10) ** -24
    place = numbers(mutant.claim.get("position"))
    values = numbers.physical(mpmath.mpc(place, near))
    mass = values[numbers.work.bulk.projected.resolvent] * mpmath.mpc(0, near)
    return bool(abs(mass - numbers(mutant.claim.get("value"))) < mpmath.mpf(10) ** -9)


def _outlier(numbers: Numbers, mutant: Mutant) -> bool:
    """Whether an eigenvalue of a pencil is the value of the map there, outside the bulk."""
    value = numbers(mutant.claim.get("value"))
    if abs(mpmath.im(value)) > AGREEING:
        return False
    z = mpmath.re(value)
    if any(numbers.dense(z + shift) for shift in (0, BESIDE, -BESIDE)):
        return False
    at = numbers.physical(z)
    for problem in CaseSpikes(Case.of(numbers.work.matrix, None, {})).problems:
        level = _evaluated(problem.scalar_map, {**numbers.rational, **at})
        if equal(_evaluated(problem.characteristic, {**numbers.rational, MAP: level}), mpmath.mpf(0)):
            return True
    return False


def _threshold(numbers: Numbers, mutant: Mutant) -> bool:
    """Whether an edge has an eigenvalue as the value of the map, at the claimed value of the parameter."""
    value = numbers(mutant.claim.get("value"))
    (parameter,) = (p for p in numbers.work.parameters if p.name == mutant.claim.get("parameter"))
    if abs(mpmath.im(value)) > AGREEING or not parameter.domain.contains(float(mpmath.re(value))):
        return False
    point = {**numbers.rational, parameter: mpmath.re(value)}
    factors = [f.subs(numbers.rational) for f in numbers.work.bulk.edge_factors if f.has(Z)]
    for edge in (mpmath.mpf(str(r)) for f in factors for r in sp.Poly(f, Z).nroots(30) if abs(sp.im(r)) < 1e-20):
        sides = [edge - BESIDE, edge + BESIDE]
        if numbers.dense(sides[0]) == numbers.dense(sides[1]):
            continue
        outside = next(x for x in sides if not numbers.dense(x))
        at = numbers.physical(edge + (outside - edge) * BESIDE)
        for problem in CaseSpikes(Case.of(numbers.work.matrix, None, {})).problems:
            level = _evaluated(problem.scalar_map, {**point, **at})
            if abs(_evaluated(problem.characteristic, {**point, MAP: level})) < mpmath.mpf("1e-4"):
                return True
    return False


def _inverse_map(numbers: Numbers, mutant: Mutant) -> bool:
    cycle = numbers.work.cycle(mutant.claim)
    scalar_map = without_averages(cycle.scalar_map)
    places = [numbers.beyond * k for k in (1, -1)]
    for z in (x for x in places if not numbers.dense(x)):
        level = _evaluated(scalar_map, {**numbers.rational, **numbers.physical(z)})
        if not equal(numbers(mutant.claim.get("value"), s=mpmath.re(level)), z):
            return False
    return True


def _evaluated(expression: sp.Expr, values: dict[Any, Any]) -> Any:
    symbols = sorted(expression.free_symbols, key=str)
    given = [mpmath.mpmathify(values[s]) if not isinstance(values[s], sp.Basic) else _mp(values[s]) for s in symbols]
    return mpmath.mpmathify(sp.lambdify(symbols, expression, "mpmath")(*given))


def _mp(value: sp.Rational) -> Any:
    return mpmath.mpf(int(value.p)) / int(value.q)


_TRUE = {
    "resolvent": _resolvent,
    "equation": _equation,
    "curve": _curve,
    "edges": _edges,
    "atom": _atom,
    "outlier": _outlier,
    "threshold": _threshold,
    "inverse_map": _inverse_map,
    "symmetry": lambda numbers, mutant: False,  # an axis has one group
}
"""How the kinds are checked in which more than one formula may be true, or which depend on a branch."""


# the attack


def works(directory: Path, only: tuple[str, ...] | None = None) -> Iterator[ClaimContext]:
    """The claims of the project and the true ones on models with bands and spikes, each with its derivation."""
    files = [load_claims(path) for path in project_claims()]
    own = {name: (model, [b for b, told in claims if told == "proved"]) for name, (model, *claims) in CLAIMS.items()}
    for name in ATTACKED:
        model, *claims = HELD_OUT[name]
        own[name] = model, [body for true, body in claims if true]
    for name, (model, bodies) in own.items():
        if "MODEL" not in model:
            continue
        place = directory / name.replace(" ", "_")
        place.mkdir()
        (place / "model.py").write_text(model)
        tables = [f'[[claim]]\nname = "c{i}"\n{body}\n' for i, body in enumerate(bodies)]
        (place / "claims.toml").write_text('model = "model.py"\n' + "".join(tables))
        files.append(load_claims(place / "claims.toml"))
    for file in files:
        if only is None or file.model in only or file.path.parent.name in only:
            yield claim_context(file)


def attack(count: int | None, seed: int, directory: Path, only: tuple[str, ...] | None = None) -> tuple[Any, list[str]]:
    """How many mutants had each verdict, and those that were proved although numbers are against them."""
    draw, told, wrong = random.Random(seed), Counter[str](), []
    drawn = [(work, mutant) for work in works(directory, only) for mutant in mutants(work.file, work)]
    if count is not None and count < len(drawn):
        drawn = [drawn[i] for i in sorted(draw.sample(range(len(drawn)), count))]
    for work, mutant in drawn:
        try:
            status = _verdict(work, mutant.claim).status
        except DeriveError as error:
            status = "refused" if isinstance(error, ClaimError) else f"refused ({type(error).__name__})"
        told[status] += 1
        if status == PROVED:
            true = holds(work, mutant, draw)
            told[f"proved, {'true' if true else 'not checked' if true is None else 'FALSE'}"] += 1
            if true is False:
                wrong.append(str(mutant))
    return told, wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=None, help="so many mutants, drawn at random; all without it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", help="models, all without it")
    given = parser.parse_args()
    start = time.process_time()
    with tempfile.TemporaryDirectory() as directory:
        told, wrong = attack(given.count, given.seed, Path(directory), tuple(given.only) if given.only else None)
    for status, number in sorted(told.items()):
        print(f"{status:25} {number}")
    print(*wrong, f"{time.process_time() - start:.0f} s of processor time", sep="\n")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
