"""A draft as the text of a declaration, which `derive solve FILE` runs."""

from __future__ import annotations

import keyword
import re
from fractions import Fraction

from derive.selftest.drafts import Data, Draft, Node, Trait, Vector

_SUM, _PRODUCT, _ATOM = range(3)
_FUNCTIONS = {
    **{word: f"{word}({{0}})" for word in ("tanh", "erf", "sin", "cos", "Abs", "sign")},
    "relu": "Max(0, {0})",
    "gate": "Piecewise(({0}, {0} > 0.2), (-0.5, True))",
    "bump": "exp(-({0})**2)",
}
_LIBRARY = ("Abs", "Max", "Piecewise", "Rational", "cos", "erf", "exp", "sign", "sin", "sqrt", "tanh")


class _Writer:
    def __init__(self, draft: Draft, family: bool = False):
        self.draft, self.family = draft, family
        self.words = {"Eq", "Model", "sectors"}
        self.functions: set[str] = set()
        self.variables: dict[str, str] = {}
        for name in draft.names():
            self.variables.setdefault(name, self._variable(name))

    def _variable(self, name: str) -> str:
        """A variable for a symbol: its name, unless a word of the language has that name."""
        from derive.words import WORDS as words

        while name in words or name in _LIBRARY or name in ("MODEL", "s") or keyword.iskeyword(name):
            name += "_"
        while name in self.variables.values():
            name += "_"
        return name

    def text(self) -> str:
        draft = self.draft
        lines = [*self._parameters(), self._sectors()]
        if draft.clock is not None:
            self.words.add("training_clock")
            clock = draft.clock
            more = "" if clock.endpoint else ", endpoint=False"
            steps = self.variables[clock.steps]
            lines.append(f"{self.variables[clock.name]} = training_clock({clock.name!r}, steps={steps}{more})")
        lines += [
            *self._axes(),
            *map(self._data, draft.data),
            *map(self._trait, draft.traits),
            *self._matrices(),
            *map(self._normal, draft.normals),
            *self._fields(),
            *self._weights(),
        ]
        equations = [
            f"        Eq({self._target(e.target, e.time)}, {self.expression(e.value)})," for e in draft.equations
        ]
        observed = [f"        {label!r}: {self.expression(value)}," for label, value in draft.observables]
        listed = "".join(f"{self.variables[p.name]}, " for p in draft.parameters).rstrip()
        probes = self._probes()
        body = [
            "MODEL = Model(",
            f"    parameters=({listed}),",
            "    equations=[",
            *equations,
            "    ],",
            *(["    observe={", *observed, "    },"] if observed else []),
            *probes,
            *(["    arrays=arrays,"] if draft.data else []),
            ")",
        ]
        if self.family:
            lines, body = self._as_family([*lines, "", *body])
        lines = [*self._arrays(), *lines]
        imports = ["import numpy", ""] if draft.data else []
        if self.functions:
            imports += [f"from sympy import {', '.join(sorted(self.functions))}", ""]
        imports += [f"from derive import {', '.join(sorted(self.words))}", ""]
        return "\n".join(['"""A declaration drawn at random."""', "", *imports, *lines, "", *body, ""])

    def _parameters(self) -> list[str]:
        lines = []
        for p in self.draft.parameters:
            self.words.add("parameter")
            more = ""
            if p.domain != "real":
                self.words.add(p.domain)
                more = f", domain={p.domain}"
            value = int(p.value) if p.domain.startswith("whole") else float(p.value)
            lines.append(f"{self.variables[p.name]} = parameter({p.name!r}, default={value}{more})")
        return lines

    def _as_family(self, lines: list[str]) -> tuple[list[str], list[str]]:
        """The declaration as the first member of a family: a function of a word and of a whole number."""
        self.words |= {"family", "one_of", "whole_choice"}
        word, count = (self._variable(self.draft.free_name(wish)) for wish in ("kind", "members"))
        made = ["    " + line if line else "" for line in lines]
        made[made.index("    MODEL = Model(")] = "    return Model("
        choices = f'{word}=one_of("plain", "other"), {count}=whole_choice(3)'
        return [f"def declare({word}, {count}):", *made, ""], [f"MODEL = family(declare, {choices})"]

    def _arrays(self) -> list[str]:
        """A function that gives every array: waves in the sum of its indices, the same ones at any number of steps."""
        if not self.draft.data:
            return []
        lines = ["def arrays(values):", "    return {"]
        for d in self.draft.data:
            lengths = [f"values[{axis!r}]" for axis in d.axes]
            if d.timed and self.draft.clock is not None:
                more = " + 1" if self.draft.clock.endpoint else ""
                lengths.insert(0, f"values[{self.draft.clock.steps!r}]{more}")
            terms = [f"{j + 2}*n[{j}]" for j in range(len(lengths))]
            wave = f"lambda *n: numpy.round(numpy.cos({d.phase} + {' + '.join(terms)}), 3)"
            lines.append(f"        {d.name!r}: numpy.fromfunction({wave}, ({', '.join(lengths)},)),")
        return [*lines, "    }", "", ""]

    def _size(self, v: Vector) -> str:
        """The parameter that counts the labels of a vector; those of the classes for what has times or is by class."""
        clock = self.draft.clock
        return v.labels or (clock.classes if clock is not None and v.kind != "static" else "")

    def _axis_name(self, size: str) -> str:
        """The name of an axis. Results have theirs in the order of the names, which is therefore that of the numbers of
        labels: no law changes these."""
        return self.draft.free_name(f"along{self.draft.value(size)}_{size}")

    def _axis(self, size: str) -> str:
        """The variable of the axis that a parameter counts the labels of."""
        return f"along_{self.variables[size]}"

    def _axes(self) -> list[str]:
        sizes = dict.fromkeys(self._size(v) for v in (*self.draft.normals, *self.draft.fields))
        sizes |= dict.fromkeys(size for d in self.draft.data for size in d.axes)
        found = [size for size in sizes if size]
        if found:
            self.words.add("axis")
        return [f"{self._axis(size)} = axis({self._axis_name(size)!r}, {self.variables[size]})" for size in found]

    def _data(self, d: Data) -> str:
        self.words.add("data")
        parts = [repr(d.name), *(self._axis(size) for size in d.axes)]
        parts += [f"clock={self._clock()}"] if d.timed else []
        return f"{self.variables[d.name]} = data({', '.join(parts)})"

    def _sectors(self) -> str:
        sectors = self.draft.sectors
        ratios = "".join(f", {s.name}={self.expression(s.ratio)}" for s in sectors[1:])
        return f"{', '.join(self.variables[s.name] for s in sectors)} = sectors({sectors[0].name!r}{ratios})"

    def _matrices(self) -> list[str]:
        lines = []
        for m in self.draft.matrices:
            word = "goe" if m.kind == "goe" else "gaussian"
            self.words.add(word)
            parts = [repr(m.name), self.variables[m.rows]]
            parts += [] if word == "goe" else [self.variables[m.columns]]
            parts += [f"variance={self._number(m.variance)}"] if m.variance != 1 else []
            parts += [f"fresh={self._clock()}"] if m.kind == "fresh" else []
            lines.append(f"{self.variables[m.name]} = {word}({', '.join(parts)})")
        return lines

    def _normal(self, v: Vector) -> str:
        self.words |= set(re.findall(r"[a-z_]+(?=\()", v.law)) | {"drawn"} if v.law else {"normal"}
        parts = [repr(v.name), self.variables[v.sector]]
        parts += [v.law] if v.law else []
        parts += [self._clock()] if v.kind == "timed" else []
        parts += [f"scale={self._number(v.scale)}"] if v.scale != 1 else []
        parts += [f"axes={self._axis(self._size(v))}"] if self._size(v) else []
        return f"{self.variables[v.name]} = {'drawn' if v.law else 'normal'}({', '.join(parts)})"

    def _trait(self, v: Trait) -> str:
        self.words.add("trait")
        values, shares = (f"[{', '.join(map(self._number, numbers))}]" for numbers in (v.values, v.shares))
        parts = [repr(v.name), self.variables[v.sector], f"values={values}", f"weights={shares}"]
        return f"{self.variables[v.name]} = trait({', '.join(parts)})"

    def _fields(self) -> list[str]:
        if self.draft.fields:
            self.words.add("field")
        return [
            f"{self.variables[v.name]} = field({v.name!r}, {self.variables[v.sector]}"
            f"{f', {self._clock()}' if v.kind == 'timed' else ''}"
            f"{f', axes={self._axis(self._size(v))}' if self._size(v) else ''})"
            for v in self.draft.fields
        ]

    def _weights(self) -> list[str]:
        if self.draft.weights:
            self.words.add("weights")
        return [
            f"{self.variables[w.name]} = weights({w.name!r}, {self.variables[w.rows]}, {self.variables[w.columns]}, "
            f"{self._clock()})"
            for w in self.draft.weights
        ]

    def _probes(self) -> list[str]:
        probes = self.draft.probes
        if not probes:
            return []
        self.words.add("spectrum")
        if len(probes) == 1:
            return [f"    probe=spectrum({self.expression(probes[0][1])}),"]
        lines = [f"        {label!r}: spectrum({self.expression(value)})," for label, value in probes]
        return ["    probe={", *lines, "    },"]

    def _clock(self) -> str:
        return self.variables[self.draft.clock.name] if self.draft.clock is not None else "t"

    def _target(self, target: str, time: str) -> str:
        if not time:
            return self.variables[target]
        return f"{self.variables[target]}({time.replace('t', self._clock())})"

    def _number(self, value: Fraction) -> str:
        if value.denominator == 1:
            return str(value)
        text = repr(float(value))
        if Fraction(text) == value and len(text) < 8:
            return text
        self.functions.add("Rational")
        return f"Rational({value.numerator}, {value.denominator})"

    # expressions

    def expression(self, node: Node, clock: str | None = None) -> str:
        return self._print(node, clock or self._clock())[0]

    def _inside(self, node: Node, clock: str, strength: int) -> str:
        text, own = self._print(node, clock)
        return f"({text})" if own < strength else text

    def _when(self, delay: object, clock: str) -> str:
        return clock if delay == 0 else f"{clock} - {delay}"

    def _print(self, node: Node, clock: str) -> tuple[str, int]:
        op, args = node.op, node.args
        if op == "number":
            value = Fraction(str(args[0]))
            return self._number(value), _SUM if value < 0 else _ATOM
        if op in ("name", "matrix") or (op in ("at", "data") and args[1] is None):
            return self.variables[node.leaf], _ATOM
        if op in ("at", "fresh", "data"):
            return f"{self.variables[node.leaf]}({self._when(args[1], clock)})", _ATOM
        if op == "weights":
            time = str(args[1])
            time = self.variables.get(time, time.replace("t", clock) if time != "0" else "0")
            return f"{self.variables[node.leaf]}({time})", _ATOM
        if op == "sum":
            return " + ".join(self._inside(c, clock, _PRODUCT) for c in node.children), _SUM
        if op == "product":
            return self._product(node, clock), _PRODUCT
        if op == "power":
            base, exponent = node.children[0], args[1]
            if exponent == -1:
                return f"1 / {self._inside(base, clock, _ATOM)}", _PRODUCT
            return f"{self._inside(base, clock, _ATOM)}**{exponent}", _ATOM
        if op == "root":
            self.functions.add("sqrt")
            return f"sqrt({self.expression(node.children[0], clock)})", _ATOM
        if op == "call":
            function = str(args[0])
            pattern = _FUNCTIONS[function]
            self.functions.add(pattern.split("(")[0])
            return pattern.format(self.expression(node.children[0], clock)), _ATOM
        if op in ("softmax", "total_over"):
            word, size = op.partition("_")[0], str(args[1])
            self.words.add(word)
            return f"{word}({self.expression(node.children[0], clock)}, {self._axis(size)})", _ATOM
        if op in ("mean", "total", "each"):
            self.words.add(op)
            return f"{op}({self.expression(node.children[0], clock)})", _ATOM
        if op == "mix":
            time = "" if args[1] is None else f"({self._when(args[1], clock)})"
            table = f"{self.variables[node.leaf]}{time}{'.T' if args[2] else ''}"
            return f"({table} @ {self._inside(node.children[0], clock, _ATOM)})", _ATOM
        if op == "past":
            self.words.add("past_sum")
            return f"past_sum(lambda s: {self.expression(node.children[0], 's')}, {self._clock()})", _ATOM
        if op == "now":
            return self._print(node.children[0], self._clock())
        if op == "outer":
            self.words.add("outer")
            return f"outer({', '.join(self.expression(c, clock) for c in node.children)})", _ATOM
        if op == "turned":
            return f"{self._inside(node.children[0], clock, _ATOM)}.T", _ATOM
        if op == "weighed":
            factor, matrix = node.children
            if not any(inner.op == "at" for inner in factor.walk()):  # the same at all sites: a number
                return f"({self._inside(factor, clock, _ATOM)} * {self._inside(matrix, clock, _ATOM)})", _ATOM
            self.words.add("diag")
            return f"(diag({self.expression(factor, clock)}) @ {self._inside(matrix, clock, _ATOM)})", _ATOM
        if op in ("apply", "matmul"):
            return f"({' @ '.join(self._inside(c, clock, _ATOM) for c in node.children)})", _ATOM
        raise ValueError(f"there is no operation {op}")

    def _product(self, node: Node, clock: str) -> str:
        """Factors in their order; powers of -1 are divided by."""
        text = ""
        for child in node.children:
            below = child.op == "power" and child.args[1] == -1
            part = self._inside(child.children[0] if below else child, clock, _ATOM)
            text += f" / {part}" if below else (f" * {part}" if text else part)
            if below and len(text) == len(f" / {part}"):
                text = f"1{text}"
        return text


def write(draft: Draft, family: bool = False) -> str:
    """The text of the declaration: readable, and runnable with `derive solve FILE`; or as a member of a family."""
    return _Writer(draft, family).text()
