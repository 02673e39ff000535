"""Declaration -> System: one rule a field, weights written out, the probe made of fields of its own.

After this stage a field is either a random matrix applied to another field, a linear combination of fields, or an
elementwise law of fields. Nothing has been averaged yet: the equations are those of the declaration.
"""

from __future__ import annotations

import sympy as sp

from derive.algebra.history import History, write_out
from derive.algebra.nodes import at
from derive.algebra.scaling import norm_order, size_free, size_order, split_sizes
from derive.errors import DeclarationError
from derive.language.data import Data, DataAt
from derive.language.matrices import (
    Atom,
    Disorder,
    DisorderAt,
    Dyad,
    Matrix,
    Product,
    Sum,
    WeightsAt,
    factors_of,
    half_product,
)
from derive.language.model import Eq, Model, atoms
from derive.language.symbols import Clock, Sector
from derive.language.vectors import (
    OF_CLOCK,
    PAST,
    Apply,
    Field,
    FieldAt,
    Mean,
    Mix,
    Project,
    Total,
    labels_of,
    sector_of,
    shown,
    values,
)
from derive.records.system import (
    DisorderRule,
    ElementwiseRule,
    LinearRule,
    Mixing,
    Rule,
    SpectralFields,
    System,
    SystemField,
    Term,
)

VECTOR = (FieldAt, Apply, Project, Mix, sp.Sum)


def expand_declaration(model: Model) -> System:
    """Write out weights, name every intermediate vector, and make the fields that probe the matrix."""
    work = _Workshop(model, write_out(model))
    work.claim_disorder_fields()
    for equation in model.equations:
        if isinstance(equation.target, FieldAt):
            work.add_equation(equation)
    probes = tuple(work.spectral_fields(label, probe.matrix) for label, probe in model.probes)
    made = tuple(work.fields.values())
    spectral = [f for probe in probes for f in probe.fields]
    used = {v.field for f in (*made, *spectral) for v in _rule_values(f)} | {
        v.field for _, e in model.observe for v in e.atoms(FieldAt)
    }
    sources = tuple(sorted((x for x in used if x.role in ("normal", "constant")), key=lambda x: x.name))
    return System(
        model,
        made,
        sources,
        work.history.recurrences,
        probes,
        assumptions=("all sizes grow together at fixed ratios; times and class labels stay finite",),
    )


def _rule_values(f: SystemField) -> list[FieldAt]:
    found: list[FieldAt] = []
    for rule in (f.rule, *f.starts):
        if isinstance(rule, DisorderRule):
            found.append(at(rule.argument, f.time))
        elif isinstance(rule, LinearRule):
            for term in rule.terms:
                found += [term.vector, *(term.pair or ()), *sorted(term.coefficient.atoms(FieldAt), key=str)]
        elif isinstance(rule, ElementwiseRule):
            found += sorted(rule.law.atoms(FieldAt), key=str)
    return found


class _Workshop:
    """Collects fields while equations are taken apart; used once and thrown away."""

    def __init__(self, model: Model, history: History):
        self.model = model
        self.history = history
        self.fields: dict[str, SystemField] = {}
        self.applied: dict[tuple[Disorder, bool, Field], tuple[Field, sp.Expr]] = {}
        self.products: dict[tuple[Matrix, Field], Field] = {}
        self.taken = {
            symbol.name for symbol in (*atoms(model, (Field, Clock, Sector, Disorder, Data)), *model.parameters)
        }
        self.spectral_names: set[str] = set()

    # -- equations of the declaration

    def claim_disorder_fields(self) -> None:
        """A field declared as scalar * W @ x stands for that product wherever it occurs."""
        for equation in self.model.equations:
            if not isinstance(equation.target, FieldAt):
                continue
            field, clock = equation.target.field, equation.target.field.clock
            starts = [e for e in self.model.equations if e.name == equation.name and e is not equation]
            scale, node = _single_apply(equation.value)
            if (
                node is None
                or starts
                or (field.timed and equation.time != clock)
                or not isinstance(node.vector, FieldAt)
            ):
                continue
            matrix = node.matrix.disorder if isinstance(node.matrix, DisorderAt) else node.matrix
            argument = node.vector.field
            same_time = node.vector.time == equation.time and argument.timed == field.timed
            constant = not split_sizes(scale)[1].free_symbols and not scale.has(Mean)
            if isinstance(matrix, Disorder) and same_time and constant and argument.labels == field.labels:
                transposed = node.transposed and not matrix.symmetric
                if (matrix, transposed, argument) not in self.applied:
                    self._add_disorder_field(field, matrix, transposed, scale, argument)

    def add_equation(self, equation: Eq) -> None:
        field = equation.target.field
        if field.name in self.fields and isinstance(self.fields[field.name].rule, DisorderRule):
            return
        where = f"the equation of {field.name}"
        if not field.timed:
            self._put(SystemField(field, self._rule(equation.value, None, field, where)))
            return
        clock = field.clock
        if equation.time.is_Integer:
            return
        shift = int(equation.time - clock)
        rule = self._rule(equation.value.subs(clock, clock - shift), clock, field, where)
        starts = sorted((int(e.time), e) for e in self.model.equations if e.name == field.name and e.time.is_Integer)
        if [first for first, _ in starts] != list(range(len(starts))):
            raise DeclarationError(f"{field}: starting values must be given at 0, 1, ... without gaps")
        start_rules = tuple(
            self._rule(_from_start(e.value, clock, first, where), clock, field, f"the equation of {field}({first})")
            for first, e in starts
        )
        self._put(SystemField(field, rule, max(shift, len(starts)), start_rules))

    # -- the probe

    def spectral_fields(self, label: str, matrix: Matrix) -> SpectralFields:
        """d psi0 / d tau = M psi0 + source, with one field for every intermediate product.

        What the probe needs of the training level stays; the spectral fields are taken out, so that the next probed
        matrix finds their names free.
        """
        self._check_symmetric(matrix)
        root = self._new_field(self._next_probe_name(), matrix.rows, None, role="spectral")
        before = set(self.fields)
        expression = self._probe_product(matrix, root)
        halves = half_product(matrix)
        middle = None
        if halves:
            psi = [f.field for n, f in self.fields.items() if n not in before and f.field.name.startswith("psi")]
            middle = psi[halves - 1]
        rule = self._rule(expression, None, root, "the probed matrix")
        inner = [f for f in self.fields.values() if f.field.role == "spectral"]
        made = SpectralFields(label, (SystemField(root, rule, derivative=True), *inner), middle)
        names = {f.field.name for f in made.fields}
        self.taken -= names
        self.spectral_names |= names
        self.fields = {n: f for n, f in self.fields.items() if n not in names}
        self.applied = {key: value for key, value in self.applied.items() if key[2].role != "spectral"}
        self.products = {}
        return made

    def _probe_product(self, matrix: Matrix, field: Field) -> sp.Expr:
        """matrix @ field, where every inner product gets a spectral field of order one, shared wherever it occurs."""
        if isinstance(matrix, Sum):
            return sp.Add(*(scale * self._probe_product(part, field) for scale, part in matrix.terms))
        factors = factors_of(matrix)
        scale = sp.S.One
        for factor in reversed(factors[1:]):
            order = norm_order(self._written_out(factor))
            if (factor, field) not in self.products:
                inner = self._new_field(self._next_probe_name(), factor.rows, None, role="spectral")
                expression = self._probe_product(factor, field) * factor.columns ** (-order)
                self._put(SystemField(inner, self._rule(expression, None, inner, "the probed matrix")))
                self.products[factor, field] = inner
            scale *= factor.columns**order
            field = self.products[factor, field]
        head = factors[0]
        if isinstance(head, Sum):
            return scale * self._probe_product(head, field)
        return scale * head.applied_to(field())

    def _next_probe_name(self) -> str:
        return next(f"psi{n}" for n in range(len(self.taken) + 1) if f"psi{n}" not in self.taken)

    def _written_out(self, matrix: Matrix) -> Matrix:
        """Weights replaced by their initial matrices, which set their size."""
        if isinstance(matrix, Sum):
            return Sum(matrix.rows, matrix.columns, tuple((c, self._written_out(m)) for c, m in matrix.terms))
        if isinstance(matrix, Product):
            return Product(matrix.rows, matrix.columns, tuple(map(self._written_out, matrix.factors)))
        if isinstance(matrix, Atom) and isinstance(matrix.symbol, WeightsAt):
            parts = {
                d: scale(matrix.symbol.time)
                for (w, d), scale in self.history.initial.items()
                if w == matrix.symbol.weights
            }
            if not parts:
                raise DeclarationError(
                    f"{matrix.symbol.weights} starts from 0, so it has no bulk; probe weights with a "
                    "random initial matrix"
                )
            return Sum(
                matrix.rows,
                matrix.columns,
                tuple(
                    (scale, Atom(*(d.shape[::-1] if matrix.transposed else d.shape), d, matrix.transposed))
                    for d, scale in parts.items()
                ),
            )
        return matrix

    def _check_symmetric(self, matrix: Matrix) -> None:
        here, there = self._monomials(matrix), self._monomials(matrix.T)
        keys = sorted({*here, *there}, key=str)
        if any(sp.simplify(here.get(k, 0) - there.get(k, 0)) != 0 for k in keys):
            raise DeclarationError(
                f"spectrum({matrix}): the matrix is not symmetric; probe W.T @ W for singular values"
            )

    def _monomials(self, matrix: Matrix) -> dict[tuple, sp.Expr]:
        """A matrix as words of letters with coefficients, weights written out."""
        if isinstance(matrix, Sum):
            total: dict[tuple, sp.Expr] = {}
            for scale, part in matrix.terms:
                for word, value in self._monomials(part).items():
                    total[word] = total.get(word, sp.S.Zero) + scale * value
            return total
        if isinstance(matrix, Product):
            total = {(): sp.S.One}
            for factor in matrix.factors:
                letters = self._monomials(factor)
                total = {a + b: x * y for a, x in total.items() for b, y in letters.items()}
            return total
        if isinstance(matrix, Dyad):
            return {((matrix.left, matrix.right),): sp.S.One}
        symbol, transposed = matrix.symbol, matrix.transposed
        if isinstance(symbol, WeightsAt):
            total = {}
            for (w, d), scale in self.history.initial.items():
                if w == symbol.weights:
                    total[(d, transposed and not d.symmetric),] = scale(symbol.time)
            for (w, i), kernel in self.history.kernels.items():
                if w == symbol.weights:
                    ends = (i.dyad.left, i.dyad.right)
                    word = (ends[::-1] if transposed else ends,)
                    total[word] = total.get(word, sp.S.Zero) + i.coefficient * kernel(symbol.time, PAST)
            return total
        return {((symbol, transposed),): sp.S.One}

    # -- taking expressions apart

    def _rule(self, expression: sp.Expr, clock: Clock | None, target: Field, where: str) -> Rule:
        expression = self._lowered(_distributed(self._without_weights(expression)), clock, where)
        terms: list = []
        if _is_nonlinear(expression):
            return ElementwiseRule(self._elementwise(expression, clock, target, where))
        for part in sp.Add.make_args(sp.expand(expression)):
            term = self._linear_term(part, target, where)
            if term is None:
                return ElementwiseRule(self._elementwise(expression, clock, target, where))
            terms.extend(term)
        return LinearRule(tuple(terms))

    def _linear_term(self, part: sp.Expr, target: Field, where: str) -> tuple[Term, ...] | None:
        """An additive part as terms, or None if it is not linear in the fields."""
        if part == 0:
            return ()
        vectors = [f for f in sp.Mul.make_args(part) if _has_vector(f)]
        scale = sp.Mul(*(f for f in sp.Mul.make_args(part) if not _has_vector(f)))
        if not vectors:
            one = Field(f"one_{target.sector}", target.sector, role="constant")
            return (Term(size_free(scale, where), one()),)
        if len(vectors) > 1 or not isinstance(vectors[0], (FieldAt, Project, Mix, Total, sp.Sum)):
            return None
        vector = vectors[0]
        if isinstance(vector, (Mix, Total)):
            mixing = Mixing(None) if isinstance(vector, Total) else Mixing(vector.table, vector.transposed)
            return (Term(size_free(scale, where), vector.args[-1], mixing=mixing),)
        if isinstance(vector, FieldAt):
            return (Term(size_free(scale, where), vector),)
        if isinstance(vector, Project):
            return (self._projected(scale, vector, None, where),)
        ((index, low, high),) = vector.limits
        if index != PAST or low != 0:
            raise DeclarationError(f"{where}: write sums over earlier times with past_sum(lambda s: ..., t)")
        terms = []
        for inner in sp.Add.make_args(sp.expand(vector.function)):
            ones = [f for f in sp.Mul.make_args(inner) if _has_vector(f)]
            factor = scale * sp.Mul(*(f for f in sp.Mul.make_args(inner) if not _has_vector(f)))
            if len(ones) != 1 or not isinstance(ones[0], (FieldAt, Project)):
                raise DeclarationError(
                    f"{where}: the sum over earlier times is not linear in the fields; give {shown(inner)} a field of "
                    "its own"
                )
            if labels_of(factor, where) is not None or factor.has(DataAt, Total):
                raise DeclarationError(
                    f"{where}: in the sum over earlier times {shown(inner)} has a factor made of data or labels; "
                    "give it a field of its own"
                )
            until = high + 1
            if isinstance(ones[0], Project):
                terms.append(self._projected(factor, ones[0], until, where))
            else:
                terms.append(Term(size_free(factor, where), self._at_past(ones[0], until, where), past=until))
        return tuple(terms)

    def _projected(self, scale: sp.Expr, node: Project, past, where: str) -> Term:
        coefficient = size_free(scale * node.right.field.sector, f"{where}: outer({node.left}, {node.right})")
        left, right = node.left, node.right
        if past is not None:
            left, right = self._at_past(left, past, where), self._at_past(right, past, where)
        return Term(coefficient, left, (right, node.vector), past)

    def _at_past(self, value: FieldAt, past: sp.Expr, where: str) -> FieldAt:
        """The value as a field at time s, naming a delayed copy, or a copy at every time of a vector without one."""
        if value.time == PAST:
            return value
        clock = value.field.clock or next(iter(past.atoms(Clock)), None) or self._only_clock()
        lag = 0 if value.time is None else PAST - value.time
        if not sp.sympify(lag).is_Integer or lag < 0:
            raise DeclarationError(
                f"{where}: a sum over earlier times, or an update of weights, uses {value.field} at "
                f"{value.time.subs(PAST, clock)}; use it at {clock} or earlier, "
                f"or give what makes {value.field} at {clock + 1} a field of its own at {clock} and use that"
            )
        name = f"{value.field}_each" if value.time is None else f"{value.field}_late{lag}"
        if name not in self.fields:
            made = Field(name, value.field.sector, clock, labels=value.field.labels)
            self.taken.add(name)
            source = value if value.time is None else value.field(clock - lag)
            self._put(SystemField(made, LinearRule((Term(sp.S.One, source),))))
        return self.fields[name].field(PAST)

    def _only_clock(self) -> Clock:
        return atoms(self.model, Clock)[0]

    def _elementwise(self, expression: sp.Expr, clock: Clock | None, target: Field, where: str) -> sp.Expr:
        """A nonlinear law, with sums over time and projections moved into fields of their own."""
        inner = [
            n
            for n in sp.postorder_traversal(expression)
            if isinstance(n, (Project, Mix, sp.Sum)) or (isinstance(n, Total) and _has_vector(n))
        ]
        for node in sorted({n for n in inner if not any(n != m and m.has(n) for m in inner)}, key=sp.default_sort_key):
            made = self._new_field(f"{target.name}_input", target.sector, clock, labels=labels_of(node, where))
            self._put(SystemField(made, self._rule(node, clock, made, where)))
            expression = expression.xreplace({node: made(clock) if made.timed else made()})
        sizes = expression.atoms(Sector)
        if sizes:
            raise DeclarationError(
                f"{where}: the size {sorted(map(str, sizes))[0]} stands inside a nonlinear law; "
                "write laws in terms of ratios"
            )
        return expression

    def _without_weights(self, expression: sp.Expr) -> sp.Expr:
        """The expression with updated weights written as initial matrices plus history."""
        if not expression.has(WeightsAt):
            return expression
        inner = expression.func(
            *(arg if isinstance(arg, WeightsAt) else self._without_weights(arg) for arg in expression.args)
        )
        if isinstance(inner, Apply) and isinstance(inner.matrix, WeightsAt):
            return self.history.applied(inner)
        return inner

    def _lowered(self, expression: sp.Expr, clock: Clock | None, where: str) -> sp.Expr:
        """The expression with every applied matrix replaced by a field."""
        if isinstance(expression, (FieldAt, Mean)) or not expression.args:
            return expression
        if isinstance(expression, Apply):
            return self._disorder_value(expression, sp.S.One, clock, where)
        if isinstance(expression, (Mix, Total)):
            if not _has_vector(expression):
                return expression
            lowered = self._lowered(expression.args[-1], clock, where)
            factor, value = self._as_value(lowered, clock, where).as_independent(FieldAt, as_Add=False)
            return factor * expression.func(*expression.args[:-1], value)
        if isinstance(expression, Project):
            left, right, vector = (
                self._as_value(self._lowered(a, clock, where), clock, where) for a in expression.args
            )
            scale = sp.S.One
            parts: list = []
            for part in (left, right, vector):
                factor, value = part.as_independent(FieldAt, as_Add=False)
                scale, parts = scale * factor, [*parts, value]
            return scale * Project(*parts)
        if isinstance(expression, sp.Mul):
            scalars = [f for f in expression.args if not _has_vector(f)]
            others = [f for f in expression.args if _has_vector(f)]
            if len(others) == 1 and isinstance(others[0], Apply):
                return self._disorder_value(others[0], sp.Mul(*scalars), clock, where)
            product = sp.Mul(*scalars, *(self._lowered(f, clock, where) for f in others))
            return product if _is_nonlinear(product) else sp.expand(product)
        if isinstance(expression, sp.Sum):
            body = sp.expand(self._lowered(sp.expand(expression.function), clock, where))
            return sp.Add(*(sp.Sum(part, *expression.limits) for part in sp.Add.make_args(body)))
        if isinstance(expression, sp.Add):
            return sp.Add(*(self._lowered(arg, clock, where) for arg in expression.args))
        return expression.func(*(self._lowered(arg, clock, where) for arg in expression.args))

    def _disorder_value(self, node: Apply, scale: sp.Expr, clock: Clock | None, where: str) -> sp.Expr:
        """scale * W @ vector as a multiple of the field that stands for that product."""
        fresh_time = node.matrix.time if isinstance(node.matrix, DisorderAt) else None
        matrix = node.matrix.disorder if fresh_time is not None else node.matrix
        transposed = node.transposed and not matrix.symmetric
        vector = self._as_value(self._lowered(node.vector, clock, where), clock, where, fresh_time)
        factor, value = vector.as_independent(FieldAt, as_Add=False)
        scale, argument = scale * factor, value.field
        if (matrix, transposed, argument) not in self.applied:
            columns = matrix.rows if transposed else matrix.columns
            sizes, _ = split_sizes(scale)
            if size_order(sizes**2 * matrix.variance * columns, where) != 0:
                sizes = columns ** (-(1 + size_order(matrix.variance, where)) / 2)
            rows = matrix.columns if transposed else matrix.rows
            name = f"{matrix}{'T' if transposed else ''}_{argument}"
            made = self._new_field(
                name,
                rows,
                argument.clock or matrix.fresh,
                role="spectral" if argument.role == "spectral" else "field",
                timed=argument.timed or fresh_time is not None,
                labels=argument.labels,
            )
            self._add_disorder_field(made, matrix, transposed, sizes, argument)
        made, coefficient = self.applied[matrix, transposed, argument]
        time = fresh_time if fresh_time is not None else value.time
        return scale / coefficient * (made(time) if made.timed else made())

    def _add_disorder_field(
        self, field: Field, matrix: Disorder, transposed: bool, scale: sp.Expr, argument: Field
    ) -> None:
        columns = matrix.rows if transposed else matrix.columns
        where = f"{field}: the noise from {matrix}{'.T' if transposed else ''} @ {argument}"
        order = size_order(scale**2 * matrix.variance * columns, where)
        if order != 0:
            raise DeclarationError(
                f"{where} grows like size^({order / 2}); divide by a power of a size, for instance "
                f"{matrix}{'.T' if transposed else ''} @ {argument} / sqrt({columns}) for entries of variance 1"
            )
        self.applied[matrix, transposed, argument] = (field, scale)
        self._put(SystemField(field, DisorderRule(matrix, transposed, scale, argument)))

    def _as_value(self, expression: sp.Expr, clock: Clock | None, where: str, frame=None) -> sp.Expr:
        """The expression as scalar * field value, naming a new field if it is anything else."""
        factor, value = expression.as_independent(FieldAt, Project, Mix, sp.Sum, as_Add=False)
        if isinstance(value, FieldAt) and not factor.has(Mean, DataAt) and (frame is None or value.time == frame):
            return expression
        if frame is not None and not any(v.time is not None for v in values(expression)):
            made = self._new_field(
                f"{values(expression)[0].field}_each",
                sector_of(expression, where),
                self._only_clock(),
                labels=labels_of(expression, where),
            )
            self._put(SystemField(made, self._rule(expression, made.clock, made, where)))
            return made(frame)
        data = [v for v in expression.atoms(DataAt) if v.time is not None]
        variables = {s for v in expression.atoms(FieldAt) if v.time is not None for s in v.time.free_symbols}
        variables |= {s for v in data for s in v.time.free_symbols}
        variable = PAST if PAST in variables else clock
        timed = bool(variables)
        canonical, time = expression, None
        if timed:
            shifts = [int(v.time - variable) for v in (*values(expression), *data) if v.time is not None]
            latest = max(shifts) if frame is None else int(frame - variable)
            canonical, time = expression.subs(variable, variable - latest), variable + latest
            if variable == PAST:
                canonical = canonical.subs(PAST, clock or _clock_of(expression))
        sector = sector_of(expression, where)
        spectral = any(v.field.role == "spectral" for v in values(expression))
        home = clock or _clock_of(expression)
        for known in self.fields.values():
            named_here = isinstance(known.rule, (LinearRule, ElementwiseRule)) and known.field.name.startswith("vector")
            if named_here and known.rule.expression(home) == canonical:
                return known.field(time) if timed else known.field()
        number = 1 + sum(1 for n in self.fields if n.startswith("vector"))
        labels = labels_of(expression, where)
        made = self._new_field(
            f"vector{number}",
            sector,
            home if timed or labels is not None else None,
            role="spectral" if spectral else "field",
            timed=timed,
            labels=labels,
        )
        self._put(SystemField(made, self._rule(canonical, home, made, where)))
        return made(time) if timed else made()

    def _new_field(
        self, name: str, sector: Sector, clock: Clock | None, role="field", timed=True, labels=OF_CLOCK
    ) -> Field:
        while name in self.taken or (role != "spectral" and name in self.spectral_names):
            name += "_"
        self.taken.add(name)
        return Field(name, sector, clock, role=role, timed=timed, labels=labels)

    def _put(self, made: SystemField) -> None:
        self.fields[made.field.name] = made


def _is_nonlinear(expression: sp.Expr) -> bool:
    """Whether a power or a function of vectors stands in an expression; such laws are never multiplied out."""
    if isinstance(expression, (sp.Add, sp.Mul)):
        return any(_is_nonlinear(arg) for arg in expression.args)
    return _has_vector(expression) and not isinstance(expression, (FieldAt, Apply, Project, Mix, Total, sp.Sum))


def _has_vector(expression: sp.Basic) -> bool:
    if isinstance(expression, Mean):
        return False
    return isinstance(expression, VECTOR) or any(map(_has_vector, expression.args))


def _distributed(expression: sp.Expr) -> sp.Expr:
    """Scalars multiplied into sums of applied matrices, so that each carries its own scale."""
    if expression.is_Mul and _has_vector(expression):
        return sp.expand_mul(sp.Mul(*map(_distributed, expression.args)))
    if expression.is_Add:
        return sp.Add(*map(_distributed, expression.args))
    return expression


def _single_apply(expression) -> tuple[sp.Expr, Apply | None]:
    if not isinstance(expression, sp.Expr):
        return sp.S.One, None
    scale, node = expression.as_independent(Apply, as_Add=False)
    return (scale, node) if isinstance(node, Apply) else (sp.S.One, None)


def _clock_of(expression: sp.Expr) -> Clock | None:
    return next((v.field.clock for v in sorted(expression.atoms(FieldAt), key=str) if v.field.clock is not None), None)


def _from_start(expression: sp.Expr, clock: Clock, first: int, where: str) -> sp.Expr:
    """The right side of a starting equation, with its fixed times written relative to the clock."""
    moved = {v: v.field(clock + (v.time - first)) for v in expression.atoms(FieldAt) if v.time is not None}
    for value in moved:
        if not value.time.is_Integer:
            raise DeclarationError(f"{where}: the starting equation uses {value.field}({value.time}); use a fixed time")
    fixed = {w: w.func(w.args[0], clock + (w.time - first)) for w in expression.atoms(WeightsAt, DisorderAt)}
    return expression.xreplace({**moved, **fixed})
