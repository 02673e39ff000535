"""A declared model: equations, observables and probed matrices, checked on construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from derive.language.expressions import is_list, plain, word
from derive.language.matrices import Evolving, MatrixExpression
from derive.language.notation import read_notation
from derive.language.starts import probe_written_out, starts_written_out
from derive.language.symbols import Parameter, exact
from derive.support.display import Displayed
from derive.support.shapes import fits


@word
@dataclass(frozen=True, repr=False)
class Model(Displayed):
    """A declaration.

    Args:
        parameters: in the order in which generated solvers take them.
        equations: one for each field (and its starting values), two for each weight matrix.
        observe: by name, scalars composed of mean(...) and overlap(...), or alignment(...); stored as pairs.
        probe: spectrum(matrix), or several by layer, {0: spectrum(...), 1: spectrum(...)}, or None for the training
            level alone; several are stored as pairs of a label and a spectrum. choices, family: the member of a family;
            set by the family.
        responses: the estimator of responses in a sampled pass, "pathwise" or "stein"; "stein" by default.
        arrays: a function of the parameter values (a dictionary) that returns default arrays for data(...) by name.
        refuses: a function of the user's arrays (a dictionary) that returns an error message, or "" if they are valid.
        alignments: those of observe, stored as pairs; set by the model.
        notation: symbols of a source by name, {"J0 h0": r"\\chi^1", "J0^T g1": (gamma0, r"\\xi^0")}: the model's J0^T
            g1 is gamma0 times the source's symbol. Names are those of `derive show`: fields, hat x, u[x], C[a,b],
            R[a,j], parameters, matrices, z and G. It is printed with `--notation paper`.

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
    notation: Any = ()

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
        object.__setattr__(self, "probe", _labelled_probes(self.probe))
        check_kinds(self)
        equations = self.equations
        written = tuple((label, probe_written_out(probe, equations)) for label, probe in self.probe)
        object.__setattr__(self, "probe", written)
        object.__setattr__(self, "equations", starts_written_out(equations))
        object.__setattr__(self, "notation", read_notation(self.notation, tuple(self.parameters)))
        check(self)
        refuse_array_calls(everything(self))

    def member(self, chosen: Mapping[str, int | str]) -> Model:
        """Return the model itself, which is not a family and has no choices."""
        return self

    @property
    def open_choices(self) -> tuple[tuple[str, Any], ...]:
        """The choices: none."""
        return ()

    @property
    def setting(self) -> str:
        """The name of the setting: that of the family for a member of one."""
        return self.family or self.name

    @property
    def probes(self) -> tuple[tuple[str, DeclaredSpectrum], ...]:
        """Every probed matrix with its label; a single one has the empty label."""
        return self.probe

    @cached_property
    def symbols(self) -> tuple[sp.Symbol, ...]:
        """All symbols, in order of first use; computed once."""
        return symbols(self)

    def probing(self, label: str) -> Model:
        """Return the model with one of its probed matrices only, and the directions on its sectors."""
        probe = dict(self.probes)[label]
        sectors = [sector for _, sector in sides_of(probe.matrix)]
        kept = tuple(pair for pair in self.alignments if pair[1].direction.field.sector in sectors)
        return replace(self, probe=probe, observe=dict(self.observe), alignments=kept)


def _listed(what: str, argument: Any, example: str) -> tuple[Any, ...]:
    """Return an argument as a tuple; a single object, a dictionary or a text is refused."""
    if isinstance(argument, Mapping) or not is_list(argument):
        raise DeclarationError(f"{what}={named(argument)}: give a list, as in {example}")
    try:
        return tuple(map(plain, argument))
    except TypeError:  # an array of no dimension says that it can be iterated over
        raise DeclarationError(f"{what}={argument!s}: give a list, as in {example}") from None


def _labelled_probes(probe: Any) -> tuple[tuple[str, Any], ...]:
    """Return the probed spectra as pairs of a label and a spectrum; a single spectrum has the empty label."""
    if probe is None or fits(probe, tuple[tuple[str, Any], ...]):
        return probe or ()
    if isinstance(probe, Mapping):
        if not probe:
            raise DeclarationError("probe={} names no matrix; give one spectrum(...) or more, or leave probe out")
        return tuple((str(label), what) for label, what in probe.items())
    if isinstance(probe, (list, set, tuple)):
        raise DeclarationError("probe=...: give one spectrum(...), or several by label, {0: spectrum(...), 1: ...}")
    return (("", probe),)


def _observed(name: Any, value: Any) -> tuple[str, sp.Expr]:
    if not fits(name, str) or not name.isidentifier():
        raise DeclarationError(f"observable {name!r} is not a Python name; use letters, digits and underscores")
    if isinstance(value, (MatrixExpression, Evolving)):
        raise DeclarationError(
            f"observable {name} is the matrix {value}; observables are numbers made of mean(...) and overlap(...)"
        )
    try:
        return name, exact(value)
    except DeclarationError as error:
        raise DeclarationError(f"observable {name}: {error.sentence}") from None
