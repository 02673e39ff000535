"""The options of all computations, each declared once with its values, default, help and cost.

The command line, the Python verbs, sweeps and the units of work of a cluster all read this record. Importing it loads
neither NumPy nor JAX.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from derive.errors import ParameterError


@dataclass(frozen=True)
class OptionDomain:
    """The values that an option may have. says: completes the sentence "NAME must be ..."; words: the allowed values,
    if there are few."""

    holds: Callable[[Any], bool]
    says: str
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class OptionInfo:
    """The description of an option.

    help: for the command line and the Python documentation. cost: effect on time and memory. metavar: its value in
    help. flag: its name on the command line if that differs from the Python name; None for options of Python only.
    default and type: those of the field.
    """

    domain: OptionDomain
    help: str
    cost: str = ""
    metavar: str = ""
    flag: str | None = ""
    default: Any = None
    type: str = ""


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_bool(value: Any) -> bool:
    return isinstance(value, bool) or str(getattr(value, "dtype", "")) == "bool"


def whole(low: int | None = None) -> OptionDomain:
    """The domain of whole numbers, from low on."""

    def holds(value: Any) -> bool:
        if _is_bool(value):
            return False
        try:
            number = operator.index(value)
        except TypeError:
            if not (isinstance(value, float) and value.is_integer()):
                return False
            number = int(value)
        return low is None or number >= low

    return OptionDomain(holds, "a whole number" + ("" if low is None else f", {low} or larger"))


def one_of(*words: str) -> OptionDomain:
    """The domain of a few words."""
    says = f"{', '.join(words[:-1])} or {words[-1]}"
    return OptionDomain(lambda value: _is_text(value) and value in words, says, words)


def _are_names(value: Any) -> bool:
    """Return whether a value is one name or several, each either a text or three texts, as in ("C", "a", "b")."""
    return _is_text(value) or (
        isinstance(value, Iterable) and all(_is_text(name) or _is_triple(name) for name in value)
    )


def _is_triple(name: Any) -> bool:
    return isinstance(name, tuple) and len(name) == 3 and all(map(_is_text, name))


def _are_texts(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, Iterable) and all(map(_is_text, value)))


def _are_times(value: Any) -> bool:
    return _is_bool(value) or (not _is_text(value) and isinstance(value, Iterable) and not isinstance(value, Mapping))


def _is_positive(value: Any) -> bool:
    return isinstance(value, (int, float)) and not _is_bool(value) and value > 0


DEVICES = ("h100", "a100", "v100", "l4")
"""GPUs whose published figures are known; see numerics/devices/facts.toml."""
LARGE = 2000
"""Size above which commands compute all eigenvalues only if necessary."""
YES_OR_NO = OptionDomain(_is_bool, "True or False")
TEXT = OptionDomain(_is_text, "text")


def option(default: Any, domain: OptionDomain, help: str, **more: Any) -> Any:
    """A field of `Options`."""
    return field(default=default, metadata={"declared": OptionInfo(domain, help, **more)})


@dataclass(frozen=True)
class Options:
    """Options of `solve`, `simulate`, `compare`, `report` and sweeps, each with a value.

    >>> from numerics.options import Options
    >>> Options(samples=5000).seed
    0
    """

    samples: int | None = option(
        None,
        whole(100),
        "Number of Monte Carlo samples of the single-site process, for laws that are neither linear nor "
        "functions of Gaussian fields.",
        cost="Time and memory are proportional to it; standard errors fall as its square root.",
        metavar="N",
    )
    seed: int = option(0, whole(0), "Seed of the random numbers: the same seed gives the same result.", metavar="N")
    rank: int | None = option(
        None,
        whole(2),
        "Sampled laws: largest rank of the basis that represents the past of each field; by default as large as "
        "memory allows.",
        cost="Time and memory are proportional to it.",
        metavar="R",
    )
    memory: float | None = option(
        None,
        OptionDomain(_is_positive, "a number of GB, larger than 0"),
        "Sampled laws: maximum memory; by default nine tenths of the machine's memory. Larger runs are refused.",
        metavar="GB",
    )
    path: bool | Sequence[int] | None = option(
        None,
        OptionDomain(_are_times, "True, False or a list of times"),
        "Compute the spectrum at every time, not only at the end; this is the default if a model names its layers, but "
        "not for eigenproblems of more than 1000 rows.",
        cost="It takes one eigenproblem per time.",
    )
    overlaps: bool | None = option(
        None,
        YES_OR_NO,
        "Overlaps of the outliers' vectors with the span of the spikes; computed by default.",
        flag=None,
    )
    eigenvalues: str | None = option(
        None,
        one_of("all", "ends"),
        "All eigenvalues of each sample, or only the ends of its spectrum. By default commands compute only the ends "
        f"for sizes of {LARGE} and more, unless a histogram or a file needs the others.",
        cost="Computing the ends takes a time that grows as D^2, computing all eigenvalues as D^3.",
    )
    align: Sequence[str] = option(
        (),
        OptionDomain(_are_texts, "names of fields such as 'v(3)' in a list"),
        "A direction to compare with the outliers' vectors: teacher, v(3), 'v(T)', or v for all its times. May "
        "be repeated; directions that a model observes with alignment(...) are always included.",
        metavar="FIELD",
    )
    kernels: Sequence[Any] = option(
        (),
        OptionDomain(_are_names, "names such as C[a,b] in a list"),
        "A two-time function of two fields: the correlation C[a,b](t,s) = <a(t) b(s)>, or the response R[a,b](t,s) of "
        "a(t) to a source in the equation of b at s. May be repeated.",
        metavar="C[a,b]|R[a,b]",
        flag="--kernel",
    )
    certify: bool | None = option(
        None,
        YES_OR_NO,
        "Check the results by independent computations; by default only fast checks are made at a single point, and "
        "none on a grid.",
        cost="The default takes at most a quarter of the solution time; --certify also counts zeros of a large A(z).",
    )
    size: int = option(
        1000,
        whole(),
        "Size of the base sector, the first one declared; the others follow from their ratios.",
        cost="Memory grows as its square, time as its cube.",
        metavar="D",
    )
    seeds: int = option(20, whole(), "Number of independent samples of all random quantities.", metavar="K")
    backend: str = option(
        "numpy", one_of("numpy", "jax"), "Library that runs the simulation; jax uses an accelerator if available."
    )

    def __post_init__(self) -> None:
        for name in ("samples", "seed", "rank", "size", "seeds"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, int(value))

    @property
    def ends_only(self) -> bool:
        """Whether only the ends of the spectra of samples are computed."""
        return self.eigenvalues == "ends"

    @property
    def listed_path(self) -> bool | list[int] | None:
        """`path` as plain data."""
        path: Any = self.path
        if path is None or _is_bool(path):
            return None if path is None else bool(path)
        return [int(time) for time in path]

    def told(self, verb: str) -> dict[str, Any]:
        """Return the options on which a result of a verb depends, as plain data in the form of the command line."""
        names = [name for name in VERBS[verb] if name not in ("overlaps", "certify", "memory", "align")]
        found = {name: getattr(self, name) for name in names}
        if "path" in found:
            found["path"] = self.listed_path
        if found.get("backend") == "numpy":
            found["backend"] = None
        if found.get("eigenvalues") == "all":
            found["eigenvalues"] = None
        return found


BARE = Options(path=False, overlaps=False, certify=False)
"""Only the bulk and the outliers after the last step."""
CORES = "cores"
"""One process per core, once starting them saves time."""


@dataclass(frozen=True)
class SweepOptions:
    """Additional options of a sweep besides those of the verb that it repeats."""

    of: str = option("solve", one_of("solve", "simulate", "compare"), "The verb that the sweep repeats.", flag=None)
    jobs: int | str | None = option(
        None,
        OptionDomain(lambda value: _is_text(value) or whole().holds(value), f"a number of processes or {CORES!r}"),
        "Processes on this machine, each with one thread; by default one per core.",
        cost="Each process takes a few seconds to start and has its own memory.",
        metavar="N",
    )
    executor: Any = option(
        None,
        OptionDomain(lambda value: callable(getattr(value, "submit", None)), "a concurrent.futures.Executor"),
        "An executor that runs the units of work.",
        flag=None,
    )
    on: str | None = option(
        None,
        OptionDomain(_is_text, "text such as dask:tcp://HOST:PORT"),
        "Compute on a Dask cluster: dask:tcp://HOST:PORT or dask:FILE.",
        metavar="dask:ADDRESS",
    )
    journal: str | os.PathLike[str] | None = option(
        None,
        OptionDomain(lambda value: isinstance(value, (str, os.PathLike)), "the path of a file"),
        "Store finished parts in FILE, and resume from there; by default beside the file of --out.",
        metavar="FILE",
    )
    shard: str | None = option(
        None,
        OptionDomain(_is_text, "text such as 2/8"),
        "Only the K-th of N parts of the work; see `derive merge`.",
        metavar="K/N",
    )

    def __post_init__(self) -> None:
        if sum(given is not None for given in (self.jobs, self.executor, self.on)) > 1:
            raise ParameterError("jobs, executor and on exclude each other: give one of them")
        if self.jobs is not None and self.jobs != CORES and not whole(1).holds(self.jobs):
            raise ParameterError(f"jobs={self.jobs}: give a number of processes, at least one, or {CORES!r}")
        if self.part is not None:
            part, parts = self.part
            if not 1 <= part <= parts:
                raise ParameterError(f"shard {part}/{parts}: write K/N with K from 1 to N")
            if self.journal is None:
                raise ParameterError("a shard needs its own journal; `derive merge` joins the journals")

    @property
    def part(self) -> tuple[int, int] | None:
        """K and N of a shard K/N."""
        if self.shard is None:
            return None
        part, slash, parts = self.shard.partition("/")
        if not (slash and part.strip().isdigit() and parts.strip().isdigit()):
            raise ParameterError(f"shard {self.shard}: write K/N, such as 2/8 for the second of eight")
        return int(part), int(parts)

    @property
    def journal_path(self) -> Path | None:
        return None if self.journal is None else Path(self.journal)


@dataclass(frozen=True)
class CheckOptions:
    """Options of `check` besides the seed."""

    quick: bool = option(False, YES_OR_NO, "The most informative laws, in less than a minute.")
    simulate: bool = option(True, YES_OR_NO, "Compare with simulations at two sizes.")


@dataclass(frozen=True)
class ReportOptions:
    """Additional options of `report` besides those of its comparison."""

    simulation: bool = option(
        True, YES_OR_NO, "Include a comparison of theory and simulation, or write the derivation alone."
    )
    notation: str = option("model", one_of("model", "paper"), "The notation of the model, or of its source.")
    command: str = option("", TEXT, "The command to print in the document.", flag=None)


@dataclass(frozen=True)
class StabilityOptions:
    """Options of `stability`."""

    of: str = option("eta", TEXT, "The parameter to raise; its value is the start of the search.", metavar="NAME")
    loss: str = option("train_loss", TEXT, "The observable that must remain bounded.", metavar="NAME")
    curvature: str | None = option(
        None,
        TEXT,
        "The layer whose largest eigenvalue is the curvature, or none; by default ntk, if the model has it. "
        "LAYER/PARAMETER divides it by a parameter.",
        metavar="LAYER",
    )
    tolerance: float = option(
        1e-3,
        OptionDomain(_is_positive, "a number larger than 0"),
        "Relative tolerance of the search.",
        cost="Each factor of two needs one more run.",
        flag=None,
    )


@dataclass(frozen=True)
class CompileOptions:
    """Options of `compile`."""

    target: str = option(
        "cuda",
        OptionDomain(lambda value: value == "cuda", "cuda", ("cuda",)),
        "The target of compilation. Nothing is executed on it, and no device is needed.",
    )
    device: str = option(
        "h100", one_of(*DEVICES), "The GPU whose published figures the compiler uses; by default h100."
    )
    devices: int = option(
        1,
        whole(1),
        "Number of GPUs of one host that share the points of a batch; by default one.",
        metavar="K",
    )
    batch: int | None = option(
        None,
        whole(1),
        "Number of points computed together, as in a sweep; by default one per GPU.",
        metavar="N",
    )


_SWEEP = tuple(f.name for f in fields(Options) if f.name != "memory")
VERBS: Mapping[str, tuple[str, ...]] = {
    "solve": ("samples", "rank", "memory", "seed", "path", "overlaps", "align", "kernels", "certify"),
    "simulate": ("size", "seeds", "seed", "backend", "path", "overlaps", "eigenvalues", "align", "kernels"),
    "compare": (
        *("size", "seeds", "samples", "rank", "seed", "backend", "path", "eigenvalues", "align", "kernels", "certify"),
    ),
    "sweep": _SWEEP,
    "plan": _SWEEP,
    "report": ("size", "seeds", "samples", "seed"),
    "check": ("seed",),
    "function": ("samples", "rank", "seed"),
    "explore": ("samples",),
    "stable_rate": (),
    "compile": (),
    "limit": (),
    "limits": (),
}
"""The fields of `Options` that each verb takes, in the order of its help."""
OWN: Mapping[str, type[Any]] = {
    "sweep": SweepOptions,
    "plan": SweepOptions,
    "check": CheckOptions,
    "report": ReportOptions,
    "stable_rate": StabilityOptions,
    "compile": CompileOptions,
}
"""The record of options specific to each verb."""
DEFAULTS: Mapping[str, Mapping[str, Any]] = {"report": {"size": 400, "seeds": 10}}
"""Defaults of a verb that differ from those of `Options`."""


def options_of(verb: str) -> dict[str, OptionInfo]:
    """Return every option of a verb by name, in the order of its help."""
    shared, changed = fields_of(Options), DEFAULTS.get(verb, {})
    found = {name: replace(shared[name], default=changed.get(name, shared[name].default)) for name in VERBS[verb]}
    return {**found, **(fields_of(OWN[verb]) if verb in OWN else {})}


def fields_of(record: type[Any]) -> dict[str, OptionInfo]:
    """Return the options that a record declares, by name."""
    return {f.name: replace(f.metadata["declared"], default=f.default, type=str(f.type)) for f in fields(record)}


def read_options(verb: str, given: Mapping[str, Any]) -> tuple[Options, Any]:
    """Return the options of a verb with the given values, and the record of its own options, None if it has none.

    None selects the default.

    Raises:
        ParameterError: A value is outside of its domain, an option is unknown, or options contradict each other.
    """
    known = options_of(verb)
    values = {}
    for name, value in given.items():
        if name not in known:
            raise ParameterError(f"{name} is not an option of {verb}; its options are {', '.join(known)}")
        if value is None and known[name].default is None:
            continue
        if not known[name].domain.holds(value):
            raise ParameterError(f"{name}={value!r}: {name} must be {known[name].domain.says}")
        values[name] = value
    shared = {name: value for name, value in values.items() if name in VERBS[verb]}
    own = {name: value for name, value in values.items() if name not in VERBS[verb]}
    found = Options(**{**DEFAULTS.get(verb, {}), **shared})
    record = OWN[verb](**own) if verb in OWN else None
    if found.seeds < 2 and (verb == "compare" or getattr(record, "of", "") == "compare"):
        raise ParameterError("seeds must be at least 2 to compare: one seed gives no standard error")
    return found, record
