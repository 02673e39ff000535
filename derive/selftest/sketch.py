"""The state of a random declaration while it is drawn, and the parts that may be used next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from random import Random

from derive.selftest.drafts import (
    HALF,
    ONE,
    QUARTER,
    DraftAxis,
    DraftClock,
    DraftData,
    DraftEquation,
    DraftMatrix,
    DraftParameter,
    DraftSector,
    DraftTrait,
    DraftVector,
    DraftWeights,
    Node,
    at,
    call,
    cases,
    compare,
    name,
    number,
    root,
    weights_at,
)

COEFFICIENTS = (Fraction(1, 2), Fraction(-1, 2), Fraction(1, 4), Fraction(3, 4), Fraction(-1, 4), Fraction(1))
LAWS: dict[str, Callable[[Node], Node]] = {
    **{word: partial(call, word) for word in ("tanh", "erf", "sin", "cos", "atan", "Abs", "sign", "Heaviside")},
    "Max": lambda x: call("Max", number(0), x),
    "Min": lambda x: call("Min", ONE, x),
    "Piecewise": lambda x: cases(x, compare("Gt", x, number(Fraction(1, 5))), -HALF),
    "exp": lambda x: call("exp", -(x**2)),
    "log": lambda x: call("log", ONE + x**2),
    "sqrt": lambda x: root(ONE + x**2),
    "sinh": lambda x: call("sinh", call("tanh", x)),
    "cosh": lambda x: ONE / call("cosh", x),
}
"""Elementwise functions of at most linear growth."""
OF_VECTOR, OF_PARAMETER, OF_TIME = " of a vector", " of a parameter", " of time"
LIKELY = 0.8
"""Probability of a wanted feature wherever it can be drawn."""


@dataclass
class Sketch:
    """The declaration drawn so far."""

    rng: Random
    linear: bool
    sectors: list[DraftSector]
    parameters: list[DraftParameter]
    clock: DraftClock | None
    matrices: list[DraftMatrix]
    normals: list[DraftVector]
    fields: list[DraftVector]
    weights: list[DraftWeights]
    equations: list[DraftEquation]
    data: list[DraftData] = field(default_factory=list)
    traits: list[DraftTrait] = field(default_factory=list)
    axes: list[DraftAxis] = field(default_factory=list)
    skewed: set[str] = field(default_factory=set)
    """Weights that start symmetric and have asymmetric updates."""
    classes: tuple[str, ...] = ()
    """The label axis of all timed fields, if there is one."""
    wanted: frozenset[str] = frozenset()
    """Features to draw wherever possible."""

    def chance(self, probability: float, *features: str) -> bool:
        """Return True with a probability, which is high for a wanted feature."""
        is_wanted = any(feature in self.wanted for feature in features)
        return self.rng.random() < (LIKELY if is_wanted else probability)

    def pick(self, options: Sequence[str], what: str = "") -> str:
        """Return one of several options, preferably a wanted feature. `what` completes the names of features."""
        preferred = [option for option in options if f"{option}{what}" in self.wanted]
        return self.rng.choice(preferred if preferred and self.rng.random() < LIKELY else options)

    def law(self, inner: Node) -> Node:
        """Return a random function of a vector."""
        return LAWS[self.pick((*LAWS, "tanh", "tanh"), OF_VECTOR)](inner)

    def coefficient(self) -> Node:
        """Return a coefficient of order one: a number, a parameter, a function of one, a root or a ratio of sizes."""
        if self.chance(0.1):
            return self._root_or_ratio()
        if self.chance(0.12, *(f"{word}{OF_PARAMETER}" for word in PARAMETERS)):
            return PARAMETERS[self.pick(tuple(PARAMETERS), OF_PARAMETER)](self)
        value = self.rng.choice(COEFFICIENTS)
        if not self.chance(0.5, "parameter", "a parameter at zero", "a negative parameter"):
            return number(value)
        old = [p for p in self.parameters if p.domain == "real"]
        if old and self.chance(0.4):
            return name(self.rng.choice(old).name)
        if self.chance(0.08, "a parameter at zero"):
            value = Fraction(0)
        elif self.chance(0.0, "a negative parameter"):
            value = Fraction(-1, 2)
        return self.parameter("c", value)

    def parameter(self, wish: str, value: Fraction | None = None, domain: str = "real") -> Node:
        """Return a new parameter with a value in its domain, possibly negative or zero, unless one is given."""
        if value is None:
            value = self.rng.choice(_VALUES[domain])
        word = f"{wish}{1 + sum(p.name.startswith(wish) for p in self.parameters)}"
        self.parameters.append(DraftParameter(word, value, domain, "a number" if self.chance(0.2) else ""))
        return name(word)

    def _root_or_ratio(self) -> Node:
        choices = [HALF * root(number(2)), -QUARTER * root(number(3))]
        if len(self.sectors) > 1:
            top, bottom = (name(s.name) for s in self.rng.sample(self.sectors, 2))
            ratio = top / bottom
            choices += [HALF * part for part in (ratio, root(ratio))]
        return self.rng.choice(choices)

    def base(self) -> Node:
        return name(self.sectors[0].name)

    def labelled(self) -> bool:
        return bool(self.classes)


_VALUES = {
    "real": (Fraction(-1, 2), Fraction(-3, 4), Fraction(0), Fraction(1, 2), Fraction(5, 4)),
    "nonnegative": (Fraction(0), Fraction(1, 2), Fraction(1)),
    "positive": (Fraction(1, 4), Fraction(1), Fraction(3, 2)),
    "whole_nonnegative": (Fraction(0), Fraction(1), Fraction(2)),
    "Domain(-1, 1)": (Fraction(-3, 5), Fraction(0), Fraction(4, 5)),
    "Domain(-1, 1, low_included=True, high_included=True)": (Fraction(-1), Fraction(3, 5)),
    "Domain(0, 2, low_included=True, high_included=True, whole=True)": (Fraction(0), Fraction(2)),
}
_WHOLE = tuple(domain for domain in _VALUES if "whole" in domain)
_BELOW_ONE = tuple(domain for domain in _VALUES if domain.startswith("Domain(-1"))
_AWAY = (Fraction(-1, 2), Fraction(1, 2))
"""Values away from a jump, at which conventions differ."""
PARAMETERS: dict[str, Callable[[Sketch], Node]] = {
    "Abs": lambda s: call("Abs", s.parameter("kappa")),
    "sign": lambda s: HALF * call("sign", s.parameter("kappa")),
    "Heaviside": lambda s: HALF * (ONE + call("Heaviside", s.parameter("kappa", s.rng.choice(_AWAY)))),
    "Min": lambda s: call("Min", s.parameter("kappa"), QUARTER),
    "Max": lambda s: call("Max", s.parameter("kappa"), QUARTER),
    "Piecewise": lambda s: _case_of(s.parameter("kappa")),
    "sqrt": lambda s: _root_of(s),
    "exp": lambda s: call("exp", -s.parameter("lam", domain="nonnegative")),
    "tanh": lambda s: call("tanh", s.parameter("kappa")),
    "power": lambda s: s.parameter("beta", domain="positive") ** s.parameter("whole", domain=s.rng.choice(_WHOLE)),
    "quotient": lambda s: s.parameter("kappa") / (ONE + s.parameter("kappa") ** 2),
}
"""Coefficients built from parameters with suitable domains."""


def _case_of(k: Node) -> Node:
    return cases(k, compare("Gt", k, number(0)), QUARTER)


def _root_of(sketch: Sketch) -> Node:
    """Return a square root of a sum or of a square."""
    kind = sketch.rng.randrange(3)
    if kind == 0:
        return root(ONE + sketch.parameter("lam", domain="nonnegative"))
    if kind == 1:
        return root(ONE + -(sketch.parameter("rho", domain=sketch.rng.choice(_BELOW_ONE)) ** 2))
    return root(sketch.parameter("kappa") ** 2)


def _base_of_power(sketch: Sketch) -> Node:
    return number(Fraction(9, 10)) if sketch.chance(0.5) else sketch.parameter("beta", domain="positive")


TIMES: dict[str, Callable[[Sketch, Node], Node]] = {
    "quotient": lambda s, now: ONE / (ONE + now),
    "multiple": lambda s, now: HALF * now,
    "square": lambda s, now: ONE + now**2,
    "KroneckerDelta": lambda s, now: call("KroneckerDelta", now, number(0)),
    "0**t": lambda s, now: number(0) ** now,
    "c**t": lambda s, now: _base_of_power(s) ** now,
    "Heaviside": lambda s, now: call("Heaviside", now + -HALF),
    "sign": lambda s, now: ONE + HALF * call("sign", now),
    "Abs": lambda s, now: call("Abs", now + -ONE),
    "Min": lambda s, now: call("Min", now, ONE),
    "Max": lambda s, now: ONE / call("Max", now, ONE),
    "Piecewise": lambda s, now: cases(ONE, compare("Lt", now, ONE), HALF),
    "sqrt": lambda s, now: ONE / root(ONE + now),
    "exp": lambda s, now: call("exp", -now),
}
"""Time-dependent coefficients, some of which vanish initially or later, or are not smooth."""


def of_time(sketch: Sketch) -> Node:
    """Return a coefficient that depends on time."""
    assert sketch.clock is not None
    return TIMES[sketch.pick(tuple(TIMES), OF_TIME)](sketch, name(sketch.clock.name))


def value_of(vector: DraftVector, delay: int) -> Node:
    return at(vector.name, delay if vector.kind == "timed" else None)


def usable_values(sketch: Sketch, sector: str, rank: int, static: bool, later: bool) -> list[Node]:
    """Return values over a sector that an equation may use: earlier fields at t, and any field with a delay.

    `later`: the equation is at t + 1, so that all values at t are in its past.
    """
    usable = [
        value_of(v, 0) for v in sketch.normals if v.sector == sector and not (static and (v.kind != "static" or v.axes))
    ]
    for k, v in enumerate(sketch.fields):
        if v.sector != sector or (static and v.kind != "static"):
            continue
        if k < rank or (later and v.kind == "timed"):
            usable += [value_of(v, 0)] * 3
        if not static and v.kind == "timed":
            usable.append(value_of(v, sketch.rng.choice((1, 1, 2, 5))))
    return usable


def operators_into(sketch: Sketch, sector: str, static: bool) -> list[tuple[Node, str, Node]]:
    """Return matrices that map to a sector: the matrix, its column sector, and its natural scale."""
    operators = []
    for m in sketch.matrices:
        if m.kind == "fresh" and static:
            continue
        node = Node("fresh", (m.name, 0)) if m.kind == "fresh" else Node("matrix", (m.name,))
        if m.rows == sector:
            scale = ONE if m.kind == "goe" else ONE / root(name(m.columns))
            operators.append((node, m.columns, scale))
        if m.columns == sector and m.kind != "goe":
            operators.append((node.T, m.rows, ONE / root(name(m.rows))))
    for w in sketch.weights:
        if static or not rooted(sketch, w.name):
            continue
        node = weights_at(w.name)
        scale = weight_scale(sketch, w)
        if w.rows == sector:
            operators += [(node, w.columns, scale)] * 2
        if w.columns == sector:
            operators += [(node.T, w.rows, scale)] * 2
    return operators


def rooted(sketch: Sketch, word: str) -> bool:
    """Return whether weights start at a random matrix; momentum does not."""
    return any(e.target == word and e.time == "0" and e.value != number(0) for e in sketch.equations)


def weight_scale(sketch: Sketch, w: DraftWeights) -> Node:
    start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
    inner = next((n for n in start.walk() if n.op == "matrix"), None)
    kind = next((m.kind for m in sketch.matrices if inner is not None and m.name == inner.leaf), "goe")
    scaled = any(n.op == "root" for n in start.walk())
    return ONE if kind == "goe" or scaled else ONE / root(name(w.columns))


def symmetric_start(sketch: Sketch, w: DraftWeights) -> bool:
    start = next(e.value for e in sketch.equations if e.target == w.name and e.time == "0")
    used = {n.leaf for n in start.walk() if n.op == "matrix"}
    return all(m.kind == "goe" for m in sketch.matrices if m.name in used)
