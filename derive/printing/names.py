"""The meanings of the engine's names, read from a record, so that printers need not infer them from spelling."""

from __future__ import annotations

import re
from dataclasses import dataclass, field as data_field

import sympy as sp

from derive.language.contents import DECLARED, atoms
from derive.language.matrices import Disorder
from derive.language.vectors import Field
from derive.records.base import Record
from derive.records.probe import ProjectedProbe
from derive.records.system import System

GREEK = (
    "alpha beta gamma delta epsilon varepsilon zeta eta theta vartheta iota kappa lambda mu nu xi pi rho sigma tau "
    "upsilon phi varphi chi psi omega Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega"
).split()


@dataclass(frozen=True)
class ProductName:
    """An auxiliary field for a random matrix (or its transpose) times another field."""

    matrix: Disorder
    transposed: bool
    argument: Field


@dataclass(frozen=True)
class PairName:
    """C[a, b], R[a, b] or L[a, b], possibly as a function of z; without b it is the response to the source.

    `time` fixes the time of b in a correlation, or that of a in a response.
    """

    kind: str
    a: Field
    b: Field | None
    of_z: bool
    time: sp.Expr | None = None

    @property
    def places(self) -> tuple[sp.Expr | None, ...]:
        """The times of both; None for all times. Empty if neither has a fixed time."""
        if self.time is None:
            return ()
        return (None, self.time) if self.kind == "C" else (self.time, None)


@dataclass(frozen=True)
class OverlapName:
    """The overlap of the source with a field."""

    field: Field


@dataclass(frozen=True)
class SourceName:
    """The matrix X that multiplies a random matrix W in the action, as in Tr W^T X."""

    matrix: Disorder


@dataclass(frozen=True)
class Drive:
    """The contribution of a source along a spike to the equation of an unknown."""

    side: str
    unknown: PairName


Meaning = PairName | OverlapName | SourceName | Drive | None


@dataclass(frozen=True)
class PrintedNames:
    """Fields that represent products, and symbols that represent order parameters; empty to print names unchanged.

    `written` contains the names with declared LaTeX, for sentences that mention them; `mentioned` contains all names
    that cannot be read as words, with the LaTeX of each. With `kernels` the mean of a product of two fields is printed
    as the corresponding order parameter; a declaration prints it as a mean.
    """

    products: dict[Field, ProductName] = data_field(default_factory=dict)
    symbols: dict[str, Meaning] = data_field(default_factory=dict)
    source: str = "j"
    written: dict[str, str] = data_field(default_factory=dict)
    mentioned: dict[str, str] = data_field(default_factory=dict)
    kernels: bool = False

    @staticmethod
    def of(record: Record | None) -> PrintedNames:
        system = system_of(record)
        if system is None:
            return PrintedNames()
        declared = set(atoms(system.model, Field))
        products = {
            f.field: ProductName(product.matrix, product.transposed, product.argument)
            for f in system.fields
            if (product := f.product) is not None and f.field not in declared
        }
        symbols: dict[str, Meaning] = {}

        def add(name: str, meaning: Meaning) -> None:
            previous = symbols.setdefault(name, meaning)
            if previous != meaning:
                symbols[name] = None  # two objects share the name, so the plain name is all that is safe

        for matrix in system.disorder:
            add(f"X_{matrix}", SourceName(matrix))
        projected = projected_of(record)
        if projected is not None:
            for a in projected.probes:
                add(f"G_{a}", PairName("G", a, None, False))
                for b in projected.probes:
                    add(f"L_{a}_{b}", PairName("L", a, b, False))
            for response in projected.responses:
                add(response.symbol.name, PairName("R", response.field, response.noise, True))
            kicked = [f.field for f in system.spectral if f.product is not None]
            for a in projected.probes:
                for b in kicked:
                    add(f"R_{a}_{b}", PairName("R", a, b, True))
            added = [unknown for aligned in projected.alignments for unknown in (*aligned.earlier, *aligned.later)]
            for unknown in (*projected.unknowns, *added):
                add(f"source_{unknown.field}", OverlapName(unknown.field))
                for probe in projected.probes:
                    add(f"{unknown.kind}_{probe}_{unknown.field}", PairName(unknown.kind, probe, unknown.field, True))
                for side in projected.directions:
                    pair = PairName(unknown.kind, unknown.probe, unknown.field, False)
                    add(f"source_{side.side}_{unknown.name}", Drive(side.side, pair))
                for aligned in projected.alignments:
                    pair = PairName(unknown.kind, unknown.probe, unknown.field, False)
                    add(f"source_{aligned.side}_{unknown.name}", Drive(aligned.side, pair))
            aligned_terms = [combination for aligned in projected.alignments for combination in aligned.combinations]
            for combination in (*(coupling for _, coupling in projected.couplings), *aligned_terms):
                for _, word in combination:
                    for letter in word:
                        for order in letter.order_parameters:
                            add(letter.name, PairName(order.kind, order.a, order.b, False, order.time))
        taken = {s.name for s in (*system.model.parameters, *declared, *(f.field for f in system.fields))}
        named = (*system.model.parameters, *atoms(system.model, DECLARED))
        written = {symbol.name: latex_symbol(symbol) for symbol in named if symbol.tex}
        own = {f.field for f in system.fields} - set(products)
        spoken = {name: name for name in ("z", "s", "A(z)")}
        spoken |= {symbol.name: latex_symbol(symbol) for symbol in (*named, *own) if is_no_word(symbol.name)}
        return PrintedNames(products, symbols, "j" if "j" not in taken else "source", written, spoken, True)


def system_of(record: Record | None) -> System | None:
    """Return the equations that a record refers to; None if there are none."""
    return getattr(record, "system", None)


def projected_of(record: Record | None) -> ProjectedProbe | None:
    """Return the projected probe to which a record refers; None if it precedes that stage."""
    return getattr(record, "projected", None)


def is_no_word(name: str) -> bool:
    """Return whether a name cannot be read as a word: it is a letter, a Greek letter, or contains digits."""
    letters = name.rstrip("0123456789")
    return letters in GREEK or letters != name or (len(name) == 1 and name not in "aAI")


def latex_symbol(symbol: sp.Symbol, accent: str = "") -> str:
    """Return the declared LaTeX of a symbol, or LaTeX derived from its name."""
    written: str = getattr(symbol, "tex", "")
    if not written:
        return latex_name(symbol.name, accent)
    if accent:
        return f"{accent}{{{written}}}"
    return f"{{{written}}}" if re.search(r"[\^']", written) else written  # a power or a transpose may follow


def latex_name(name: str, accent: str = "") -> str:
    """A Python name as mathematics: gamma0 -> \\gamma_{0}, start -> \\mathrm{start}; the accent goes on the letters."""
    primes = "'" * (len(name) - len(name.rstrip("_")))
    head, *rest = [part for part in name.split("_") if part] or [name]
    letters = head.rstrip("0123456789") or head
    digits = head[len(letters) :]
    indices = ([digits] if digits else []) + [_index(part) for part in rest]
    body = f"{accent}{{{_letters(letters)}}}" if accent else _letters(letters)
    full = body + ("_{" + ",".join(indices) + "}" if indices else "")
    return f"{{{full}{primes}}}" if primes else full


def _index(part: str) -> str:
    letters = part.rstrip("0123456789")
    digits = part[len(letters) :]
    return digits if not letters else (_letters(letters) + (f"_{{{digits}}}" if digits else ""))


def _letters(letters: str) -> str:
    if letters in GREEK:
        return "\\" + letters
    if letters == "eps":
        return r"\epsilon"
    return letters if len(letters) == 1 and letters.isascii() else r"\mathrm{" + letters + "}"
