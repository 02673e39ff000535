"""Conventions that a reader of the report needs, limited to those that occur in it."""

from __future__ import annotations

from sympy import S

from derive.algebra.nodes import TAU
from derive.language.contents import atoms
from derive.language.symbols import Axis, Clock
from derive.pipeline import Derivation, DerivedProbe
from derive.printing.documents import latex
from derive.printing.lettering import current
from derive.records.system import System
from derive.report.document import Math, Words, words


def conventions(level: Derivation | DerivedProbe) -> tuple[tuple[str, Words], ...]:
    """Return topics with their explanations, in the order of first use."""
    blocks = level.blocks if "probe" in level.stages else None
    spiked = blocks is not None and bool(blocks.labels)
    return tuple((topic, words(*parts)) for topic, parts in _topics(level.system, blocks is not None, spiked))


Topic = tuple[str, tuple[str | Math, ...]]


def _topics(system: System, probed: bool, spiked: bool) -> list[Topic]:
    topics: list[Topic] = [("Units", ("all quantities are plain numbers without dimension",))]
    topics += _of_matrices(system)
    mean = Math(r"\langle \cdot \rangle")
    topics.append(("Averages", (mean, " is the mean over the sites of a sector, its sum over its size")))
    topics += _of_times(system)
    topics += [
        ("Order parameters", (Math(r"C_{a b}(t, s) = \langle a(t)\, b(s) \rangle"), ", ",
                              Math(r"R_{a b}(t, s) = \langle \partial a(t) / \partial u_{b}(s) \rangle"),
                              ": the mean answer of ", Math("a"), " to the noise in the equation of ", Math("b"))),
        ("Noises", (Math(r"u_{b}"), " is Gaussian with mean zero and appears in the equation of ", Math("b"), "; ",
                    Math(r"\hat{b}"), " is the response field of ", Math("b"))),
    ]  # fmt: skip
    if probed:
        field = latex(next(f.field for f in system.spectral if f.derivative)) if system.spectral else r"\psi"
        z, G = _engine("z"), _engine("G")
        at_z = G if G.startswith("-") else f"{G}({z})"
        topics += [
            ("Probe", (Math(field), " follows the probed matrix in spectral time ", Math(latex(TAU)),
                       "; its Laplace variable is ", Math(z), ", an eigenvalue of that matrix")),
            ("Resolvent", (Math(rf"{at_z} = \lim\, \mathrm{{tr}}\,({z} - M)^{{-1}} / \mathrm{{size}}"),
                           ", which is ", Math(f"1/{_bracketed(z)}"), " at infinity; the density is ",
                           Math(rf"-\mathrm{{Im}}\, {_bracketed(G)} / \pi"))),
        ]  # fmt: skip
    if spiked:
        blocks = ("blocks of ", Math("A(z)"), " act on training times: ", Math("C_{a b}"), " and ", Math("R_{a b}"))
        topics.append(("Matrices", (*blocks, " without arguments are matrices over ", Math("(t, s)"))))
    return topics


def _of_matrices(system: System) -> list[Topic]:
    """Return the variances of the random matrices."""
    topics: list[Topic] = [
        ("Symmetric matrices",
         (Math(latex(m)), " has variance ", Math(latex(m.variance)), " off the diagonal and ",
          Math(latex(2 * m.variance)), " on it"))
        for m in system.disorder if m.symmetric
    ]  # fmt: skip
    listed: list[str | Math] = []
    for m in (m for m in system.disorder if not m.symmetric):
        shape = rf"{latex(m)} \text{{: }} {latex(m.rows)} \times {latex(m.columns)}"
        listed += [", " if listed else "", Math(shape), " of variance ", Math(latex(m.variance))]
    if listed:
        topics.append(("Random matrices", ("independent Gaussian entries of mean zero; ", *listed)))
    return topics


def _of_times(system: System) -> list[Topic]:
    """Return the meaning of time steps and labels."""
    topics: list[Topic] = []
    for clock in atoms(system.model, Clock):
        last = clock.steps if clock.endpoint else clock.steps - 1
        steps = Math(rf"{latex(clock)} = 0, \ldots, {latex(last)}")
        sums = (" is an earlier time; sums over ", Math("s"), " end where causality ends them")
        topics.append(("Time", (steps, " counts steps, ", Math("s"), *sums)))
    for axis in atoms(system.model, Axis):
        count = ("one copy per label, of which there are ", Math(latex(axis.size)), "; sums over times run over them")
        topics.append((f"Labels {axis}", count))
    return topics


def _engine(name: str) -> str:
    """Return z or G in LaTeX, in terms of the symbol of the source if it declares one."""
    letters = current()
    tex, scale = (name, S.One) if letters is None else letters.engine.get(name, (name, S.One))
    if scale == 1:
        return tex
    return f"-{tex}" if scale == -1 else rf"{latex(scale)}\, {tex}"


def _bracketed(tex: str) -> str:
    return f"({tex})" if tex.startswith("-") else tex
