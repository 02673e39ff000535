"""Trained weights as initial random matrices plus a low-rank history of updates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import sympy as sp

from derive.algebra.recheck import check_same
from derive.algebra.scaling import cure, growth, norm_order, size_free, size_order
from derive.errors import DeclarationError, SizeError, blaming
from derive.language.contents import declared_names
from derive.language.equations import Eq
from derive.language.matrices import Disorder, MatrixAtom, SumOfMatrices, Weights
from derive.language.model import Model
from derive.language.symbols import Clock, Sector, free_name
from derive.language.vectors import PAST, Apply, Mean, PastSum, Project, shown
from derive.records.system import Recurrence


@dataclass(frozen=True)
class Increment:
    """A dyad that an update rule adds at each time, with its scalar coefficient, as functions of the clock."""

    coefficient: sp.Expr
    left: sp.Expr
    right: sp.Expr


@dataclass(frozen=True)
class InitialMatrix:
    """A random matrix, or its transpose, that is the initial value of weights or is added at each step."""

    disorder: Disorder
    transposed: bool

    def __str__(self) -> str:
        return f"{self.disorder}{'T' if self.transposed else ''}"


K = TypeVar("K")
Coefficient = Callable[..., sp.Expr]
Column = tuple[sp.Expr, ...]
Rows = tuple[Column, ...]
Update = tuple[dict[Weights, sp.Expr], dict[InitialMatrix, sp.Expr], dict[Increment, sp.Expr], dict[Weights, sp.Expr]]


@dataclass(frozen=True)
class History:
    """All trained weights of a model as initial matrices plus low-rank history."""

    clocks: dict[Weights, Clock]
    initial: dict[tuple[Weights, InitialMatrix], Coefficient]
    """Functions of time."""
    kernels: dict[tuple[Weights, Increment], Coefficient]
    """Functions of time and PAST."""
    increments: tuple[Increment, ...]
    recurrences: tuple[Recurrence, ...]

    def starts(self, weights: Weights) -> list[tuple[InitialMatrix, Coefficient]]:
        """Return the random matrices in some weights, with their coefficients as functions of time."""
        return [(start, scale) for (name, start), scale in self.initial.items() if name == weights]

    def applied(self, node: Apply) -> sp.Expr:
        """Return trained weights at a time, applied to a vector."""
        weights, time = node.matrix.weights, node.matrix.time
        total = sp.S.Zero
        for start, scale in self.starts(weights):
            turned = start.transposed != node.transposed and not start.disorder.symmetric
            total += scale(time) * Apply(start.disorder, turned, node.vector)
        clock = self.clocks[weights]
        for (name, increment), kernel in self.kernels.items():
            if name == weights:
                left, right = increment.left, increment.right
                if node.transposed:
                    left, right = right, left
                scale, left, right = (part.subs(clock, PAST) for part in (increment.coefficient, left, right))
                added = kernel(time, PAST) * scale * Project(left, right, node.vector)
                total += PastSum(added, (PAST, 0, time - 1))
        return total


def write_out(model: Model) -> History:
    """Solve the linear recurrences of all weight matrices."""
    own = [e for e in model.equations if e.target.weights is not None]
    starts = {e.target.symbol.weights: e for e in own if e.start is not None}
    rules = {e.target.symbol.weights: e for e in own if e.start is None}
    order = tuple(rules)
    clocks = {w: w.clock for w in order}
    updates = {w: _update(rules[w], w) for w in order}
    with blaming(rules[order[0]] if order else None):
        _substitute_next(updates, order)
    increments = tuple(dict.fromkeys(i for w in order for i in updates[w][2]))
    disorder = tuple(
        dict.fromkeys([d for w in order for d in _initial(starts[w], w)] + [d for w in order for d in updates[w][1]])
    )

    for w in order:
        if w in updates[w][0]:
            updates[w][0][w] = _decay_factor(updates[w][0][w], rules[w])

    matrix = tuple(tuple(updates[w][0].get(v, sp.S.Zero) for v in order) for w in order)
    book = _Coefficients(order, clocks, matrix, declared_names(model))
    initial: dict[tuple[Weights, InitialMatrix], Coefficient] = {}
    kernels: dict[tuple[Weights, Increment], Coefficient] = {}
    for d in disorder:
        entry = tuple(_initial(starts[w], w).get(d, sp.S.Zero) for w in order)
        forcing = tuple(updates[w][1].get(d, sp.S.Zero) for w in order)
        initial.update({(w, d): form for w, form in book.functions(f"initial_{d}", entry, forcing, True).items()})
    for increment in increments:
        entry = tuple(updates[w][2].get(increment, sp.S.Zero) for w in order)
        forms = book.functions("history", entry, (sp.S.Zero,) * len(order), False)
        kernels.update({(w, increment): form for w, form in forms.items()})
    return History(clocks, initial, kernels, increments, tuple(book.recurrences))


def _decay_factor(share: sp.Expr, rule: Eq) -> sp.Expr:
    """Return the decay factor of weights in one step. Sizes may enter only as ratios, since its powers are needed."""
    if not share.atoms(Sector):
        return share
    with blaming(rule):
        return size_free(share, f"the factor {shown(share)} of the weights in their own update")


class _Coefficients:
    """Coefficients of weights as functions of time: in closed form if there is one, by recurrence otherwise."""

    def __init__(self, order: tuple[Weights, ...], clocks: dict[Weights, Clock], matrix: Rows, taken: set[str]):
        self.order, self.clocks, self.matrix, self.taken = order, clocks, matrix, taken
        self.recurrences: list[Recurrence] = []
        self.asked: dict[str, int] = {}

    def functions(self, name: str, entry: Column, forcing: Column, is_initial: bool) -> dict[Weights, Coefficient]:
        """Return the coefficient in each weight matrix that an entry reaches: f(t) if initial, f(t, s) otherwise."""
        reached = _reached(self.matrix, entry, forcing)
        closed = _closed_form(self.matrix, entry, forcing, self.clocks, self.order)
        names = None
        coefficients: dict[Weights, Coefficient] = {}
        for i, w in enumerate(self.order):
            if not reached[i]:
                continue
            form = closed[i]
            if form is not None:
                coefficients[w] = form if is_initial else _in_delay(form)
                continue
            if names is None:
                powers = self._powers(entry, forcing)
                names = self._recurrence(name, *self._without_sizes(powers, entry, forcing), is_initial)
            coefficients[w] = _scaled(powers[i], sp.Function(names[i]))
        return coefficients

    def _powers(self, entry: Column, forcing: Column) -> list[sp.Expr | None]:
        """Return the power of the size of each coefficient; None for coefficients that vanish identically."""
        where = f"the updates of {', '.join(map(str, self.order))}"
        size = self.order[0].shape[1]
        powers: list[sp.Expr | None] = [None] * len(self.order)
        waiting = [(i, e, sp.S.Zero) for i, pair in enumerate(zip(entry, forcing, strict=True)) for e in pair if e != 0]
        while waiting:
            i, coefficient, before = waiting.pop(0)
            power = before + size_order(coefficient, where)
            if powers[i] is None:
                powers[i] = power
                waiting += [(k, row[i], power) for k, row in enumerate(self.matrix) if row[i] != 0]
            elif powers[i] != power:
                raise DeclarationError(
                    f"{where}: the same matrix enters {self.order[i]} both as size^({powers[i]}) and as "
                    f"size^({power}); give it coefficients that grow at the same rate"
                )
        return [None if power is None else size**power for power in powers]

    def _without_sizes(
        self, powers: list[sp.Expr | None], entry: Column, forcing: Column
    ) -> tuple[Rows, Column, Column]:
        """Return the recurrence of the coefficients divided by their powers of the size."""
        where = f"the updates of {', '.join(map(str, self.order))}"

        def free(value: sp.Expr, after: sp.Expr | None, before: sp.Expr | None = sp.S.One) -> sp.Expr:
            if after is None or before is None:  # what this multiplies, or adds to, is always zero
                return sp.S.Zero if value.atoms(Sector) else value
            scaled = value * before / after
            return size_free(scaled, where) if scaled.atoms(Sector) else scaled

        matrix = tuple(
            tuple(free(value, after, before) for value, before in zip(row, powers, strict=True))
            for row, after in zip(self.matrix, powers, strict=True)
        )
        entry, forcing = (
            tuple(free(e, after) for e, after in zip(column, powers, strict=True)) for column in (entry, forcing)
        )
        return matrix, entry, forcing

    def _recurrence(self, name: str, matrix: Rows, entry: Column, forcing: Column, is_initial: bool) -> tuple[str, ...]:
        """Return the function names of a recurrence; recurrences with equal coefficients share them."""
        for r in self.recurrences:
            if (r.matrix, r.entry, r.forcing, r.initial) == (matrix, entry, forcing, is_initial):
                return r.names
        self.asked[name] = count = self.asked.get(name, 0) + 1
        names = tuple(free_name(f"{name}{count if count > 1 else ''}_{w}", self.taken) for w in self.order)
        self.recurrences.append(Recurrence(tuple(map(str, self.order)), names, matrix, entry, forcing, is_initial))
        return names


def _scaled(power: sp.Expr | None, function: sp.Function) -> Coefficient:
    """Return a coefficient times its power of the size, which is constant in time."""
    return function if power is None or power == 1 else lambda *times: power * function(*times)


def _in_delay(form: Coefficient) -> Coefficient:
    """Convert a function of the number of steps since an update to a function of both times."""
    return lambda time, past: form(time - 1 - past)


def _reached(matrix: Rows, entry: Column, forcing: Column) -> list[bool]:
    reached = [e != 0 or f != 0 for e, f in zip(entry, forcing, strict=True)]
    for _ in reached:
        reached = [
            r or any(matrix[i][j] != 0 and reached[j] for j in range(len(reached))) for i, r in enumerate(reached)
        ]
    return reached


def _closed_form(
    matrix: Rows, entry: Column, forcing: Column, clocks: dict[Weights, Clock], order: tuple[Weights, ...]
) -> list[Coefficient | None]:
    """Return entry * a^n for weights that depend only on themselves with a constant factor a; None for others."""
    forms: list[Coefficient | None] = []
    for i, w in enumerate(order):
        alone = all(matrix[i][j] == 0 or i == j or not _reached(matrix, entry, forcing)[j] for j in range(len(order)))
        factor = matrix[i][i]
        if alone and forcing[i] == 0 and not factor.has(clocks[w]):
            form = _power_of(factor, entry[i])
            for step in range(3):
                check_same(factor * form(sp.Integer(step)), form(sp.Integer(step + 1)), "system", f"the update of {w}")
            forms.append(form)
        else:
            forms.append(None)
    return forms


def _power_of(factor: sp.Expr, entry: sp.Expr) -> Coefficient:
    """Return entry * factor^n as a function of n."""
    return lambda steps: entry if factor == 1 else entry * factor**steps


def check_sizes_of_updates(model: Model) -> None:
    """Raise SizeError for the first update whose outer products scale differently from the initial weights."""
    own = [e for e in model.equations if e.target.weights is not None]
    starts = {e.target.symbol.weights: e for e in own if e.start is not None}
    for equation in (e for e in own if e.start is None):
        weights = equation.target.symbol.weights
        where = f"the update of {weights}"
        begins = {
            size_order(scale, where)
            + norm_order(MatrixAtom(start.disorder.rows, start.disorder.columns, start.disorder))
            for start, scale in _initial(starts[weights], weights).items()
        }
        if len(begins) > 1:
            continue
        wanted = begins.pop() if begins else sp.S.Zero
        with blaming(equation):
            for scale, part in equation.value.as_sum:
                if part.low_rank:
                    order = size_order(scale, where) + 1 - wanted
                    if order != 0:
                        added = SumOfMatrices(part.rows, part.columns, ((scale, part),))
                        raise SizeError(
                            f"{where} adds {added}, which {growth(order, part.columns)} beside {weights}(0); "
                            f"{cure(order, part.columns)}"
                        )


def _initial(equation: Eq, weights: Weights) -> dict[InitialMatrix, sp.Expr]:
    with blaming(equation):
        parts: dict[InitialMatrix, sp.Expr] = {}
        for scale, part in equation.value.as_sum:
            if part.random is None:
                raise DeclarationError(
                    f"{weights}(0) must be a random matrix, a sum of them, or 0, not {part}; "
                    "put products into the probed matrix or into equations of fields"
                )
            start = InitialMatrix(part.random, part.transposed)
            parts[start] = parts.get(start, sp.S.Zero) + scale
        return parts


def _update(equation: Eq, weights: Weights) -> Update:
    """Return an update rule as coefficients of the current weights, random matrices, dyads and next weights."""
    with blaming(equation):
        return _parts_of_update(equation, weights)


def _parts_of_update(equation: Eq, weights: Weights) -> Update:
    now: dict[Weights, sp.Expr] = {}
    fixed: dict[InitialMatrix, sp.Expr] = {}
    added: dict[Increment, sp.Expr] = {}
    later: dict[Weights, sp.Expr] = {}
    clock = weights.clock
    if sp.expand(equation.time - clock) != 1:
        raise DeclarationError(f"{equation.target}: state weights as {weights}({clock} + 1) = ...")
    for scale, part in equation.value.as_sum:
        if part.low_rank:
            increment = Increment(scale, *part.expressions)
            added[increment] = added.get(increment, sp.S.Zero) + 1
        elif part.weights is not None and not part.transposed:
            shift = sp.expand(part.time - clock)
            if shift not in (0, 1):
                raise DeclarationError(
                    f"{equation.target}: {part} may enter at {clock} or {clock} + 1 only; for momentum give the change "
                    "weights of its own, Eq(V(t + 1), V(t) / 2 + ...) and Eq(W(t + 1), W(t) + V(t + 1))"
                )
            _check_no_mean(scale, weights, "weights")
            table = now if shift == 0 else later
            table[part.weights] = table.get(part.weights, sp.S.Zero) + scale
        elif part.random is not None:
            _check_no_mean(scale, weights, "a random matrix")
            start = InitialMatrix(part.random, part.transposed)
            fixed[start] = fixed.get(start, sp.S.Zero) + scale
        else:
            what = "a product of matrices" if len(part.as_product) > 1 else f"{part}"
            raise DeclarationError(
                f"the update of {weights} contains {what}; only scalar multiples of weights and "
                "outer products keep the history low-rank"
            )
    return now, fixed, added, later


def _check_no_mean(scale: sp.Expr, weights: Weights, what: str) -> None:
    if scale.has(Mean):
        raise DeclarationError(
            f"the update of {weights} multiplies {what} by a mean; only numbers, parameters and functions of time may "
            "multiply matrices there (outer products may be multiplied by means)"
        )


def _add(table: dict[K, sp.Expr], scale: sp.Expr, source: dict[K, sp.Expr]) -> None:
    for key, value in source.items():
        table[key] = table.get(key, sp.S.Zero) + scale * value


def _substitute_next(updates: dict[Weights, Update], order: tuple[Weights, ...]) -> None:
    """Replace weights at t + 1 on a right-hand side by their own rule."""
    for _ in order:
        for w in order:
            now, fixed, added, later = updates[w]
            for other in list(later):
                if other == w or updates[other][3]:
                    continue
                scale = later.pop(other)
                _add(now, scale, updates[other][0])
                _add(fixed, scale, updates[other][1])
                _add(added, scale, updates[other][2])
    stuck = [w for w in order if updates[w][3]]
    if stuck:
        raise DeclarationError(
            f"the updates of {', '.join(map(str, stuck))} depend on each other at the same time; use the value at an "
            f"earlier time in one of them"
        )
