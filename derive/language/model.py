"""A declared model: equations, observables and the matrix whose spectrum matters, checked when it is made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field as data_field, replace
from functools import cached_property
from typing import Any

import sympy as sp

from derive.errors import DeclarationError
from derive.language.alignments import Alignment, sides_of
from derive.language.array_calls import refuse_array_calls
from derive.language.checks import check, check_kinds
from derive.language.contents import everything, symbols
from derive.language.equations import DeclaredSpectrum, Eq, named
from derive.language.expressions import plain, word
from derive.language.matrices import Evolving, MatrixExpression
from derive.language.starts import probe_written_out, starts_written_out
from derive.language.symbols import Parameter, exact
from derive.support.display import Displayed


@word
@dataclass(frozen=True, repr=False)
class Model(Displayed):
    """Everything that is declared; nothing of what follows from it.

    parameters: in the order in which generated solvers take them.
    equations: one for each field (and its starting values), two for each weight matrix.
    observe: name to scalar, made of mean(...) and overlap(...), or to alignment(...); kept as pairs.
    probe: spectrum(matrix), or several by layer, {0: spectrum(...), 1: spectrum(...)}, or None when only the training
    level matters; several are kept as pairs of a label and a spectrum.
    choices, family: which member of a family this is; filled in by the family.
    responses: how a sampled pass finds responses, "pathwise" or "stein"; "stein" if left out.
    arrays: a function of the parameter values (a dictionary) that returns the arrays of data(...) by name, for those
    who give none of their own.
    refuses: a function of the arrays that a user gives (a dictionary) that returns what is wrong with them, or "".
    alignments: those of observe, kept apart as pairs; filled in by the model.

    >>> from derive import Model, goe, mean, normal, outer, parameter, positive, sectors, spectrum
    >>> gamma, D = parameter("gamma", default=2.0, domain=positive), sectors("D")
    >>> M, v = goe("M", D), normal("v", D)
    >>> model = Model(
    ...     parameters=(gamma,), observe={"norm": mean(v**2)}, probe=spectrum(M + gamma / D * outer(v, v))
    ... )
    >>> model
    Model model: 1 parameter, observables norm, spectrum of M + gamma/D*outer(v, v); print(...) shows it
    """

    parameters: Sequence[Parameter]
    equations: Sequence[Eq] = ()
    observe: Any = data_field(default_factory=dict)
    probe: Any = None
    name: str = "model"
    doc: str = ""
    choices: tuple[tuple[str, int | str], ...] = ()
    family: str = ""
    responses: str = ""
    arrays: Any = None
    refuses: Any = None
    alignments: tuple[tuple[str, Alignment], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "parameters", _listed("parameters", self.parameters, "parameters=(eta, T)"))
        object.__setattr__(self, "equations", _listed("equations", self.equations, "equations=[Eq(...), Eq(...)]"))
        if not isinstance(self.observe, Mapping):
            raise DeclarationError(
                f"observe={named(self.observe)}: name each, as in observe={{'activity': mean(v(t)**2)}}"
            )
        observed = tuple(_observed(*item) for item in self.observe.items())
        aligned = tuple((name, value) for name, value in observed if isinstance(value, Alignment))
        object.__setattr__(self, "observe", tuple(pair for pair in observed if pair not in aligned))
        object.__setattr__(self, "alignments", (*self.alignments, *aligned))
        if isinstance(self.probe, Mapping):
            object.__setattr__(self, "probe", tuple((str(label), what) for label, what in self.probe.items()))
        elif isinstance(self.probe, (list, set)) or (isinstance(self.probe, tuple) and not _are_pairs(self.probe)):
            raise DeclarationError("probe=...: give one spectrum(...), or several by label, {0: spectrum(...), 1: ...}")
        check_kinds(self)
        given = self.equations
        written = tuple((label, probe_written_out(probe, given)) for label, probe in self.probes)
        if self.probe is not None:
            object.__setattr__(self, "probe", written if isinstance(self.probe, tuple) else written[0][1])
        object.__setattr__(self, "equations", starts_written_out(given))
        check(self)
        refuse_array_calls(everything(self))

    def member(self, chosen: Mapping[str, int | str]) -> Model:
        """The model itself: it is no family, and has no members to choose from."""
        return self

    @property
    def open_choices(self) -> tuple[tuple[str, Any], ...]:
        """What may be chosen: nothing."""
        return ()

    @property
    def setting(self) -> str:
        """The name that was asked for: the family's for a member of one."""
        return self.family or self.name

    @property
    def probes(self) -> tuple[tuple[str, DeclaredSpectrum], ...]:
        """Every probed matrix with its label; a single one has the empty label."""
        if self.probe is None:
            return ()
        return self.probe if isinstance(self.probe, tuple) else (("", self.probe),)

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """All symbols, in order of first use: found once, for all who look for some of them."""
        return symbols(self)

    def probing(self, label: str) -> Model:
        """The same model with one of its probed matrices only, and directions that its vectors live with."""
        probe = dict(self.probes)[label]
        sectors = [sector for _, sector in sides_of(probe.matrix)]
        kept = tuple(pair for pair in self.alignments if pair[1].direction.field.sector in sectors)
        return replace(self, probe=probe, observe=dict(self.observe), alignments=kept)


def _listed(what: str, given: Any, example: str) -> tuple[Any, ...]:
    """What was given as a list; one alone, a dictionary or a text is not one."""
    if isinstance(given, (str, Mapping, sp.Basic, Eq)) or not isinstance(given, Iterable):
        raise DeclarationError(f"{what}={named(given)}: give a list, as in {example}")
    try:
        return tuple(map(plain, given))
    except TypeError:  # an array of no dimension says that it can be iterated over
        raise DeclarationError(f"{what}={given!s}: give a list, as in {example}") from None


def _are_pairs(probe: tuple[Any, ...]) -> bool:
    """Whether probes are as a model keeps them."""
    return all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in probe)


def _observed(name: Any, value: Any) -> tuple[str, sp.Expr]:
    if not isinstance(name, str) or not name.isidentifier():
        raise DeclarationError(f"observable {name!r} is not a Python name; use letters, digits and underscores")
    if isinstance(value, (MatrixExpression, Evolving)):
        raise DeclarationError(
            f"observable {name} is the matrix {value}; observables are numbers made of mean(...) and overlap(...)"
        )
    try:
        return name, exact(value)
    except DeclarationError as error:
        raise DeclarationError(f"observable {name}: {error.sentence}") from None
