"""Decide each claim against the records of the derivation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import mpmath
import sympy as sp
from sympy.core.function import PoleError

from derive.algebra.nodes import Z
from derive.algebra.physical import physical_values
from derive.algebra.words import Letter
from derive.claims.equality import (
    DIGITS,
    FAILED,
    PROVED,
    WORKING_DIGITS,
    Bench,
    Comparison,
    close,
    follow_branch,
    number,
    sample_points,
    vanishes_identically,
)
from derive.claims.formulas import Carrier, Matrix, Reader, shown
from derive.claims.reading import Claim, ClaimsFile
from derive.errors import ClaimError, DeriveError, NumericalError
from derive.expansions.infinity import moments_of_system
from derive.expansions.limits import SMALL as EPSILON, Limit
from derive.expansions.quantities import expand_quantity
from derive.language.model import Model
from derive.loading import load_model
from derive.pipeline import Derivation, derive_model
from derive.records.probe import MAP, BlockMatrix, Bulk, Cycle

SMALL = sp.Symbol("x", positive=True)
"""What a series is expanded in."""

_TRAINING_KINDS = ("kernel", "covariance")
_CURVE_KINDS = ("resolvent", "curve", "edges", "atom")


@dataclass(frozen=True)
class Verdict:
    """What became of a claim. `status` is "proved", "to 50 digits" or "FAILED"."""

    name: str
    status: str
    detail: str
    kind: str = ""
    where: str = ""

    @property
    def holds(self) -> bool:
        return self.status != FAILED


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
        self.bench = Bench(self.parameters, self.bulk if self.probed else None)

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
        decide: Callable[[Claim], tuple[str, str]] = getattr(self, f"_{claim.kind}")
        status, detail = decide(claim)
        if status == DIGITS:
            detail = f"agrees to 50 digits (no symbolic proof found); {detail}"
        return Verdict(claim.name, status, detail, claim.kind, claim.where)

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
        for point in sample_points(self.parameters):
            size = 50 * (1 + sum(abs(v) for v in point.values()))
            for side in (sp.S.One, sp.Rational(1, 10), sp.S.NegativeOne):
                with mpmath.workdps(WORKING_DIGITS):
                    z = mpmath.mpc(int(side * size), int(size) / mpmath.mpf(10**4))
                    found, physical = number(value, {**point, Z: z}), follow_branch(curve, root, point, z)
                if close(found, physical):
                    continue
                on_curve = close(number(curve.subs(root, value), {**point, Z: z}), mpmath.mpf(0))
                if side > 0 or not on_curve:
                    there = ", ".join(filter(None, (f"z = {mpmath.nstr(z, 6)}", _at(point, value, curve))))
                    return FAILED, (
                        f"derived {_curve_text(self.bulk)}; at {there} "
                        f"the claim is {mpmath.nstr(found, 8)}, the derivation {mpmath.nstr(physical, 8)}"
                    )
                left_of_bulk = False
        proved = vanishes_identically(curve.subs(root, value)) or sp.simplify(curve.subs(root, value)) == 0
        branch = "the branch that is 1/z at infinity"
        if not left_of_bulk:
            branch += " to the right of the bulk (to its left the principal root has the other sign)"
        return (PROVED if proved else DIGITS), f"satisfies {_curve_text(self.bulk)}; {branch}"

    def _curve(self, claim: Claim) -> tuple[str, str]:
        value = sp.fraction(sp.together(self.reader(claim, "z", "G").scalar(claim.get("value"))))[0]
        root, curve = self.bulk.projected.resolvent, self.curve
        try:
            derived, claimed = sp.Poly(curve, root, Z), sp.Poly(value, root, Z) if value.has(root) else None
        except sp.PolynomialError:
            raise ClaimError(f"{self.place(claim)}: {value} is not a polynomial in z and G") from None
        if claimed is None or claimed.degree(root) != derived.degree(root):
            return FAILED, f"derived {_curve_text(self.bulk)}, claimed {sp.expand(value)} = 0"
        if vanishes_identically(claimed.LC() * curve - derived.LC() * value):
            return PROVED, f"a multiple of {_curve_text(self.bulk)}"
        return FAILED, f"derived {_curve_text(self.bulk)}, claimed {sp.expand(value)} = 0"

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
        if any(sp.Poly(factor, Z).degree() > 2 for factor in self.bulk.edge_factors):
            return self._edges_by_factor(values)
        return self._same_sets(values, self.bulk.edges, "edges")

    def _edges_by_factor(self, values: list[sp.Expr]) -> tuple[str, str]:
        """Without closed forms for all: each claimed edge must be a root of an edge factor where the density ends."""
        status = PROVED
        for value in values:
            results = [self.bench.same(factor.subs(Z, value), sp.S.Zero) for factor in self.bulk.edge_factors]
            best = min((r.status for r in results), key=(PROVED, DIGITS, FAILED).index, default=FAILED)
            if best == FAILED:
                return FAILED, f"{value} is not a root of {' or '.join(map(str, self.bulk.edge_factors))}"
            status = best if status == PROVED else status
            for point in sample_points(self.parameters):
                if not _density_ends(self.bulk, point, number(value, point)):
                    return FAILED, f"{value} is a root of the discriminant, but no end of the density"
        for point in sample_points(self.parameters):
            claimed = [number(value, point) for value in values]
            for root in self._candidate_edges(point):
                if not any(abs(root - value) < mpmath.mpf(10) ** -12 * (1 + abs(root)) for value in claimed):
                    if _density_ends(self.bulk, point, root):
                        return FAILED, f"the edge at {mpmath.nstr(root, 8)} is left out ({_at(point, self.curve)})"
        return status, "each is a root of the discriminant of the curve where the density ends, and there are no others"

    def _candidate_edges(self, point: dict) -> list:
        """Real roots of all edge factors at given parameters."""
        found = []
        with mpmath.workdps(WORKING_DIGITS):
            for factor in self.bulk.edge_factors:
                coefficients = [number(c, point) for c in sp.Poly(factor, Z).all_coeffs()]
                for root in mpmath.polyroots(coefficients, maxsteps=500, extraprec=400):
                    if abs(mpmath.im(root)) < mpmath.mpf(10) ** -20 * (1 + abs(root)):
                        found.append(mpmath.re(root))
        return found

    def _atom(self, claim: Claim) -> tuple[str, str]:
        reader = self.reader(claim)
        position, weight = reader.scalar(claim.get("position")), reader.scalar(claim.get("value"))
        names = {p.name: p for p in self.parameters}
        fixed: dict = {}
        for name, text in claim.get("at", ()):
            if name not in names:
                raise ClaimError(f"{self.place(claim)}: at names {name}, but the parameters are {', '.join(names)}")
            fixed[names[name]] = reader.scalar(text)
            value = number(fixed[names[name]], {})
            if not names[name].domain.contains(float(mpmath.re(value))):
                raise ClaimError(
                    f"{self.place(claim)}: {name} = {text} is out of range: it must be {names[name].domain}"
                )
        root, curve = self.bulk.projected.resolvent, self.curve.subs(fixed)
        position, weight = position.subs(fixed), weight.subs(fixed)
        exact = vanishes_identically(_residue_condition(sp.Poly(curve, root), position, weight))
        for point in sample_points(self.parameters, fixed):
            with mpmath.workdps(WORKING_DIGITS):
                place = number(position, point)
                above = mpmath.mpc(0, mpmath.mpf(10) ** -14)
                try:
                    follow_branch(curve, root, point, place + above)
                except NumericalError:
                    return FAILED, f"the physical branch could not be followed to {mpmath.nstr(place, 6)}; not decided"
                measured, expected = above * follow_branch(curve, root, point, place + above), number(weight, point)
                if abs(measured - expected) > mpmath.mpf(10) ** -5:
                    return FAILED, (
                        f"{_at(point, curve, weight)} the derived weight at {mpmath.nstr(place, 6)} is "
                        f"{mpmath.nstr(mpmath.re(measured), 8)}, the claim {mpmath.nstr(expected, 8)}"
                    )
        if exact:
            return PROVED, f"the residue of the physical branch of {_curve_text(self.bulk)}"
        return FAILED, f"{weight} is not the residue of {_curve_text(self.bulk)} at {position}"

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
        if expression is None and of in ("edge upper", "edge lower"):
            return self._edge_coefficient(claim, names[variable], replaced, int(order), value)
        if expression is None:
            return FAILED, f"no closed form of {of} is derived, so its series cannot be taken"
        try:
            lift = max(0, -int(order)) + 1
            lifted = sp.expand(expression.subs(names[variable], replaced) * SMALL**lift)
            expanded = sp.series(lifted, SMALL, 0, int(order) + lift + 1).removeO()
        except (NotImplementedError, ValueError, PoleError):
            return FAILED, f"{of} = {_text(expression)} has no power series there that SymPy finds"
        derived = sp.expand(expanded).coeff(SMALL, int(order) + lift)
        return self._told(
            self.bench.same(value, derived), value, sp.factor(derived), f"coefficient of x**{order} in {of}"
        )

    def _edge_coefficient(self, claim: Claim, parameter, replaced: sp.Expr, order: int, value: sp.Expr):
        """A coefficient of an edge without a closed form, from its exact expansion."""
        base, power = replaced.as_base_exp()
        if base != SMALL or not power.is_Integer or power == 0:
            raise ClaimError(f"{self.place(claim)}: set must be a power of x here, such as x, 1/x or 1/x**2")
        limit = Limit(parameter, EPSILON if power > 0 else 1 / EPSILON)
        of = "edge" if claim.get("of") == "edge upper" else "lower_edge"
        wanted = sp.Rational(order, abs(power))
        try:
            found = expand_quantity(self.matrix, of, limit, wanted, {}).expansion
        except DeriveError as error:
            return FAILED, f"the edge could not be expanded: {error}"
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
        return cycles[wanted - 1]

    def _outlier(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim).scalar(claim.get("value"))
        cycle = self._cycle(claim)
        if cycle.eigenvalue is None:
            return (
                FAILED,
                "the eigenvalue has no closed form in the parameters; claim the matrix and the inverse_map instead",
            )
        if cycle.inverse is not None:
            derived = sp.factor(cycle.inverse.subs(MAP, cycle.eigenvalue))
            return self._told(self.bench.same(value, derived), value, derived, "z")
        relation = cycle.relation.subs({Z: value, MAP: cycle.eigenvalue})
        result = self.bench.same(relation, sp.S.Zero)
        if result.status != FAILED and not self._physical_outlier(cycle, cycle.eigenvalue, value):
            return FAILED, f"{_text(value)} is a root of {_text(cycle.relation)}, but not on the physical branch"
        return self._told(result, value, cycle.relation, "relation")

    def _physical_outlier(self, cycle: Cycle, eigenvalue: sp.Expr, value: sp.Expr) -> bool:
        """Whether the map at the claimed outlier, on the physical branch, is the eigenvalue for strong spikes."""
        for strength in (1, 3, 10, 40, 150):
            for point in sample_points(self.parameters):
                stronger = {p: v * strength if eigenvalue.has(p) else v for p, v in point.items()}
                z = mpmath.re(number(value, stronger))
                mapped = self._mapped(cycle, stronger, mpmath.mpc(z, mpmath.mpf(10) ** -14))
                if mapped is not None and close(mapped, number(eigenvalue, stronger), 10):
                    return True
        return False

    def _mapped(self, cycle: Cycle, point: dict, z):
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
        cycle = self._cycle(claim)
        if cycle.eigenvalue is None or not cycle.critical:
            return FAILED, "the threshold has no closed form in the parameters; claim the critical values instead"
        there = cycle.eigenvalue.subs(parameter, value)
        outside = any(
            not parameter.domain.contains(float(mpmath.re(number(value, point))))
            for point in sample_points(self.parameters)
        )
        if not outside:
            for critical in cycle.critical:
                result = self.bench.same(there, critical.subs(parameter, value))
                if result.status != FAILED:
                    return (
                        result.status,
                        f"there the eigenvalue {cycle.eigenvalue} reaches its critical value {critical}",
                    )
        options = ", ".join(map(str, cycle.critical))
        why = f"lies outside the domain of {parameter}" if outside else f"gives the eigenvalue {there}"
        return (
            FAILED,
            f"derived: the eigenvalue {cycle.eigenvalue} must be one of {options}; {parameter} = {value} {why}",
        )

    def _inverse_map(self, claim: Claim) -> tuple[str, str]:
        value = self.reader(claim, "s").scalar(claim.get("value"))
        cycle = self._cycle(claim)
        if cycle.inverse is not None:
            return self._told(self.bench.same(value, cycle.inverse), value, cycle.inverse, "z")
        result = self.bench.same(cycle.relation.subs(Z, value), sp.S.Zero)
        if result.status != FAILED:
            for point in sample_points(self.parameters):
                z = mpmath.mpc(1000 * (1 + sum(abs(v) for v in point.values())), 1)
                mapped = self._mapped(cycle, point, z)
                if mapped is None or not close(number(value, {**point, MAP: mapped}), z, 10):
                    return FAILED, f"{_text(value)} is a root of {_text(cycle.relation)}, but not z at large s"
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
            if sp.expand(size - total) != 0:
                return FAILED, f"the derived A(z) has {total} rows, the claim {size}"
        scalars, reader = self.reader(claim, "z", "G"), self.reader(claim, "z", "G", matrices=True)
        left = [scalars.scalar(text) for text in claim.get("rows_times", ("1",) * len(order))]
        right = [scalars.scalar(text) for text in claim.get("columns_times", ("1",) * len(order))]
        if len(left) != len(order) or len(right) != len(order):
            raise ClaimError(f"{self.place(claim)}: rows_times and columns_times need one scalar for each label")
        if any(sp.simplify(scalar) == 0 for scalar in (*left, *right)):
            raise ClaimError(f"{self.place(claim)}: rows_times and columns_times must not be 0")
        status = PROVED
        for i, row in enumerate(order):
            for j, column in enumerate(order):
                derived = derived_block(blocks, row, column).scaled(left[i] * right[j])
                found, detail = self._same_words(reader.matrix(rows[i][j]), derived, "block")
                if found == FAILED:
                    return FAILED, f"row {labels[i]}, column {labels[j]}: {detail}"
                status = DIGITS if found == DIGITS else status
        return status, f"all {len(order)} x {len(order)} blocks, zeros included; A(z) is {total} x {total}"

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

    def _owns_noise(self, claim: Claim, *fields) -> None:
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
        if result.status == FAILED:
            return FAILED, f"derived {what} = {derived_text}, claimed {claimed_text}; {result.evidence}"
        return result.status, f"derived {what} = {derived_text}" + (f", {how}" if how else "")

    def _same_sets(self, values: list[sp.Expr], derived: tuple[sp.Expr, ...], what: str) -> tuple[str, str]:
        open_ones, status = list(derived), PROVED
        text = ", ".join(map(_text, derived)) or "none in closed form"
        for value in values:
            results = [self.bench.same(value, other) for other in open_ones]
            match = next((i for i, r in enumerate(results) if r.status != FAILED), None)
            if match is None:
                return FAILED, f"derived {what} {text}; {_text(value)} is not among them"
            status = results[match].status if status == PROVED else status
            open_ones.pop(match)
        if open_ones:
            return FAILED, f"derived {what} {text}; the claim leaves out {', '.join(map(_text, open_ones))}"
        return status, f"derived {what} {text}"

    def _same_words(self, claimed: Matrix, derived: Matrix, what: str) -> tuple[str, str]:
        status, modulo = PROVED, False
        for word in dict.fromkeys([*derived.terms, *claimed.terms]):
            left, right = claimed.terms.get(word, sp.S.Zero), derived.terms.get(word, sp.S.Zero)
            result = self.bench.same(left, right)
            if result.status == FAILED:
                return FAILED, (
                    f"derived {what} {shown(derived.terms)}, claimed {shown(claimed.terms)}; they differ in the "
                    f"coefficient of {shown({word: sp.S.One})}: {result.evidence}"
                )
            modulo = modulo or self.probed and bool(right.free_symbols & set(self.bulk.projected.bulk_symbols))
            status = DIGITS if result.status == DIGITS else status
        return status, f"derived {what} {shown(derived.terms)}" + (", modulo the bulk equations" if modulo else "")


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


def _density_ends(bulk: Bulk, point: dict, edge) -> bool:
    """Whether the imaginary part of the physical branch is there on one side of a real point only."""
    with mpmath.workdps(WORKING_DIGITS):
        step, height = mpmath.mpf(10) ** -8, mpmath.mpf(10) ** -24
        curve, root = bulk.curve, bulk.projected.resolvent
        sides = [
            abs(mpmath.im(follow_branch(curve, root, point, mpmath.mpc(mpmath.re(edge) + side * step, height))))
            for side in (-1, 1)
        ]
        return min(sides) < mpmath.mpf(10) ** -6 * max(sides)


def _curve_text(bulk: Bulk) -> str:
    return f"{bulk.curve} = 0"


def _text(expression: sp.Expr) -> str:
    return str(expression.subs(MAP, sp.Symbol("s")))


def _at(point: dict, *expressions: sp.Expr) -> str:
    inside = {s for e in expressions for s in e.free_symbols}
    return ", ".join(f"{p} = {v}" for p, v in point.items() if p in inside)
