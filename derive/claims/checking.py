"""Decide each claim against the records of the derivation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import mpmath
import sympy as sp
from sympy.core.function import PoleError

from derive.algebra.many_digits import all_roots, exact, vanishes
from derive.algebra.nodes import Z
from derive.algebra.physical import physical_values
from derive.algebra.words import Letter
from derive.claims.equality import (
    FAILED,
    PROVED,
    UNDECIDED,
    WORKING_DIGITS,
    Bench,
    Comparison,
    close,
    follow_branch,
    number,
    vanishes_identically,
)
from derive.claims.formulas import Carrier, Matrix, Reader, shown
from derive.claims.reading import Claim, ClaimsFile
from derive.claims.region import POINTS, Point, Region
from derive.errors import ClaimError, DeriveError, NumericalError
from derive.expansions.cases import Case
from derive.expansions.infinity import moments_of_system
from derive.expansions.limits import SMALL as EPSILON, Limit
from derive.expansions.quantities import expand_quantity
from derive.expansions.spikes import Eigenproblem, Spikes
from derive.language.model import Model
from derive.language.symbols import Parameter
from derive.language.vectors import Field
from derive.loading import load_model
from derive.pipeline import Derivation, derive_model
from derive.records.probe import MAP, BlockMatrix, Bulk, Cycle

SMALL = sp.Symbol("x", positive=True)
"""What a series is expanded in."""

MORE_POINTS = 3
"""So many further points, far from the defaults, where a claim is about one branch of several."""

_TRAINING_KINDS = ("kernel", "covariance")
_CURVE_KINDS = ("resolvent", "curve", "edges", "atom")


@dataclass(frozen=True)
class Verdict:
    """What became of a claim. `status` is "proved", "FAILED" or "not decided".

    "FAILED" comes with a counterexample, in `detail`; "not decided" with what was tried.
    """

    name: str
    status: str
    detail: str
    kind: str = ""
    where: str = ""

    @property
    def holds(self) -> bool:
        return self.status == PROVED

    @property
    def failed(self) -> bool:
        return self.status == FAILED


def check_claims(file: ClaimsFile, derivation: Derivation | None = None) -> list[Verdict]:
    """A verdict for each claim, in the order of the file. Without a derivation the model is loaded and derived."""
    work = _Work(file, derive_model(model_of(file)) if derivation is None else derivation)
    return [work.verdict(claim) for claim in file.claims]


def model_of(file: ClaimsFile) -> Model:
    """The model that a claims file is about; a path is taken relative to the file."""
    target = str(Path(file.path).parent / file.model) if file.model.endswith(".py") else file.model
    model = load_model(target, dict(file.choices))
    labels = [label for label, _ in model.probes]
    if file.layer and file.layer not in labels:
        raise ClaimError(f"{file.path}: there is no layer {file.layer!r}; the layers are {', '.join(labels)}")
    return model.probing(file.layer) if file.layer else model


class _Work:
    def __init__(self, file: ClaimsFile, derivation: Derivation):
        self.file = file
        self.probed = bool(derivation.probes)
        self.system, self.saddle = derivation.system, derivation.saddle
        if self.probed:
            self.matrix = derivation.probes.get(file.layer, derivation.first)
            self.system, self.saddle = self.matrix.system, derivation.saddle.joined(self.matrix.saddle)
            self.bulk, self.blocks = self.matrix.bulk, self.matrix.blocks
        self.parameters = self.system.model.parameters
        self.fields = {f.name: f for f in (*(s.field for s in self.system.fields), *self.system.sources)}
        self.benches: dict[tuple[str, ...], Bench] = {}
        self.spikes: dict[tuple[Any, ...], Spikes] = {}
        self.edges: dict[tuple[Any, ...], list[Any]] = {}

    def verdict(self, claim: Claim) -> Verdict:
        if claim.kind not in _TRAINING_KINDS and not self.probed:
            raise ClaimError(
                f"{self.place(claim)}: {self.file.model} probes no spectrum, so there is nothing to hold a "
                f"{claim.kind} against; add probe=spectrum(...) to the model"
            )
        if claim.kind in _CURVE_KINDS and self.bulk.curve is None:
            raise ClaimError(
                f"{self.place(claim)}: the bulk of {self.file.model} is too large to eliminate to a curve; claim "
                "moments and equations between its responses instead"
            )
        self.bench = self._bench(claim)
        decide: Callable[[Claim], tuple[str, str]] = getattr(self, f"_{claim.kind}")
        try:
            status, detail = decide(claim)
        except NumericalError as error:
            status, detail = UNDECIDED, str(error)
        if claim.region and status != FAILED:
            detail += f", for {' and '.join(claim.region)}"
        return Verdict(claim.name, status, detail, claim.kind, claim.where)

    def _bench(self, claim: Claim) -> Bench:
        """The bench of the claim's region; its points are found once."""
        if claim.region not in self.benches or claim.region and claim.define:
            reader = self.reader(claim)
            conditions = tuple(c for text in claim.region for c in reader.inequalities(text))
            region = Region(self.place(claim), tuple(self.parameters), " and ".join(claim.region), conditions)
            bench = Bench(region, self.bulk if self.probed else None)
            if conditions:
                region.box, bench.points  # noqa: B018  (an empty region is refused before anything is decided)
            self.benches[claim.region] = bench
        return self.benches[claim.region]

    def place(self, claim: Claim) -> str:
        return f"{self.file.path.name}, claim {claim.name!r}"

    def reader(self, claim: Claim, *names: str, matrices: bool = False, carriers: bool = False) -> Reader:
        known: dict[str, sp.Expr] = {"z": Z, "s": MAP, "x": SMALL}
        if self.probed:
            known["G"] = self.bulk.projected.resolvent
        scalars = {p.name: p for p in self.parameters}
        scalars = {**{name: known[name] for name in names}, "pi": sp.pi, **scalars}
        return Reader(self.place(claim), scalars, self.fields if matrices else None, carriers, dict(claim.define))

    # the bulk

    @property
    def curve(self) -> sp.Expr:
        """The curve, for claims that are refused where there is none."""
        return cast(sp.Expr, self.bulk.curve)

    def _resolvent(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim, "z").scalar(claim.get("value"))
        root, curve = self.bulk.projected.resolvent, self.curve
        left_of_bulk = True
        for point in self.bench.points:
            size = 50 * (1 + sum(abs(v) for v in point.values()))
            for side in (sp.S.One, sp.Rational(1, 10), sp.S.NegativeOne):
                with mpmath.workdps(WORKING_DIGITS):
                    z = mpmath.mpc(int(side * size), int(size) / mpmath.mpf(10**4))
                    found, physical = number(value, {**point, Z: z}), follow_branch(curve, root, point, z)
                if close(found, physical) or mpmath.isnan(found):
                    continue
                on_curve = close(number(curve.subs(root, value), {**point, Z: z}), mpmath.mpf(0))
                if side > 0 or not on_curve:
                    there = ", ".join(filter(None, (f"z = {mpmath.nstr(z, 6)}", _at(point, value, curve))))
                    return FAILED, (
                        f"derived {_curve_text(self.bulk)}; at {there} "
                        f"the claim is {mpmath.nstr(found, 8)}, the derivation {mpmath.nstr(physical, 8)}"
                    )
                left_of_bulk = False
        proved = self._vanishes(curve.subs(root, value)) or sp.simplify(curve.subs(root, value)) == 0
        branch = "the branch that is 1/z at infinity"
        if not left_of_bulk:
            branch += " to the right of the bulk (to its left the principal root has the other sign)"
        if proved:
            return PROVED, f"satisfies {_curve_text(self.bulk)}; {branch}"
        return UNDECIDED, f"agrees to 50 digits with the solution of {_curve_text(self.bulk)}; no symbolic proof found"

    def _vanishes(self, expression: sp.Expr) -> bool:
        """By algebra in the parameters alone: as it stands, or with the roots drawn that the region allows."""
        return vanishes_identically(expression) or vanishes_identically(expression, box=self.bench.region.box)

    def _curve(self, claim: Claim) -> tuple[str, str]:
        value = sp.fraction(sp.together(self.reader(claim, "z", "G").scalar(claim.get("value"))))[0]
        root, curve = self.bulk.projected.resolvent, self.curve
        try:
            derived, claimed = sp.Poly(curve, root, Z), sp.Poly(value, root, Z) if value.has(root) else None
        except sp.PolynomialError:
            raise ClaimError(f"{self.place(claim)}: {value} is not a polynomial in z and G") from None
        told = f"derived {_curve_text(self.bulk)}, claimed {sp.expand(value)} = 0"
        if claimed is None or claimed.degree(root) != derived.degree(root):
            return FAILED, f"{told}; the degrees in G differ"
        terms, others = derived.as_dict(), claimed.as_dict()
        lead = next(iter(derived.terms()))[0]
        status, detail = PROVED, f"a multiple of {_curve_text(self.bulk)}"
        for powers in dict.fromkeys((*terms, *others)):
            left = others.get(powers, sp.S.Zero) * terms[lead]
            right = terms.get(powers, sp.S.Zero) * others.get(lead, sp.S.Zero)
            result = self.bench.same(left, right)
            if result.status == FAILED:
                return FAILED, f"{told}; they are no multiples of each other: {result.evidence}"
            if result.status == UNDECIDED:
                status, detail = UNDECIDED, f"{told}; {result.evidence}"
        return status, detail

    def _equation(self, claim: Claim) -> tuple[str, str]:
        """An expression in z, G and the responses of the bulk that vanishes on the physical branch."""
        reader = self.reader(claim, "z", "G")
        responses = {s.name: s for s in self.bulk.projected.bulk_symbols}
        value = replace(reader, scalars={**responses, **reader.scalars}).scalar(claim.get("value"))
        if not value.free_symbols & {Z, *responses.values()}:
            raise ClaimError(
                f"{self.place(claim)}: {value} holds no response of the bulk; they are {', '.join(responses)}"
            )
        result = self.bench.same(value, sp.S.Zero)
        return self._told(result, value, sp.S.Zero, "residual", "modulo the bulk equations")

    def _edges(self, claim: Claim) -> tuple[str, str]:
        reader = self.reader(claim)
        values = [reader.scalar(text) for text in claim.get("value")]
        status, detail = PROVED, ""
        for value in values:
            results = [self.bench.same(factor.subs(Z, value), sp.S.Zero) for factor in self.bulk.edge_factors]
            best = min(results, key=lambda r: (PROVED, UNDECIDED, FAILED).index(r.status), default=Comparison(FAILED))
            if best.status == UNDECIDED:
                status, detail = UNDECIDED, f"; whether {_text(value)} is one of them: {best.evidence}"
        points: list[Point] = []
        for point in self.bench.region.points(POINTS + MORE_POINTS):
            if point not in points:
                points.append(point)
        for point in points:
            wrong = self._wrong_edges(values, point)
            if wrong:
                hint = "" if claim.region or not point else "; edges of one region only need region = ..."
                return FAILED, f"{self._edges_text()}; {wrong}{hint}"
        where = f"at {len(points)} points" if len(points) > 1 else "there"
        return status, f"{self._edges_text()}; the density ends at each, and nowhere else, {where}{detail}"

    def _edges_text(self) -> str:
        closed = all(sp.Poly(factor, Z).degree() <= 2 for factor in self.bulk.edge_factors)
        if closed and self.bulk.edges:
            return f"derived edges {', '.join(map(_text, self.bulk.edges))}"
        return f"derived edges among the roots of {' or '.join(map(str, self.bulk.edge_factors))}"

    def _wrong_edges(self, values: list[sp.Expr], point: Point) -> str:
        """What is wrong with claimed edges at one point; nothing if the density ends there and nowhere else.

        An end at zero where the density diverges may be claimed or left out.
        """
        at = _at(point, self.curve, *values)
        at = f"at {at} " if at else ""
        key = tuple(point.items())
        if key not in self.edges:
            self.edges[key] = [z for z in self._candidate_edges(point) if _density_ends(self.bulk, point, z)]
        open_ones = list(self.edges[key])
        for value in values:
            claimed = number(value, point)
            if mpmath.isnan(claimed):
                continue
            match = next((e for e in open_ones if abs(e - claimed) < mpmath.mpf(10) ** -12 * (1 + abs(e))), None)
            if match is None:
                there = ", ".join(mpmath.nstr(e, 8) for e in open_ones) or "none"
                return f"{_text(value)} is not among them: {at}it is {mpmath.nstr(claimed, 8)}, the others are {there}"
            open_ones.remove(match)
        left = [e for e in open_ones if abs(e) > mpmath.mpf(10) ** -20]
        return f"the claim leaves out {mpmath.nstr(left[0], 8)}{f' {at.strip()}' if at else ''}" if left else ""

    def _candidate_edges(self, point: Point) -> list[Any]:
        """Real roots of all edge factors at given parameters, each once."""
        found: list[Any] = []
        with mpmath.workdps(WORKING_DIGITS):
            for factor in self.bulk.edge_factors:
                for root in all_roots([number(c, point) for c in sp.Poly(factor, Z).all_coeffs()]):
                    if abs(mpmath.im(root)) < mpmath.mpf(10) ** -20 * (1 + abs(root)):
                        found.append(mpmath.re(root))
            return _distinct(found)

    def _atom(self, claim: Claim) -> tuple[str, str]:
        reader = self.reader(claim)
        position, weight = reader.scalar(claim.get("position")), reader.scalar(claim.get("value"))
        fixed = self._fixed(claim, reader)
        root, curve = self.bulk.projected.resolvent, self.curve.subs(fixed)
        position, weight = position.subs(fixed), weight.subs(fixed)
        condition = _residue_condition(sp.Poly(curve, root), position, weight)
        for point in self.bench.region.points(fixed=fixed):
            with mpmath.workdps(WORKING_DIGITS):
                place = number(position, point)
                above = mpmath.mpc(0, mpmath.mpf(10) ** -14)
                try:
                    measured = above * follow_branch(curve, root, point, place + above)
                except NumericalError:
                    return UNDECIDED, f"the physical branch could not be followed to {mpmath.nstr(place, 6)}"
                expected = number(weight, point)
                if abs(measured - expected) > mpmath.mpf(10) ** -5:
                    return FAILED, (
                        f"{_at(point, curve, weight)} the derived weight at {mpmath.nstr(place, 6)} is "
                        f"{mpmath.nstr(mpmath.re(measured), 8)}, the claim {mpmath.nstr(expected, 8)}"
                    )
        result = self.bench.same(condition, sp.S.Zero)
        if result.status == PROVED:
            return PROVED, f"the residue of the physical branch of {_curve_text(self.bulk)}"
        told = f"{weight} as the residue of {_curve_text(self.bulk)} at {position}"
        return result.status, f"{told}: {result.evidence}"

    def _fixed(self, claim: Claim, reader: Reader) -> Point:
        """The exact values that `at` gives to parameters."""
        names = {p.name: p for p in self.parameters}
        fixed: Point = {}
        for name, text in claim.get("at", ()):
            if name not in names:
                raise ClaimError(f"{self.place(claim)}: at names {name}, but the parameters are {', '.join(names)}")
            fixed[names[name]] = reader.scalar(text)
            if not fixed[names[name]].is_Rational:
                raise ClaimError(f"{self.place(claim)}: {name} = {text} in at is not a whole number or a fraction")
            if not names[name].domain.contains(float(fixed[names[name]])):
                raise ClaimError(
                    f"{self.place(claim)}: {name} = {text} is out of range: it must be {names[name].domain}"
                )
        return fixed

    def _moment(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim).scalar(claim.get("value"))
        order = claim.get("order")
        if order > 24:
            raise ClaimError(f"{self.place(claim)}: order {order} is beyond 24; claim a lower moment")
        derived = self._moments(order)[order]
        return self._told(self.bench.same(value, derived), value, derived, f"moment {order}")

    def _moments(self, order: int) -> list[sp.Expr]:
        projected = self.bulk.projected
        return moments_of_system(projected.bulk_equations, projected.bulk_symbols, projected.resolvent, order, {})

    def _series(self, claim: Claim) -> tuple[str, str]:
        of = claim.get("of")
        order = self.reader(claim).scalar(claim.get("order"))
        if not order.is_Integer:
            raise ClaimError(f"{self.place(claim)}: order must be a whole number; set the parameter to a power of x")
        value = self.reader(claim).scalar(claim.get("value"))
        if of == "resolvent" and claim.get("in", "z") == "z":
            if claim.get("set", "1/x").replace(" ", "") != "1/x" or not 0 <= order <= 25:
                raise ClaimError(f"{self.place(claim)}: the resolvent is expanded in x = 1/z to order 25 at most")
            derived = self._moments(int(order) - 1)[int(order) - 1] if order else sp.S.Zero
            return self._told(
                self.bench.same(value, derived), value, sp.factor(derived), f"coefficient of 1/z**{order}"
            )
        names = {p.name: p for p in self.parameters}
        if of == "inverse_map":
            names["s"] = MAP
        variable = claim.get("in")
        if variable not in names:
            raise ClaimError(f"{self.place(claim)}: in must be one of {', '.join(names)}, not {variable!r}")
        replaced = self.reader(claim, "x").scalar(claim.get("set", "x"))
        expression = self._quantity(claim, of)
        if expression is None and of in ("edge upper", "edge lower", "outlier"):
            found: tuple[str, str] = self._expanded_coefficient(claim, names[variable], replaced, int(order), value)
            return found
        if expression is None:
            return UNDECIDED, f"no closed form of {of} is derived, so its series cannot be taken"
        try:
            lift = max(0, -int(order)) + 1
            lifted = sp.expand(expression.subs(names[variable], replaced) * SMALL**lift)
            expanded = sp.series(lifted, SMALL, 0, int(order) + lift + 1).removeO()
        except (NotImplementedError, ValueError, PoleError):
            return UNDECIDED, f"{of} = {_text(expression)} has no power series there that SymPy finds"
        derived = sp.expand(expanded).coeff(SMALL, int(order) + lift)
        return self._told(
            self.bench.same(value, derived), value, sp.factor(derived), f"coefficient of x**{order} in {of}"
        )

    def _expanded_coefficient(
        self, claim: Claim, parameter: Parameter, replaced: sp.Expr, order: int, value: sp.Expr
    ) -> Any:
        """A coefficient of an edge or the largest outlier without a closed form, from its exact expansion."""
        base, power = replaced.as_base_exp()
        if base != SMALL or not power.is_Integer or power == 0:
            raise ClaimError(f"{self.place(claim)}: set must be a power of x here, such as x, 1/x or 1/x**2")
        limit = Limit(parameter, EPSILON if power > 0 else 1 / EPSILON)
        of = {"edge upper": "edge", "edge lower": "lower_edge"}.get(claim.get("of"), "outlier")
        wanted = sp.Rational(order, abs(power))
        try:
            found = expand_quantity(self.matrix, of, limit, wanted, {}).expansion
        except DeriveError as error:
            return UNDECIDED, f"{claim.get('of')} could not be expanded: {error}"
        derived = dict(zip(found.powers, found.coefficients, strict=True)).get(wanted, sp.S.Zero)
        return self._told(
            self.bench.same(value, derived),
            value,
            sp.factor(derived),
            f"coefficient of x**{order} in {claim.get('of')}",
        )

    def _quantity(self, claim: Claim, of: str) -> sp.Expr | None:
        if of in ("edge upper", "edge lower"):
            edges = self.bulk.edges
            return None if not edges else (edges[-1] if of == "edge upper" else edges[0])
        if of == "resolvent":
            return self.bulk.resolvent
        if of == "outlier":
            cycle = self._cycle(claim)
            return (
                None if cycle.inverse is None or cycle.eigenvalue is None else cycle.inverse.subs(MAP, cycle.eigenvalue)
            )
        if of == "inverse_map":
            return self._cycle(claim).inverse
        raise ClaimError(
            f"{self.place(claim)}: no series of {of!r}; of is edge upper, edge lower, resolvent, outlier or inverse_map"
        )

    # the reduction to an eigenproblem

    def _cycle(self, claim: Claim) -> Cycle:
        cycles = self.matrix.pencil.cycles
        wanted = claim.get("eigenproblem", 1)
        if not 1 <= wanted <= len(cycles):
            raise ClaimError(
                f"{self.place(claim)}: A(z) reduces to {len(cycles)} eigenproblems, there is no number {wanted}"
            )
        found: Cycle = cycles[wanted - 1]
        return found

    def _outlier(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim).scalar(claim.get("value"))
        fixed = self._fixed(claim, self.reader(claim))
        value = value.subs(fixed)
        if not self.matrix.pencil.cycles and "eigenproblem" not in dict(claim.keys):
            return (
                UNDECIDED,
                "outliers are zeros of det A(z) that no eigenproblem gives, so none is known in closed form",
            )
        cycle = self._cycle(claim)
        if cycle.eigenvalue is not None and cycle.inverse is not None:
            derived = sp.factor(cycle.inverse.subs(MAP, cycle.eigenvalue).subs(fixed))
            result = self.bench.same(value, derived)
            if result.status == FAILED or not claim.region:
                return self._told(result, value, derived, "z")
        try:
            spikes = self._spikes(fixed)
            problems = self._problems(claim, spikes)
            polynomials = [p for problem in problems for p in spikes.outlier_polynomials(problem)]
        except ClaimError:
            raise
        except DeriveError as error:
            return UNDECIDED, f"no closed form of the outliers was found: {error}"
        best = self._best([self.bench.same(p.subs(Z, value), sp.S.Zero) for p in polynomials])
        seen, tried = 0, 0
        for point in self.bench.region.points(POINTS + MORE_POINTS, fixed):
            if seen and tried >= POINTS and not claim.region:
                break  # without a region a claim is about the outlier near the defaults
            tried += 1
            wrong = self._wrong_outlier(spikes, problems, value, point)
            if wrong is None:
                seen += 1
            elif wrong or claim.region:
                told = wrong or f"at {_at(point, *polynomials, value)} there is no such outlier: it is in the bulk"
                return FAILED, f"claimed {_text(value)}; {told}"
        told = f"z is a root of {' or '.join(map(_text, polynomials))}"
        if best.status == FAILED:
            return FAILED, f"claimed {_text(value)}; {told}: {best.evidence}"
        if not seen:
            return UNDECIDED, f"{told}; none of {tried} points has such an outlier: give a region that does"
        told += f", outside the bulk at {seen} of {tried} points"
        return best.status, told if best.status == PROVED else f"{told}; {best.evidence}"

    def _spikes(self, fixed: Point) -> Spikes:
        """The eigenproblems, exact in all parameters that are not fixed; found once."""
        key = tuple(fixed.items())
        if key not in self.spikes:
            self.spikes[key] = Spikes(Case.of(self.matrix, None, fixed))
        return self.spikes[key]

    def _problems(self, claim: Claim, spikes: Spikes) -> list[Eigenproblem]:
        """The eigenproblem that a claim names, or all of them."""
        if claim.get("eigenproblem") is None:
            return spikes.problems
        self._cycle(claim)
        return [spikes.problems[claim.get("eigenproblem") - 1]]

    @staticmethod
    def _best(results: list[Comparison]) -> Comparison:
        return min(results, key=lambda r: (PROVED, UNDECIDED, FAILED).index(r.status), default=Comparison(FAILED))

    def _wrong_outlier(self, spikes: Spikes, problems: list[Eigenproblem], value: sp.Expr, point: Point) -> str | None:
        """None where the claimed value is an outlier at the point, a counterexample where it contradicts one.

        Empty where the point says nothing: the eigenvalue to which the value belongs gives no outlier there.
        """
        with mpmath.workdps(WORKING_DIGITS):
            return self._outlier_at(spikes, problems, value, point)

    def _outlier_at(self, spikes: Spikes, problems: list[Eigenproblem], value: sp.Expr, point: Point) -> str | None:
        claimed = number(value, point)
        if mpmath.isnan(claimed) or abs(mpmath.im(claimed)) > mpmath.mpf(10) ** -40 * (1 + abs(claimed)):
            return ""
        real, everything, contradicted, belongs = mpmath.re(claimed), [], False, False
        for problem in problems:
            for level in (s for factor in problem.factors for s in spikes.levels(problem, factor, point)):
                places = spikes.outliers_at(problem, level, point)
                everything += places
                if any(close(place, real, 25) for place in places):
                    return None
                if vanishes(problem.relation, {**point, Z: real, MAP: level}):
                    belongs, contradicted = True, contradicted or bool(places)
        if belongs and not contradicted:
            return ""
        there = ", ".join(mpmath.nstr(z, 8) for z in sorted(everything, reverse=True)) or "none"
        at = _at(point, value, *(f for p in problems for f in (*p.factors, p.relation)))
        return f"{f'at {at} ' if at else ''}it is {mpmath.nstr(real, 8)}, the outliers are {there}"

    def _mapped(self, cycle: Cycle, point: dict[sp.Symbol, Any], z: mpmath.mpc) -> mpmath.mpc:
        """The scalar map on the physical branch at a point."""
        projected = self.bulk.projected
        try:
            values = physical_values(projected.bulk_equations, projected.bulk_symbols, point, at=z)
        except (NumericalError, ZeroDivisionError):
            return None
        return number(cycle.scalar_map, {**point, **values})

    def _threshold(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim).scalar(claim.get("value"))
        names = {p.name: p for p in self.parameters}
        if claim.get("parameter") not in names:
            raise ClaimError(
                f"{self.place(claim)}: there is no parameter {claim.get('parameter')}; they are {', '.join(names)}"
            )
        parameter = names[claim.get("parameter")]
        fixed = self._fixed(claim, self.reader(claim))
        value = value.subs(fixed)
        if not self.matrix.pencil.cycles and "eigenproblem" not in dict(claim.keys):
            return UNDECIDED, "outliers are zeros of det A(z) that no eigenproblem gives: no threshold in closed form"
        if parameter in fixed or value.has(parameter):
            raise ClaimError(f"{self.place(claim)}: {parameter} is what the threshold is of; leave it out of the value")
        points = self.bench.region.points(POINTS + MORE_POINTS, fixed)
        cycle = self._cycle(claim)
        if cycle.eigenvalue is not None and cycle.critical:
            critical = ", ".join(map(_text, cycle.critical))
            known = f"derived: the eigenvalue {_text(cycle.eigenvalue)} must be one of {critical}"
            there = cycle.eigenvalue.subs(fixed).subs(parameter, value)
            results = [self.bench.same(there, c.subs(fixed).subs(parameter, value)) for c in cycle.critical]
        else:
            try:
                spikes = self._spikes(fixed)
                problems = self._problems(claim, spikes)
                polynomials = [p for problem in problems for p in spikes.threshold_polynomials(problem)]
            except ClaimError:
                raise
            except DeriveError as error:
                return UNDECIDED, f"no closed form of the threshold was found: {error}"
            known = f"derived: an eigenvalue is critical where {' or '.join(map(_text, polynomials))} vanishes"
            results = [self.bench.same(p.subs(parameter, value), sp.S.Zero) for p in polynomials]
            for point in points:
                place = number(value, point)
                if not self._inside(parameter, place):
                    continue
                with mpmath.workdps(WORKING_DIGITS):
                    given = {**point, parameter: exact(mpmath.re(place))}
                if not any(spikes.meets_bulk(problem, given) for problem in problems):
                    at = _at({p: v for p, v in given.items() if p != parameter}, value, *polynomials)
                    return FAILED, (
                        f"{known}; {f'at {at} ' if at else ''}no eigenvalue is critical on the physical branch at "
                        f"{parameter} = {mpmath.nstr(mpmath.re(place), 8)}"
                    )
        for point in points:
            place = number(value, point)
            if not self._inside(parameter, place):
                at = _at(point, value)
                return FAILED, (
                    f"{known}; {parameter} = {_text(value)} lies outside the domain of {parameter}: "
                    f"{f'at {at} ' if at else ''}it is {mpmath.nstr(place, 8)}"
                )
        best = self._best(results)
        if best.status == PROVED:
            return PROVED, known
        return best.status, f"{known}; at {parameter} = {_text(value)}: {best.evidence}"

    @staticmethod
    def _inside(parameter: Parameter, place: Any) -> bool:
        """Whether a number with many digits is a value of the parameter."""
        return not mpmath.isnan(place) and mpmath.im(place) == 0 and parameter.domain.contains(float(mpmath.re(place)))

    def _inverse_map(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim, "s").scalar(claim.get("value"))
        cycle = self._cycle(claim)
        if cycle.inverse is not None:
            return self._told(self.bench.same(value, cycle.inverse), value, cycle.inverse, "z")
        result = self.bench.same(cycle.relation.subs(Z, value), sp.S.Zero)
        if result.status != FAILED:
            for point in self.bench.points:
                z = mpmath.mpc(1000 * (1 + sum(abs(v) for v in point.values())), 1)
                mapped = self._mapped(cycle, point, z)
                if mapped is None:
                    return UNDECIDED, f"the map could not be followed on the physical branch to z = {mpmath.nstr(z, 6)}"
                found = number(value, {**point, MAP: mapped})
                if not close(found, z, 10):
                    at = ", ".join(filter(None, (_at(point, value), f"s = {mpmath.nstr(mapped, 8)}")))
                    return FAILED, (
                        f"{_text(value)} is a root of {_text(cycle.relation)}, but not z at large s: at {at} it is "
                        f"{mpmath.nstr(found, 8)}, on the physical branch z = {mpmath.nstr(z, 8)}"
                    )
        return self._told(result, value, cycle.relation, "relation")

    def _scalar_map(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim, "z", "G").scalar(claim.get("value"))
        derived = self._cycle(claim).scalar_map
        return self._told(self.bench.same(value, derived), value, derived, "s", "modulo the bulk equations")

    def _critical(self, claim: Claim) -> tuple[str, str]:
        reader = self.reader(claim)
        return self._same_sets(
            [reader.scalar(text) for text in claim.get("value")], self._cycle(claim).critical, "critical values"
        )

    # A(z)

    def _label(self, claim: Claim, label: str) -> int:
        labels = self.blocks.labels
        if label not in labels:
            raise ClaimError(
                f"{self.place(claim)}: A(z) has no unknown {label}; its labels are {', '.join(labels) or 'none'}"
            )
        return labels.index(label)

    def _block(self, claim: Claim) -> tuple[str, str]:
        row, column = self._label(claim, claim.get("row")), self._label(claim, claim.get("column"))
        value = self.reader(claim, "z", "G", matrices=True).matrix(claim.get("value"))
        return self._same_words(value, derived_block(self.blocks, row, column), "block")

    def _matrix(self, claim: Claim) -> tuple[str, str]:
        blocks, labels, rows = self.blocks, claim.get("labels"), claim.get("value")
        order = [self._label(claim, label) for label in labels]
        if len(rows) != len(labels) or len(set(labels)) != len(labels):
            raise ClaimError(
                f"{self.place(claim)}: {len(labels)} labels for {len(rows)} rows; give one label to each row"
            )
        missing = [label for label in blocks.labels if label not in labels]
        if missing:
            return (
                FAILED,
                f"the derived A(z) has {len(blocks.labels)} unknowns; the claim leaves out {', '.join(missing)}",
            )
        total = sp.Add(*(u.size for u in blocks.projected.unknowns))
        if claim.get("size") is not None:
            size = self.reader(claim).scalar(claim.get("size"))
            if self.bench.same(size, total).status == FAILED:
                return FAILED, f"the derived A(z) has {total} rows, the claim {size}"
        scalars, reader = self.reader(claim, "z", "G"), self.reader(claim, "z", "G", matrices=True)
        left = [scalars.scalar(text) for text in claim.get("rows_times", ("1",) * len(order))]
        right = [scalars.scalar(text) for text in claim.get("columns_times", ("1",) * len(order))]
        if len(left) != len(order) or len(right) != len(order):
            raise ClaimError(f"{self.place(claim)}: rows_times and columns_times need one scalar for each label")
        if any(sp.simplify(scalar) == 0 for scalar in (*left, *right)):
            raise ClaimError(f"{self.place(claim)}: rows_times and columns_times must not be 0")
        status, undecided = PROVED, ""
        for i, row in enumerate(order):
            for j, column in enumerate(order):
                derived = derived_block(blocks, row, column).scaled(left[i] * right[j])
                found, detail = self._same_words(reader.matrix(rows[i][j]), derived, "block")
                if found == FAILED:
                    return FAILED, f"row {labels[i]}, column {labels[j]}: {detail}"
                if found == UNDECIDED:
                    status, undecided = UNDECIDED, f"; row {labels[i]}, column {labels[j]}: {detail}"
        told = f"all {len(order)} x {len(order)} blocks, zeros included; A(z) is {total} x {total}{undecided}"
        return status, told

    # the single-site process

    def _kernel(self, claim: Claim) -> tuple[str, str]:
        reader = self.reader(claim, matrices=True, carriers=True)
        target = reader.field(claim.get("target"))
        self._owns_noise(claim, target)
        memories = [m for m in self.saddle.memories if m.target == target]
        derived = Matrix({})
        for m in memories:
            derived = derived.plus(Matrix({(Letter.response(m.a, m.noise), Carrier(m.on)): m.coefficient}))
        status, detail = self._same_words(reader.matrix(claim.get("value")), derived, f"memory of {target}")
        lag = claim.get("lag")
        found = sorted({m.lag for m in memories if m.lag is not None})
        if status != FAILED and lag is not None and found != [lag]:
            lags = ", ".join(map(str, found))
            return FAILED, f"derived: the memory of {target} reaches back from s = t - {lags}, claimed lag {lag}"
        reach = f"; s <= t - {lag}" if lag else ""
        return self._same_time(claim, {m.fresh for m in memories}, status, detail + reach)

    def _same_time(self, claim: Claim, derived: set[bool], status: str, detail: str) -> tuple[str, str]:
        """Whether what is drawn afresh at each step acts at equal times only, as the claim must then say."""
        claimed = claim.get("same_time", False)
        if status != FAILED and derived not in (set(), {claimed}):
            at = "at all times" if claimed else "at equal times only, as same_time = true would say"
            return FAILED, f"{detail}, but {at}"
        return status, detail + (", at equal times only" if claimed else "")

    def _owns_noise(self, claim: Claim, *fields: Field) -> None:
        owners = list(dict.fromkeys(c.left for c in self.saddle.covariances))
        names = ", ".join(map(str, owners))
        for field in fields:
            if field not in owners:
                raise ClaimError(f"{self.place(claim)}: {field} has no noise of its own; those with one are {names}")

    def _covariance(self, claim: Claim) -> tuple[str, str]:
        reader = self.reader(claim, matrices=True)
        left, right = (reader.field(name) for name in claim.get("noises"))
        self._owns_noise(claim, left, right)
        derived = Matrix({})
        found = [c for c in self.saddle.covariances if (c.left, c.right) == (left, right)]
        for c in found:
            derived = derived.plus(Matrix({(Letter.correlation(c.a, c.b),): c.coefficient}))
        status, detail = self._same_words(
            reader.matrix(claim.get("value")), derived, f"covariance of the noises of {left} and {right}"
        )
        return self._same_time(claim, {c.fresh for c in found}, status, detail)

    # telling

    def _told(
        self, result: Comparison, claimed: sp.Expr, derived: sp.Expr, what: str, how: str = ""
    ) -> tuple[str, str]:
        derived_text, claimed_text = _text(derived), _text(claimed)
        if result.status != PROVED:
            return result.status, f"derived {what} = {derived_text}, claimed {claimed_text}; {result.evidence}"
        return PROVED, f"derived {what} = {derived_text}" + (f", {how}" if how else "")

    def _same_sets(self, values: list[sp.Expr], derived: tuple[sp.Expr, ...], what: str) -> tuple[str, str]:
        text = ", ".join(map(_text, derived)) or "none in closed form"
        if not derived:
            return UNDECIDED, f"derived {what} {text}"
        for values_there in self.bench.values({s for e in (*values, *derived) for s in e.free_symbols}):
            open_numbers = [number(other, values_there) for other in derived]
            at = _at(values_there, *values, *derived)
            at = f" at {at}" if at else ""
            for value in values:
                here = number(value, values_there)
                match = next((other for other in open_numbers if close(here, other)), None)
                if match is None and not mpmath.isnan(here):
                    return FAILED, f"derived {what} {text}; {_text(value)} is not among them{at}"
                if match is not None:
                    open_numbers.remove(match)
            if open_numbers and len(values) < len(derived):
                left = [other for other in derived if any(close(number(other, values_there), n) for n in open_numbers)]
                return FAILED, f"derived {what} {text}; the claim leaves out {', '.join(map(_text, left))}{at}"
        open_ones, status, detail = list(derived), PROVED, ""
        for value in values:
            results = [self.bench.same(value, other) for other in open_ones]
            best = self._best(results)
            if best.status == FAILED:  # the two lists agree at every point, but not in one order
                return (
                    UNDECIDED,
                    f"derived {what} {text}; {_text(value)} is one of them at each point, but not always the same",
                )
            if best.status == UNDECIDED:
                status, detail = UNDECIDED, f"; {_text(value)} {best.evidence}"
            open_ones.pop(results.index(best))
        return status, f"derived {what} {text}{detail}"

    def _same_words(self, claimed: Matrix, derived: Matrix, what: str) -> tuple[str, str]:
        status, modulo, undecided = PROVED, False, ""
        for word in dict.fromkeys([*derived.terms, *claimed.terms]):
            left, right = claimed.terms.get(word, sp.S.Zero), derived.terms.get(word, sp.S.Zero)
            result = self.bench.same(left, right)
            if result.status == FAILED:
                return FAILED, (
                    f"derived {what} {shown(derived.terms)}, claimed {shown(claimed.terms)}; they differ in the "
                    f"coefficient of {shown({word: sp.S.One})}: {result.evidence}"
                )
            modulo = modulo or self.probed and bool(right.free_symbols & set(self.bulk.projected.bulk_symbols))
            if result.status == UNDECIDED:
                status, undecided = UNDECIDED, f"; coefficient of {shown({word: sp.S.One})}: {result.evidence}"
        how = ", modulo the bulk equations" if modulo else ""
        return status, f"derived {what} {shown(derived.terms)}{how}{undecided}"


def derived_block(blocks: BlockMatrix, row: int, column: int) -> Matrix:
    """A block of A(z) as a sum of words."""
    block = blocks.block(row, column)
    found = Matrix({(): block.scalar} if block.scalar != 0 else {})
    for scale, word in block.combination:
        found = found.plus(Matrix({tuple(word): -scale}))
    return found


def _residue_condition(poly: sp.Poly, position: sp.Expr, weight: sp.Expr) -> sp.Expr:
    """What must vanish for G = weight / (z - position) to be the leading behaviour of the curve near the position."""
    distance, unknown = sp.Symbol("distance"), sp.Symbol("weight")
    terms: dict[int, sp.Expr] = {}
    for (power,), coefficient in poly.terms():
        for (shift,), scale in sp.Poly(sp.expand(coefficient.subs(Z, position + distance)), distance).terms():
            terms[shift - power] = terms.get(shift - power, sp.S.Zero) + scale * unknown**power
    leading = next(terms[order] for order in sorted(terms) if sp.expand(terms[order]) != 0)
    return leading.subs(unknown, weight)


def _density_ends(bulk: Bulk, point: dict[sp.Symbol, Any], edge: Any) -> bool:
    """Whether the imaginary part of the physical branch is there on one side of a real point only."""
    with mpmath.workdps(WORKING_DIGITS):
        step, height = mpmath.mpf(10) ** -8, mpmath.mpf(10) ** -24
        curve, root = bulk.curve, bulk.projected.resolvent
        sides = [
            abs(mpmath.im(follow_branch(curve, root, point, mpmath.mpc(mpmath.re(edge) + side * step, height))))
            for side in (-1, 1)
        ]
        return bool(min(sides) < mpmath.mpf(10) ** -6 * max(sides))


def _distinct(values: list[Any]) -> list[Any]:
    """Numbers in ascending order, each once."""
    found: list[Any] = []
    for value in sorted(values):
        if not found or abs(value - found[-1]) > mpmath.mpf(10) ** -20 * (1 + abs(value)):
            found.append(value)
    return found


def _curve_text(bulk: Bulk) -> str:
    return f"{bulk.curve} = 0"


def _text(expression: sp.Expr) -> str:
    return str(expression.subs(MAP, sp.Symbol("s")))


def _at(point: dict[sp.Symbol, Any], *expressions: sp.Expr) -> str:
    inside = {s for e in expressions for s in e.free_symbols}
    return ", ".join(f"{p} = {v}" for p, v in point.items() if p in inside)
