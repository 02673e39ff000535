"""Writes simulation.py: the declaration as an algorithm at finite size, in NumPy or JAX.

It is made from the declaration alone: no stage of the derivation is used except the order in which the fields of
one time can be computed.
"""

from __future__ import annotations

import re

import sympy as sp

from derive.codegen.printer import numpy_code
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
from derive.language.vectors import PAST, Apply, Each, Field, FieldAt, Mean, Mix, Project, Total, labels_of, sector_of
from derive.records.saddle import TimeOrder


def write_simulation(model: Model, time_order: TimeOrder, signature: str) -> str:
    """The text of simulation.py."""
    return _Simulation(model, time_order, signature).module()


class _Simulation:
    def __init__(self, model: Model, time_order: TimeOrder, signature: str):
        self.model = model
        self.signature = signature
        clocks = atoms(model, Clock)
        if len(clocks) > 1:
            raise DeclarationError(
                f"clocks {clocks[0]} and {clocks[1]}: one training clock a model; use one for all fields"
            )
        self.clock = clocks[0] if clocks else None
        self.time = str(self.clock) if self.clock is not None else "t"
        rank = {field.name: i for i, field in enumerate(time_order.order)}
        equations = [e for e in model.equations if isinstance(e.target, FieldAt)]
        self.rules = sorted((e for e in equations if not _is_start(e)), key=lambda e: rank[e.name])
        self.starts = {(e.name, int(e.time)): e for e in model.equations if _is_start(e)}
        self.weight_rules = _in_order([e for e in model.equations if isinstance(e.target, Atom) and not _is_start(e)])

    # -- the module

    def module(self) -> str:
        lines = [
            '"""The declaration at finite size: draw the disorder, run the equations, return the probed matrices."""',
            "",
            "import numpy as np",
            "import scipy.special as sc  # noqa: F401",
            "",
            "",
            *_HELPERS,
            "",
            "",
            *self.sectors(),
            "",
            "",
            *self.numbers(),
            "",
            "",
            f"def simulate({self.sample_arguments}, rng, progress=lambda fraction: None, watch=None, "
            "xp=np, special=sc):",
            '    """One sample with base size `size`: probed matrices by label, for each the directions of its spikes',
            "    on either side and, of K^T K, its half K (as functions), and observables, one row a time.",
            "",
            "    `watch(time, probed)` is called at every time; probed() gives the matrices as they then are.",
            "    `xp` and `special` are where arrays and special functions come from: numpy and scipy.special, or",
            "    jax.numpy and jax.scipy.special.",
            '    """',
        ]
        body = [*self.sizes(), *self.draws(), *self.static_fields(), *self.loop(), *self.results()]
        body = [re.sub(r"\bsc\.", "special.", re.sub(r"\bnp\.", "xp.", line)) for line in body]
        return "\n".join([*lines, *[f"    {line}" if line else "" for line in body]]) + "\n"

    def data_names(self) -> tuple[str, ...]:
        return tuple(d.name for d in atoms(self.model, Data))

    @property
    def sample_arguments(self) -> str:
        return ", ".join(filter(None, (self.signature, *self.data_names(), "size")))

    @property
    def arguments(self) -> str:
        return ", ".join(filter(None, (self.signature, "size")))

    def sectors(self) -> list[str]:
        """A function that gives the sizes of the sectors before they are rounded."""
        wanted = [f'"{sector}": {numpy_code(sector.ratio * sp.Symbol("size"))}' for sector in atoms(self.model, Sector)]
        return [
            f"def sectors({self.arguments}):",
            '    """Sizes of the sectors as their ratios have them; a sample has whole ones."""',
            f"    return {{{', '.join(wanted)}}}",
        ]

    def numbers(self) -> list[str]:
        """A function that estimates what a sample holds."""
        held = [_times(3 if d.symmetric or d.fresh else 1, d.rows, d.columns) for d in atoms(self.model, Disorder)]
        held += [_times(3, e.target.rows, e.target.columns) for e in self.weight_rules]
        fields = dict.fromkeys([*(e.target.field for e in self.rules), *self.sources()])
        held += [_times(f.clock.points if f.timed else 1, f.labels if f.labelled else 1, f.sector) for f in fields]
        matrices = [probe.matrix for _, probe in self.model.probes]
        working = sorted({_times(*sorted(shape, key=str)) for m in matrices for shape in _on_the_way(m)})
        spectra = sorted({_times(m.rows, m.columns) for m in matrices})
        body = [
            *self.sizes(),
            "# random matrices; weights, with those of the time before and a working copy; fields at all times",
            f"held = {' + '.join(held) or '0'}",
            "# products on the way to the probed matrices",
            f"working = 4 * max({', '.join(['0', *working])})" if working else "working = 0",
            "# later: a probed matrix, its symmetric part, its eigenvectors and what finding them takes",
            f"spectrum = 6 * max({', '.join(['0', *spectra])})" if spectra else "spectrum = 0",
            "return held + max(working, spectrum)",
        ]
        return [
            f"def numbers({self.arguments}):",
            '    """Roughly how many numbers a sample holds at once."""',
            *[f"    {line}" for line in body],
        ]

    def sizes(self) -> list[str]:
        lines = ["# sizes of the sectors"]
        for sector in sorted(atoms(self.model, Sector), key=lambda s: (s.ratio != 1, s.name)):
            ratio = numpy_code(sector.ratio)
            lines.append(f"{sector} = size" if ratio == "1" else f"{sector} = max(1, round(({ratio}) * size))")
        return lines

    def draws(self) -> list[str]:
        lines = ["# random matrices and vectors"]
        for d in atoms(self.model, Disorder):
            if d.fresh is None:
                lines.append(f"{d} = {_draw(d)}")
        for f in self.sources():
            if not f.timed:
                lines.append(f"{f} = {self._normal(f)}")
        return lines

    def sources(self) -> list[Field]:
        return [f for f in atoms(self.model, Field) if f.role == "normal"]

    def _normal(self, field: Field) -> str:
        shape = f"({field.sector}, {field.labels})" if field.labelled else f"{field.sector}"
        scale = numpy_code(field.scale)
        return f"{'' if scale == '1' else f'({scale}) * '}np.asarray(rng.standard_normal({shape}))"

    def static_fields(self) -> list[str]:
        return [f"{e.name} = {self.vector(e.value)}" for e in self.rules if not e.target.field.timed]

    def loop(self) -> list[str]:
        if self.clock is None:
            return self.probed_lines()
        t, points = self.time, numpy_code(self.clock.points)
        timed = [e for e in self.rules if e.target.field.timed]
        lines = ["# training"]
        lists = [*(e.name for e in timed), *(f.name for f in self.sources() if f.timed)]
        lines += [f"{name} = []" for name in lists]
        names = [e.name for e in self.weight_rules]
        fresh = [d for d in atoms(self.model, Disorder) if d.fresh is not None]
        lines += [f"{name} = {name}_before = None" for name in names]
        lines += [f"{d} = {d}_before = np.zeros(({d.rows}, {d.columns}))" for d in fresh]
        body: list[str] = []
        for d in fresh:
            body += [f"{d}_before, {d} = {d}, {_draw(d)}"]
        body += self.weight_lines()
        for f in self.sources():
            if f.timed:
                body.append(f"{f}.append({self._normal(f)})")
        for e in timed:
            body += self.field_lines(e)
        body += self.watching(t)
        body.append(f"progress(({t} + 1) / ({points}))")
        lines = [*self.probed_lines(), *lines, f"for {t} in range({points}):", *[f"    {line}" for line in body]]
        if not self.clock.endpoint and names:
            lines += [f"{t} = {numpy_code(self.clock.steps)}", *self.weight_updates(), *self.watching(t)]
        return lines

    def probed_lines(self) -> list[str]:
        """A function that gives the probed matrices as they stand when it is called."""
        entries = [f'"{label}": {self.matrix(probe.matrix)}' for label, probe in self.model.probes]
        return ["", "def probed():", f"    return {{{', '.join(entries)}}}", ""]

    def watching(self, time: str) -> list[str]:
        return ["if watch is not None:", f"    watch({time}, probed)"] if self.model.probes else []

    def weight_lines(self) -> list[str]:
        if not self.weight_rules:
            return []
        starts = [f"{e.name} = {self.matrix(self.starts[e.name, 0].value)}" for e in self.weight_rules]
        return [
            f"if {self.time} == 0:",
            *[f"    {line}" for line in starts],
            "else:",
            *[f"    {line}" for line in self.weight_updates()],
        ]

    def weight_updates(self) -> list[str]:
        names = [e.name for e in self.weight_rules]
        before = f"{', '.join(f'{n}_before' for n in names)} = {', '.join(names)}"
        return [before, *(f"{e.name} = {self.matrix(_moved(e.value, self.clock, -1))}" for e in self.weight_rules)]

    def field_lines(self, e: Eq) -> list[str]:
        shift = int(e.time - self.clock)
        moved = e.value.subs(self.clock, self.clock - shift)
        rule = f"{e.name}.append({self.vector(moved, e.target.field)})"
        starts = sorted(first for name, first in self.starts if name == e.name)
        if not starts:
            return [rule]
        lines = []
        for i, first in enumerate(starts):
            value = _absolute(self.starts[e.name, first].value, self.clock, first)
            lines += [
                f"{'if' if i == 0 else 'elif'} {self.time} == {first}:",
                f"    {e.name}.append({self.vector(value, e.target.field)})",
            ]
        return [*lines, "else:", f"    {rule}"]

    def results(self) -> list[str]:
        lines = ["# what is observed"]
        entries = []
        for name, value in self.model.observe:
            timed = any(v.time is not None for v in value.atoms(FieldAt))
            code = self.scalar(value)
            points = numpy_code(self.clock.points) if timed else None
            entries.append(f'"{name}": [{code} for {self.time} in range({points})]' if timed else f'"{name}": [{code}]')
        lines.append("observables = {" + ", ".join(entries) + "}")
        spikes = [f'"{label}": {{{self.spikes(probe.matrix)}}}' for label, probe in self.model.probes]
        return [*lines, f"spikes = {{{', '.join(spikes)}}}", "return probed(), spikes, observables"]

    # -- directions of the spikes

    def spikes(self, matrix: Matrix) -> str:
        """Entries of a dictionary: side, and a function that gives the directions as columns."""
        half = half_product(matrix)
        sides = {"right": [a for a, _ in self.dyads(matrix)]}
        entries = []
        if half:
            factors = factors_of(matrix.terms[0][1] if isinstance(matrix, Sum) else matrix)
            sides = {
                "right": [b for _, b in self.dyads(factors[-1])],
                "left": [a for a, _ in self.dyads(factors[half])],
            }
            root = Product(factors[half].rows, factors[-1].columns, factors[half:])
            entries = [f'"half": lambda: {self.matrix(root)}']
        entries += [
            f'"{side}": lambda: np.concatenate([{", ".join(dict.fromkeys(columns))}], axis=1)'
            for side, columns in sides.items()
            if columns
        ]
        return ", ".join(entries)

    def dyads(self, matrix: Matrix, seen: tuple = ()) -> list[tuple[str, str]]:
        """Left and right directions of everything of low rank in a matrix, each as code for an array of columns."""
        if isinstance(matrix, Dyad):
            return [(self.columns(matrix.left), self.columns(matrix.right))]
        if isinstance(matrix, Sum):
            return [pair for _, part in matrix.terms for pair in self.dyads(part, seen)]
        if not isinstance(matrix, Atom) or not isinstance(matrix.symbol, WeightsAt):
            return []
        name = matrix.symbol.weights.name
        if name in seen:
            return []
        rules = [e.value for e in self.model.equations if isinstance(e.target, Atom) and e.name == name]
        found = [pair for value in rules for pair in self.dyads(value, (*seen, name))]
        return [(b, a) for a, b in found] if matrix.transposed else found

    def columns(self, vector: sp.Expr) -> str:
        code = self.vector(vector)
        if not any(v.time is not None for v in vector.atoms(FieldAt)):
            return f"columns({code})"
        if not vector.has(self.clock):
            return f"columns({code})"
        return f"*(columns({code}) for {self.time} in range({numpy_code(self.clock.steps)}))"

    # -- expressions

    def vector(self, expression: sp.Expr, target: Field | None = None) -> str:
        names: dict = {}
        labelled = _labelled(expression)
        self._name_nodes(expression, names, labelled)
        code = numpy_code(expression, names)
        constant = not expression.has(FieldAt, Apply, Project, sp.Sum)
        if target is not None and (constant or (target.labelled and not labelled)):
            shape = f"({target.sector}, {target.labels})" if target.labelled else f"{target.sector}"
            code = f"({code}){'[:, None]' if target.labelled and not constant else ''} * np.ones({shape})"
        return code

    def scalar(self, expression: sp.Expr) -> str:
        """A number; outside total(...) and each(...) labels are averaged over."""
        if isinstance(expression, Each):
            return self.by_label(expression.expression)
        names: dict = {}

        def walk(node: sp.Basic) -> None:
            if isinstance(node, Total):
                names[node] = f"np.sum({self.by_label(node.expression)})"
            elif isinstance(node, Mean):
                names[node] = f"np.mean({self.vector(node.expression)})"
            else:
                for arg in node.args:
                    walk(arg)

        walk(expression)
        return numpy_code(expression, names)

    def by_label(self, expression: sp.Expr) -> str:
        """Numbers that have labels, as an array over them."""
        names: dict = {}
        self._name_nodes(expression, names, True)
        return numpy_code(expression, names)

    def _name_nodes(self, node: sp.Basic, names: dict, labelled: bool) -> None:
        """Code for nodes that are not plain arithmetic; vectors without labels get an axis where others have one."""
        thin = isinstance(node, (FieldAt, Apply, Project, sp.Sum)) or (isinstance(node, Total) and _is_vector(node))
        if thin and labelled and not _labelled(node):
            inner: dict = {}
            self._name_nodes(node, inner, False)
            names[node] = f"({inner[node]})[:, None]"
            return
        if isinstance(node, FieldAt):
            names[node] = self._value(node)
        elif isinstance(node, Apply):
            names[node] = f"({self._operator(node.matrix, node.transposed)} @ ({self.vector(node.vector)}))"
        elif isinstance(node, Project):
            names[node] = f"project({', '.join(self.vector(a) for a in node.args)})"
        elif isinstance(node, Mean):
            names[node] = f"np.mean({self.vector(node.expression)}, axis=0)"
        elif isinstance(node, Mix):
            tail = "" if node.transposed else ".T"
            names[node] = f"(({self.vector(node.vector)}) @ {self._data(node.table)}{tail})"
        elif isinstance(node, Total):
            summed = self.vector(node.expression) if _is_vector(node) else self.by_label(node.expression)
            names[node] = f"({summed}).sum(axis=-1)"
        elif isinstance(node, DataAt):
            names[node] = self._data(node)
        elif isinstance(node, sp.Sum):
            ((index, low, high),) = node.limits
            names[node] = (
                f"sum(({self.vector(node.function)} for {index} in range({low}, {numpy_code(high + 1)})), 0.0)"
            )
        else:
            for arg in node.args:
                self._name_nodes(arg, names, labelled)

    def _value(self, value: FieldAt) -> str:
        if value.time is None:
            return f"{value.field}"
        late = self.clock is not None and value.time.has(self.clock) and value.time != self.clock
        if late or (value.time.has(PAST) and value.time != PAST):
            shape = f"({value.field.sector}, {value.field.labels})" if value.field.labelled else f"{value.field.sector}"
            return f"earlier({value.field}, {numpy_code(value.time)}, {shape})"
        return f"{value.field}[{numpy_code(value.time)}]"

    def _data(self, node: DataAt) -> str:
        if node.time is None:
            return f"{node.data}"
        if self.clock is not None and node.time.has(self.clock) and node.time != self.clock:
            return f"earlier({node.data}, {numpy_code(node.time)}, {node.data}[0].shape)"
        return f"{node.data}[{numpy_code(node.time)}]"

    def _operator(self, symbol, transposed: bool) -> str:
        tail = ".T" if transposed else ""
        if isinstance(symbol, Disorder):
            return f"{symbol}{tail}"
        name = symbol.args[0]
        lag = sp.expand(self.clock - symbol.time) if symbol.time.has(self.clock) else sp.S.Zero
        if lag not in (0, 1):
            raise DeclarationError(
                f"{name}({symbol.time}): weights and fresh matrices may be used at one time and the next only"
            )
        return f"{name}{'_before' if lag == 1 else ''}{tail}"

    def matrix(self, matrix: Matrix) -> str:
        if isinstance(matrix, Sum):
            if not matrix.terms:
                return f"np.zeros(({matrix.rows}, {matrix.columns}))"
            parts = []
            for scale, part in matrix.terms:
                factor = self.scalar(scale)
                code = self.matrix(part)
                parts.append(code if factor == "1" else f"({factor}) * ({code})")
            return " + ".join(parts)
        if isinstance(matrix, Product):
            return " @ ".join(f"({self.matrix(f)})" if isinstance(f, Sum) else self.matrix(f) for f in matrix.factors)
        if isinstance(matrix, Dyad):
            return f"outer({self.vector(matrix.left)}, {self.vector(matrix.right)})"
        return self._operator(matrix.symbol, matrix.transposed)


def _times(*factors: sp.Expr | int) -> str:
    """A product in the order it was given in, without ones."""
    codes = [numpy_code(sp.sympify(factor)) for factor in factors]
    return " * ".join(f"({code})" if " " in code else code for code in codes if code != "1") or "1"


def _on_the_way(matrix: Matrix) -> list[tuple[Sector, Sector]]:
    """Shapes of the matrices that are made when an expression is evaluated from the left."""
    if isinstance(matrix, Sum):
        inner = [shape for _, part in matrix.terms for shape in _on_the_way(part)]
        return [*inner, (matrix.rows, matrix.columns)]
    if isinstance(matrix, Product):
        inner = [shape for factor in matrix.factors for shape in _on_the_way(factor)]
        return [*inner, *((matrix.rows, factor.columns) for factor in matrix.factors[1:])]
    return [(matrix.rows, matrix.columns)] if isinstance(matrix, Dyad) else []


def _labelled(expression: sp.Basic) -> bool:
    """Whether a vector expression has labels."""
    return labels_of(expression) is not None


def _is_vector(node: Total) -> bool:
    """Whether what is summed over labels is a vector, not a number."""
    return sector_of(node.expression) is not None


def _is_start(equation: Eq) -> bool:
    return equation.time is not None and equation.time.is_Integer


def _draw(d: Disorder) -> str:
    variance = numpy_code(d.variance)
    if d.symmetric:
        return f"np.asarray(goe({d.rows}, {variance}, rng))"
    scale = numpy_code(sp.sqrt(d.variance))
    return f"{'' if scale == '1' else f'({scale}) * '}np.asarray(rng.standard_normal(({d.rows}, {d.columns})))"


def _moved(matrix: Matrix, clock: Clock, shift: int) -> Matrix:
    """A matrix expression with its time moved."""

    def move(e: sp.Expr) -> sp.Expr:
        return e.subs(clock, clock + shift)

    if isinstance(matrix, Sum):
        return Sum(matrix.rows, matrix.columns, tuple((move(c), _moved(m, clock, shift)) for c, m in matrix.terms))
    if isinstance(matrix, Product):
        return Product(matrix.rows, matrix.columns, tuple(_moved(m, clock, shift) for m in matrix.factors))
    if isinstance(matrix, Dyad):
        return Dyad(matrix.rows, matrix.columns, move(matrix.left), move(matrix.right))
    if isinstance(matrix.symbol, (WeightsAt, DisorderAt)):
        return Atom(matrix.rows, matrix.columns, move(matrix.symbol), matrix.transposed)
    return matrix


def _absolute(expression: sp.Expr, clock: Clock, first: int) -> sp.Expr:
    """A starting equation with fixed times written relative to the clock."""
    moved = {
        n: n.func(n.args[0], clock + (n.time - first))
        for n in expression.atoms(FieldAt, WeightsAt, DisorderAt)
        if n.time is not None
    }
    return expression.xreplace(moved)


def _in_order(rules: list[Eq]) -> list[Eq]:
    """Update rules sorted so that weights needed at the same new time come first."""
    done: list[Eq] = []
    while len(done) < len(rules):
        ready = [e for e in rules if e not in done and _needs(e) <= {d.name for d in done}]
        if not ready:
            raise DeclarationError("the updates of weights need each other at the same time")
        done.append(ready[0])
    return done


def _needs(equation: Eq) -> set[str]:
    terms = equation.value.terms if isinstance(equation.value, Sum) else ((1, equation.value),)
    return {
        str(m.symbol.weights)
        for _, m in terms
        if isinstance(m, Atom) and isinstance(m.symbol, WeightsAt) and m.symbol.time == equation.time
    }


_HELPERS = [
    "def goe(size, variance, rng):",
    '    """Symmetric Gaussian matrix: off-diagonal entries of the given variance, twice that on the diagonal."""',
    "    entries = rng.standard_normal((size, size))",
    "    return np.sqrt(variance / 2) * (entries + entries.T)",
    "",
    "",
    "def earlier(values, time, shape):",
    '    """A field at an earlier time; before the start everything is zero."""',
    "    return values[time] if time >= 0 else np.zeros(shape)",
    "",
    "",
    "def outer(left, right):",
    '    """left right^T; class labels, the second axis, are summed over."""',
    "    return left[:, None] * right[None, :] if left.ndim == 1 else left @ right.T",
    "",
    "",
    "def columns(vector):",
    '    """A vector as one column; one with class labels has a column for each already."""',
    "    return vector[:, None] if vector.ndim == 1 else vector",
    "",
    "",
    "def project(left, right, vector):",
    '    """The matrix left right^T times a vector, without making the matrix."""',
    "    if left.ndim > 1:",
    "        return left @ (right.T @ vector)",
    "    found = right @ vector",
    "    return left * found if found.ndim == 0 else left[:, None] * found[None, :]",
]
