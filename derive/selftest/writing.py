"""Printer of a draft as a declaration that `derive solve FILE` runs."""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import groupby

from derive.selftest.drafts import ONE, Draft, DraftData, DraftTrait, DraftVector, Node, Numbers

_SUM, _PRODUCT, _ATOM = range(3)
_RELATIONS = {"Gt": ">", "Ge": ">=", "Lt": "<", "Le": "<="}
_INDEX, _VARIABLE = "s", "x"
"""Names of the index of a sum over the past and of the variable of a density."""


class _Writer:
    """Printer of one draft."""

    def __init__(self, draft: Draft, family: bool = False, doc: str = ""):
        self.draft, self.family, self.doc = draft, family, doc
        self.words = {"Eq", "Model", "sectors"} if draft.equations else {"Model", "sectors"}
        self.functions: set[str] = set()
        self.latex = dict(draft.latex)
        functions = {str(node.args[0]) for tree in draft.trees() for node in tree.walk() if node.op == "call"}
        self.taken = {"MODEL", "numpy", "arrays", "oo", "pi", "sqrt", "Rational", "Piecewise", "Symbol", *functions}
        self.taken.add(_INDEX)
        self.variables: dict[str, str] = {}
        self.axes: dict[str, str] = {}
        for name in draft.names():
            self.variables.setdefault(name, self._variable(name))
        for axis in draft.axes:
            self.axes[axis.name] = self._variable(f"along_{axis.name}")

    def _variable(self, name: str) -> str:
        """Return the variable of a symbol: its name, unless that is a word of the language."""
        from derive.words import WORDS as words

        taken = {*self.variables.values(), *self.axes.values(), *self.taken, *words}
        while name in taken or keyword.iskeyword(name):
            name += "_"
        return name

    def text(self) -> str:
        draft = self.draft
        lines = [*self._parameters(), self._sectors()]
        if draft.clock is not None:
            self.words.add("training_clock")
            clock = draft.clock
            more = ("" if clock.endpoint else ", endpoint=False") + self._latex(clock.name)
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
        refused = [f"    {word}={value}," for word, value in self._further()]
        body = [
            "MODEL = Model(",
            f"    parameters=({listed}),",
            *(["    equations=[", *equations, "    ],"] if equations else []),
            *(["    observe={", *observed, "    },"] if observed else []),
            *probes,
            *(["    arrays=arrays,"] if draft.data else []),
            *refused,
            ")",
        ]
        if self.family or "family" in draft.style:
            lines, body = self._as_family([*lines, "", *body])
        lines = [*self._arrays(), *lines]
        imports = ["import numpy", ""] if draft.data else []
        if self.functions:
            imports += [f"from sympy import {', '.join(sorted(self.functions))}", ""]
        imports += [f"from derive import {', '.join(sorted(self.words))}", ""]
        return "\n".join([f'"""{self.doc}"""', "", *imports, *lines, "", *body, ""])

    def _further(self) -> list[tuple[str, str]]:
        """Return further arguments of the model that change no number."""
        arguments = [("responses", repr(self.draft.responses))] if self.draft.responses else []
        if "doc" in self.draft.style:
            arguments += [("doc", repr(self.doc)), ("notation", '{"z": "w"}')]
        if self.draft.data and "refuses" in self.draft.style:
            arguments.append(("refuses", 'lambda given: ""'))
        return arguments

    def _latex(self, name: str) -> str:
        return f", latex={self.latex[name]!r}" if name in self.latex else ""

    def _parameters(self) -> list[str]:
        lines = []
        for p in self.draft.parameters:
            self.words.add("parameter")
            more = ""
            if p.domain != "real" or "real" in self.draft.style:
                self.words.add(p.domain.partition("(")[0])
                more = f", domain={p.domain}"
            more += f", doc={p.doc!r}" if p.doc else ""
            more += self._latex(p.name)
            value = int(p.value) if p.whole else float(p.value)
            lines.append(f"{self.variables[p.name]} = parameter({p.name!r}, default={value}{more})")
        return lines

    def _as_family(self, lines: list[str]) -> tuple[list[str], list[str]]:
        """Return the declaration as the first member of a family: a function of a word, an integer and a formula."""
        self.words |= {"family", "formula", "one_of", "whole_choice"}
        word, count, shape = (self._variable(self.draft.free_name(wish)) for wish in ("kind", "members", "shape"))
        body = ["    " + line if line else "" for line in lines]
        body[body.index("    MODEL = Model(")] = "    return Model("
        choices = (
            f'{word}=one_of("plain", "other", doc="a word"), {count}=whole_choice(3, low=2, high=4, doc="a number"), '
            f'{shape}=formula("y", doc="a function", bent="tanh(y)")'
        )
        return [f"def declare({word}, {count}, {shape}):", *body, ""], [f"MODEL = family(declare, {choices})"]

    def _arrays(self) -> list[str]:
        """Return the function that returns the arrays: given values, or waves in the sum of the indices, which do not
        depend on the number of steps.
        """
        if not self.draft.data:
            return []
        lines = ["def arrays(values):", "    return {"]
        for d in self.draft.data:
            if d.values is not None:
                lines.append(f"        {d.name!r}: numpy.array({_nested(d.values)}),")
                continue
            lengths = [f"values[{size!r}]" if isinstance(size, str) else str(size) for size in map(self._size, d.axes)]
            if d.timed and self.draft.clock is not None:
                more = " + 1" if self.draft.clock.endpoint else ""
                lengths.insert(0, f"values[{self.draft.clock.steps!r}]{more}")
            terms = [f"{j + 2}*n[{j}]" for j in range(len(lengths))]
            wave = f"lambda *n: numpy.round(numpy.cos({d.phase} + {' + '.join(terms)}), 3)"
            if len(set(d.axes)) < len(d.axes):  # a symmetric table without negative eigenvalues
                wave = "lambda *n: 0.5 + 0.5 * (n[-1] == n[-2])"
            lines.append(f"        {d.name!r}: numpy.fromfunction({wave}, ({', '.join(lengths)},)),")
        return [*lines, "    }", "", ""]

    def _size(self, axis: str) -> str | int:
        return self.draft.size(axis)

    def _axes(self) -> list[str]:
        if self.draft.axes:
            self.words.add("axis")
        sizes = [self.variables[a.counter] if a.counter else str(a.size) for a in self.draft.axes]
        return [
            f"{self.axes[a.name]} = axis({a.name!r}, {size}{self._latex(a.name)})"
            for a, size in zip(self.draft.axes, sizes, strict=True)
        ]

    def _data(self, d: DraftData) -> str:
        self.words.add("data")
        parts = [repr(d.name), *(self.axes[axis] for axis in d.axes)]
        parts += [f"clock={self._clock()}"] if d.timed else []
        parts += ["optional=True"] if d.optional else []
        return f"{self.variables[d.name]} = data({', '.join(parts)}{self._latex(d.name)})"

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
            parts += [f"variance={self.expression(m.variance)}"] if m.variance != ONE else []
            parts += [f"fresh={self._clock()}"] if m.kind == "fresh" else []
            lines.append(f"{self.variables[m.name]} = {word}({', '.join(parts)}{self._latex(m.name)})")
        return lines

    def _along(self, v: DraftVector) -> str:
        """Return the axes of a vector as an argument."""
        names = [self.axes[axis] for axis in v.axes]
        return names[0] if len(names) == 1 else f"({', '.join(names)})"

    def _normal(self, v: DraftVector) -> str:
        word = "normal" if v.law is None else "drawn"
        self.words.add(word)
        parts = [repr(v.name), self.variables[v.sector]]
        parts += [] if v.law is None else [self.expression(v.law)]
        parts += [self._clock()] if v.kind == "timed" else []
        parts += [f"scale={self.expression(v.scale)}"] if v.scale != ONE else []
        parts += [f"axes={self._along(v)}"] if v.axes else []
        return f"{self.variables[v.name]} = {word}({', '.join(parts)}{self._latex(v.name)})"

    def _trait(self, v: DraftTrait) -> str:
        self.words.add("trait")
        parts = [repr(v.name), self.variables[v.sector]]
        if v.law is not None:
            parts.append(f"law={self.expression(v.law)}")
        elif v.given:
            parts.append(f"values={self.variables[v.given]}")
        elif v.density:
            self.functions.add("Symbol")
            shape, low, high = (self.expression(node, f'Symbol("{_VARIABLE}")') for node in v.density)
            parts += [f"density={shape}", f"low={low}", f"high={high}"]
        else:
            parts.append(f"values=[{', '.join(map(self.expression, v.values))}]")
            parts += [f"weights=[{', '.join(map(self.expression, v.shares))}]"] if v.shares else []
        return f"{self.variables[v.name]} = trait({', '.join(parts)}{self._latex(v.name)})"

    def _fields(self) -> list[str]:
        """Return one line for each field, or for several consecutive fields of one kind."""
        lines = []
        alike = groupby(self.draft.fields, lambda v: (v.sector, v.kind, v.axes, v.name in self.latex))
        for (sector, kind, axes, written), group in alike:
            members = list(group)
            rest = self.variables[sector] + (f", {self._clock()}" if kind == "timed" else "")
            rest += f", axes={self._along(members[0])}" if axes else ""
            if "fields" in self.draft.style and len(members) > 1 and not written:
                self.words.add("fields")
                names = ", ".join(self.variables[v.name] for v in members)
                lines.append(f"{names} = fields({' '.join(v.name for v in members)!r}, {rest})")
                continue
            self.words.add("field")
            lines += [f"{self.variables[v.name]} = field({v.name!r}, {rest}{self._latex(v.name)})" for v in members]
        return lines

    def _weights(self) -> list[str]:
        if self.draft.weights:
            self.words.add("weights")
        return [
            f"{self.variables[w.name]} = weights({w.name!r}, {self.variables[w.rows]}, {self.variables[w.columns]}, "
            f"{self._clock()}{self._latex(w.name)})"
            for w in self.draft.weights
        ]

    def _probes(self) -> list[str]:
        probes = self.draft.probes
        if not probes:
            return []
        if len(probes) == 1 and not probes[0][0]:
            return [f"    probe={self._spectrum(probes[0][1])},"]
        lines = [f"        {label!r}: {self._spectrum(value)}," for label, value in probes]
        return ["    probe={", *lines, "    },"]

    def _spectrum(self, node: Node) -> str:
        self.words.add("spectrum")
        if node.op != "probe":
            return f"spectrum({self.expression(node)})"
        matrix, *inner = node.children
        _, plus, *between = node.args
        more = f", plus={plus!r}" if plus else ""
        inside = ", ".join(f"{name!r}: {self.expression(m)}" for name, m in zip(between[::2], inner, strict=True))
        return f"spectrum({self.expression(matrix)}{more}{f', between={{{inside}}}' if inside else ''})"

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

    def _when(self, time: object, clock: str) -> str:
        if isinstance(time, Node):
            return self.expression(time, clock)
        delay = int(str(time))
        return clock if delay == 0 else f"{clock} - {delay}" if delay > 0 else f"{clock} + {-delay}"

    def _list(self, nodes: Iterable[Node], clock: str) -> str:
        return ", ".join(self.expression(node, clock) for node in nodes)

    def _print(self, node: Node, clock: str) -> tuple[str, int]:
        """Return the text of a node and its operator precedence."""
        return _PRINTED[node.op](self, node, clock)

    def _constant(self, node: Node, clock: str) -> tuple[str, int]:
        value = Fraction(str(node.args[0]))
        return self._number(value), _SUM if value < 0 else _ATOM

    def _named(self, node: Node, clock: str) -> tuple[str, int]:
        return self.variables[node.leaf], _ATOM

    def _at(self, node: Node, clock: str) -> tuple[str, int]:
        return f"{self.variables[node.leaf]}{self._time(node.args[1], clock)}", _ATOM

    def _sum(self, node: Node, clock: str) -> tuple[str, int]:
        return " + ".join(self._inside(c, clock, _PRODUCT) for c in node.children), _SUM

    def _times(self, node: Node, clock: str) -> tuple[str, int]:
        return self._product(node, clock), _PRODUCT

    def _root(self, node: Node, clock: str) -> tuple[str, int]:
        self.functions.add("sqrt")
        return f"sqrt({self.expression(node.children[0], clock)})", _ATOM

    def _along_axis(self, node: Node, clock: str) -> tuple[str, int]:
        word, axis = node.op.partition("_")[0], str(node.args[1])
        self.words.add(word)
        return f"{word}({self.expression(node.children[0], clock)}, {self.axes[axis]})", _ATOM

    def _relabelled(self, node: Node, clock: str) -> tuple[str, int]:
        self.words.add("relabel")
        old, new = (self.axes[str(axis)] for axis in node.args[1:])
        return f"relabel({self.expression(node.children[0], clock)}, {old}, {new})", _ATOM

    def _word(self, node: Node, clock: str) -> tuple[str, int]:
        word = str(node.args[0]) if node.op == "law" else node.op
        self.words.add(word)
        return f"{word}({self._list(node.children, clock)})", _ATOM

    def _listed(self, node: Node, clock: str) -> tuple[str, int]:
        return f"[{self._list(node.children, clock)}]", _ATOM

    def _entries(self, node: Node, clock: str) -> tuple[str, int]:
        self.words.add("entries")
        return f"entries({self._at(node, clock)[0]})", _ATOM

    def _mixed(self, node: Node, clock: str) -> tuple[str, int]:
        table, turned = self._at(node, clock)[0], ".T" if node.args[2] else ""
        if node.args[4:] == ("root",):
            self.words.add("root")
            table = f"root({table})"
        return f"({table}{turned} @ {self._inside(node.children[-1], clock, _ATOM)})", _ATOM

    def _past(self, node: Node, clock: str) -> tuple[str, int]:
        self.words.add("past_sum")
        later = int(str(node.args[1])) if len(node.args) > 1 else 0
        ends = self._when(-later, self._clock())
        return f"past_sum(lambda {_INDEX}: {self.expression(node.children[0], _INDEX)}, {ends})", _ATOM

    def _weighed(self, node: Node, clock: str) -> tuple[str, int]:
        factor, matrix = node.children
        if not any(inner.op == "at" for inner in factor.walk()):  # the same at all sites: a number
            return f"({self._inside(factor, clock, _ATOM)} * {self._inside(matrix, clock, _ATOM)})", _ATOM
        self.words.add("diag")
        return f"(diag({self.expression(factor, clock)}) @ {self._inside(matrix, clock, _ATOM)})", _ATOM

    def _multiplied(self, node: Node, clock: str) -> tuple[str, int]:
        return f"({' @ '.join(self._inside(c, clock, _ATOM) for c in node.children)})", _ATOM

    def _time(self, time: object, clock: str) -> str:
        return "" if time is None else f"({self._when(time, clock)})"

    def _call(self, node: Node, clock: str) -> tuple[str, int]:
        if node.op == "compare":
            left, right = (self._inside(c, clock, _PRODUCT) for c in node.children)
            return f"{left} {_RELATIONS[str(node.args[0])]} {right}", _SUM
        if node.op == "cases":
            self.functions.add("Piecewise")
            texts = [self.expression(c, clock) for c in node.children]
            texts += ["True"] * (len(texts) % 2)
            pairs = [f"({value}, {when})" for value, when in zip(texts[::2], texts[1::2], strict=True)]
            return f"Piecewise({', '.join(pairs)})", _ATOM
        function = str(node.args[0])
        self.functions.add(function)
        return (f"{function}({self._list(node.children, clock)})" if node.children else function), _ATOM

    def _power(self, node: Node, clock: str) -> tuple[str, int]:
        base, exponent = node.children[0], node.args[1]
        if exponent == -1:
            return f"1 / {self._inside(base, clock, _ATOM)}", _PRODUCT
        if base.op == "number" and isinstance(exponent, Node):
            self.functions.add("Rational")  # Python would compute a float
            value = Fraction(str(base.args[0]))
            shown = f"Rational({value.numerator}, {value.denominator})"
            return f"{shown}**{self._inside(exponent, clock, _ATOM)}", _ATOM
        text = self._inside(exponent, clock, _ATOM) if isinstance(exponent, Node) else str(exponent)
        text = f"({text})" if text.startswith("-") else text
        below = f"({self._print(base, clock)[0]})" if base.op == "power" else self._inside(base, clock, _ATOM)
        return f"{below}**{text}", _ATOM

    def _product(self, node: Node, clock: str) -> str:
        """Return factors in order, with powers of -1 as divisions."""
        text = ""
        for child in node.children:
            below = child.op == "power" and child.args[1] == -1
            part = self._inside(child.children[0] if below else child, clock, _ATOM)
            text += f" / {part}" if below else (f" * {part}" if text else part)
            if below and len(text) == len(f" / {part}"):
                text = f"1{text}"
        return text


_PRINTED: dict[str, Callable[[_Writer, Node, str], tuple[str, int]]] = {
    "number": _Writer._constant,
    **dict.fromkeys(("name", "matrix"), _Writer._named),
    **dict.fromkeys(("at", "fresh", "data", "weights"), _Writer._at),
    "index": lambda writer, node, clock: (clock, _ATOM),
    "sum": _Writer._sum,
    "product": _Writer._times,
    "power": _Writer._power,
    "root": _Writer._root,
    **dict.fromkeys(("call", "cases", "compare"), _Writer._call),
    **dict.fromkeys(("softmax", "total_over"), _Writer._along_axis),
    "relabel": _Writer._relabelled,
    **dict.fromkeys(("mean", "total", "each", "overlap", "outer", "diag", "alignment", "law"), _Writer._word),
    "list": _Writer._listed,
    "entries": _Writer._entries,
    "mix": _Writer._mixed,
    "past": _Writer._past,
    "now": lambda writer, node, clock: writer._print(node.children[0], writer._clock()),
    "turned": lambda writer, node, clock: (f"{writer._inside(node.children[0], clock, _ATOM)}.T", _ATOM),
    "weighed": _Writer._weighed,
    **dict.fromkeys(("apply", "matmul"), _Writer._multiplied),
}
"""Printer of each operation of a draft."""


def _nested(values: Numbers) -> str:
    return f"[{', '.join(map(_nested, values))}]" if isinstance(values, tuple) else repr(values)


def write(draft: Draft, family: bool = False, doc: str = "A declaration, as written by the laws.") -> str:
    """Return the text of the declaration, runnable with `derive solve FILE`, or as a member of a family."""
    return _Writer(draft, family, doc).text()
