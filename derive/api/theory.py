"""A model with its verbs: derive, solve, simulate, compare, sweep, and what else follows from a declaration."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.api.options import Asked, Number, asked, check, wanted_kernels
from derive.api.points import Drawn, Point
from derive.api.solvers import Source
from derive.api.stability import TOLERANCE
from derive.errors import DeclarationError, NotPickled, ParameterError
from derive.language.family import Family
from derive.language.model import Model
from derive.language.symbols import Parameter
from derive.loading import is_file_target, load_declaration
from derive.places import path_of
from derive.problems import Problem, aligned, problem_of
from derive.results import Check, Comparison, Limit, Limits, Simulation, Solution, Sweep
from numerics.modules import Solver
from numerics.two_time import Name

if TYPE_CHECKING:
    from derive.api.expanding import Expansion
    from derive.api.reporting import Reported
    from derive.api.sweeping import Plan, Sweeping
    from derive.api.verifying import Verdicts
    from derive.pipeline import Derivation
    from numerics.stability import StableRate

Progress = Callable[[float, str], None]
Values = Mapping[str, Any]
SIZE, SEEDS, SEED = Number(1000), Number(20), Number(0)
REPORT_SIZE, REPORT_SEEDS = Number(400), Number(10)


@dataclass(frozen=True, eq=False)
class Theory:
    """A loaded model. Its verbs take parameters and choices as keywords, checked before any work is done.

    A parameter that is called like an option of a verb goes into a dictionary: `m.solve({"seed": 2.0}, seed=1)`.

    >>> import derive

    >>> from derive.api.example import SPIKE
    >>> m = derive.load(SPIKE)
    >>> [p.name for p in m.parameters]
    ['strength']
    """

    declared: Model | Family
    target: str = ""
    chosen: tuple[tuple[str, int | str], ...] = ()

    @cached_property
    def _source(self) -> Source:
        return Source(self.target)

    @cached_property
    def model(self) -> Model:
        """The declared model; of a family the member that was chosen."""
        return self._problem({}).model

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return tuple(self.model.parameters)

    @property
    def declaration(self) -> str:
        """The text of the file that declares it, with those beside it that it imports."""
        return self._source.text(self.model)

    def inputs(self, values: Values | None = None, /, **parameters: Any) -> dict[str, Any]:
        """What the verbs make of these values: all parameters and choices, and by name the arrays of data."""
        return dict(self._problem(self._given("inputs", {}, values, parameters)).inputs)

    @cached_property
    def derivation(self) -> Derivation:
        """Everything that follows from the declaration, record by record."""
        from derive.pipeline import derive_model  # a setting that is built or stored starts without what derives it

        return derive_model(self.model)

    @property
    def solver(self) -> Solver:
        """The generated code, loaded."""
        return self._solver(self.model, None)

    # -- theory

    def solve(
        self,
        values: Values | None = None,
        /,
        *,
        samples: int | None = None,
        seed: int = SEED,
        rank: int | None = None,
        path: bool | None = None,
        overlaps: bool | None = None,
        align: str | Sequence[str] = (),
        kernels: Sequence[str | Name] = (),
        memory: float | None = None,
        certify: bool | None = None,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> Solution:
        """Solve the theory at infinite size: bulk, outliers, order parameters along the training.

        Parameters that are left out take their defaults. `layer=` picks one of several probed matrices, "none" leaves
        all spectra out; `data=` is a file of arrays or the arrays by name. samples, seed, rank: for laws that are
        sampled. path: outliers at every time, by default where layers have names and eigenproblems at most 1000 rows.
        overlaps: of the outliers' vectors with the spikes, by default yes. align: directions to set the outliers'
        vectors against, besides those that the model observes with alignment(...): fields by name, such as "teacher" or
        "v(3)". kernels: two-time functions to compute at once, as "C[a,b]"; others are computed when they are asked
        for. memory: GB that a sampled solution may take, nine tenths of what the machine has unless given; what would
        take more is refused before it starts, and `diagnostics["memory"]` says what was expected. A solution that
        diverged is false in a condition and says why. certify: `.certificate` says what was checked of the solution
        and how closely, by default as far as that is quick; True counts the zeros of large A(z) too, False checks
        nothing. A solution whose certificate fails is false.

        >>> import derive

        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).solve(strength=2).outliers
        array([2.5])
        >>> derive.load(SPIKE).solve(strength=2, align="v").alignments
        {'v': {'right': array([0.75])}}
        """
        options = asked(
            samples=samples,
            seed=seed,
            rank=rank,
            path=path,
            overlaps=overlaps,
            align=align,
            kernels=kernels,
            memory=memory,
            certify=certify,
            progress=progress,
        )
        point = self._point(self._given("solve", options, values, parameters), progress, align)
        return point.solved(
            samples=samples,
            seed=int(seed),
            rank=rank,
            path=path,
            overlaps=overlaps is not False,
            kernels=wanted_kernels(kernels),
            progress=progress,
            memory=memory,
            certify=certify,
        )

    def sweep(
        self,
        values: Values | None = None,
        /,
        *,
        of: str = "solve",
        size: int = SIZE,
        seeds: int = SEEDS,
        samples: int | None = None,
        seed: int = SEED,
        rank: int | None = None,
        backend: str | None = None,
        path: bool | Sequence[int] | None = None,
        overlaps: bool | None = None,
        eigenvalues: str | None = None,
        align: str | Sequence[str] = (),
        kernels: Sequence[str | Name] = (),
        jobs: int | str | None = None,
        executor: Executor | None = None,
        on: str | None = None,
        journal: str | Path | None = None,
        shard: str | None = None,
        certify: bool | None = None,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> Sweep:
        """Solve, simulate or compare on a grid: each parameter or choice with several values (a list, an array) is an
        axis.

        of: "solve", "simulate" or "compare"; other options are those of the verb. A point that diverges says so, and
        the others go on. Points keep no order parameters: solve a point again for A(z). certify: check every point as
        `solve` does; off by default, because points that are solved side by side take less time than their checks.

        Who computes: this process, jobs=N processes beside it ("cores": as many as there are cores, once it pays), any
        executor=, or the Dask cluster that on="dask:tcp://HOST:PORT" names. Processes have one thread each, and numbers
        are the same to the last bit, whichever of them computes. journal: a file that keeps what is finished: the same
        call goes on where it was interrupted, and more seeds extend fewer. shard="2/8": the second eighth of the work
        only, into a journal of its own (`derive merge` joins them).

        >>> import derive

        >>> from derive.api.example import SPIKE
        >>> m = derive.load(SPIKE)
        >>> m.sweep(strength=[2, 4]).to_xarray()["outliers"].values[:, 0]
        array([2.5 , 4.25])
        >>> [c.agrees for c in m.sweep(strength=[2, 4], of="compare", size=100, seeds=4)]
        [True, True]
        """
        return self._sweeping(
            "sweep",
            values,
            parameters,
            {"size": size, "seeds": seeds, "seed": seed},
            {"of": None if of == "solve" else of, "samples": samples, "rank": rank, "backend": backend, "path": path}
            | {"overlaps": overlaps, "eigenvalues": eigenvalues, "align": align, "kernels": kernels, "jobs": jobs}
            | {"executor": executor, "on": on, "journal": journal, "shard": shard, "certify": certify}
            | {"progress": progress},
        ).done(progress)

    def plan(self, values: Values | None = None, /, *, measured: bool = False, **arguments: Any) -> Plan:
        """How many points and units a sweep has, how many are done, and how long it takes; arguments as for `sweep`.

        measured: compute the next unit, to say how long; it is kept in the journal, where there is one.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).plan(strength=[2, 4], of="simulate", seeds=3).samples
        6
        """
        defaults = {"size": SIZE, "seeds": SEEDS, "seed": SEED}
        numbers = {name: arguments.pop(name, default) for name, default in defaults.items()}
        known = (
            "of",
            "samples",
            "rank",
            "backend",
            "path",
            "overlaps",
            "eigenvalues",
            "align",
            "kernels",
            "jobs",
            "executor",
            "on",
        )
        told = {name: arguments.pop(name, None) for name in (*known, "journal", "shard", "certify", "progress")}
        return self._sweeping("plan", values, arguments, numbers, told).plan(measured)

    def _sweeping(
        self, verb: str, values: Values | None, parameters: Values, numbers: Mapping[str, int], told: Mapping[str, Any]
    ) -> Sweeping:
        """A sweep and who computes it; numbers: options that have defaults, told: those that may be None."""
        from derive.api.sweeping import sweeping_of

        given = self._given(verb, asked(**numbers, **told), values, parameters)
        return sweeping_of(self._source, self.declared, given, {**numbers, **told})

    # -- finite size

    def simulate(
        self,
        values: Values | None = None,
        /,
        *,
        size: int = SIZE,
        seeds: int = SEEDS,
        seed: int = SEED,
        backend: str | None = None,
        path: bool | Sequence[int] | None = None,
        overlaps: bool | None = None,
        eigenvalues: str | None = None,
        align: str | Sequence[str] = (),
        kernels: Sequence[str | Name] = (),
        progress: Progress | None = None,
        **parameters: Any,
    ) -> Simulation:
        """Simulate the declaration at finite size: draw the disorder, run the equations, diagonalise.

        size: of the base sector, the first one declared. seeds: independent samples. path: the spectrum at every time
        or at those that are listed; by default at a handful where layers have names. backend: "numpy" or "jax".
        eigenvalues: "all" by default; "ends" gives the twenty at either end, which at large sizes are found without the
        others, by Lanczos' method with checked residuals. align: as for `solve`.

        >>> import derive

        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).simulate(strength=2, size=100, seeds=3).eigenvalues.shape
        (3, 100)
        """
        options = asked(
            size=size,
            seeds=seeds,
            seed=seed,
            backend=backend,
            path=path,
            overlaps=overlaps,
            eigenvalues=eigenvalues,
            align=align,
            kernels=kernels,
            progress=progress,
        )
        point = self._point(self._given("simulate", options, values, parameters), progress, align)
        return point.simulated(
            Drawn(int(size), int(seeds), int(seed), backend, eigenvalues == "ends"),
            path=path,
            overlaps=point.solver.layered if overlaps is None else overlaps,
            kernels=wanted_kernels(kernels),
            progress=progress,
        )

    def compare(
        self,
        values: Values | None = None,
        /,
        *,
        size: int = SIZE,
        seeds: int = SEEDS,
        samples: int | None = None,
        rank: int | None = None,
        seed: int = SEED,
        backend: str | None = None,
        path: bool | None = None,
        eigenvalues: str | None = None,
        align: str | Sequence[str] = (),
        kernels: Sequence[str | Name] = (),
        certify: bool | None = None,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> Comparison:
        """Solve the theory, simulate the declaration, and set one against the other.

        eigenvalues: "all" by default; "ends" computes those that are compared only, the outliers on either side and the
        edges behind them, unless a layer needs all. There is no histogram then. align, certify: as for `solve`.

        >>> import derive

        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).compare(strength=2, size=200, seeds=4).agrees
        True
        """
        options = asked(
            size=size,
            seeds=seeds,
            samples=samples,
            rank=rank,
            seed=seed,
            backend=backend,
            path=path,
            eigenvalues=eigenvalues,
            align=align,
            certify=certify,
            progress=progress,
            kernels=kernels,
        )
        given = self._given("compare", options, values, parameters)
        if seeds < 2:
            raise ParameterError("seeds must be at least 2 to compare: one seed gives no standard error")
        return self._point(given, progress, align).compared(
            Drawn(int(size), int(seeds), int(seed), backend, eigenvalues == "ends"),
            samples=samples,
            rank=rank,
            path=path,
            kernels=wanted_kernels(kernels),
            progress=progress,
            certify=certify,
        )

    def check(
        self,
        values: Values | None = None,
        /,
        *,
        quick: bool = False,
        simulate: bool = True,
        seed: int = SEED,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> Check:
        """Try the laws that every declaration must obey on this one: what must not change a number is changed.

        Symbols are renamed, equations reordered, intermediates named and written out, a matrix split in two, parameters
        replaced by numbers, and more; the theory is set against the cavity argument, exact arithmetic and simulations
        at two sizes, extrapolated in 1/size (left out with simulate=False). The result is false in a condition if a law
        broke. quick: the laws that say most, in less than a minute.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> check = derive.load(SPIKE).check(strength=2, quick=True, simulate=False)
        >>> [law.law for law in check if law.status == "broke"]
        []
        """
        from derive.api.checking import check

        options = asked(seed=seed, progress=progress)
        problem = self._problem(self._given("check", options, values, parameters))
        return check(self._source, problem, quick, simulate, int(seed), progress)

    # -- what else follows

    def limit(self, values: Values | None = None, /, *, progress: Progress | None = None, **parameters: Any) -> Limit:
        """Where linear training comes to rest: the observables after arbitrarily many steps, without running there.

        Gradient descent on a quadratic loss ends at the ridge estimator, or without a ridge at the interpolator that is
        closest to its start. A limit that does not exist, as at too large a rate, is false in a condition and says why.

        >>> import derive
        >>> from derive.api.example import REGRESSION
        >>> m = derive.load(REGRESSION)
        >>> round(m.limit(alpha=0.5, ridge=0)["distance"], 6), bool(m.limit(alpha=1, ridge=0))
        (0.59, False)
        """
        from derive.api.limiting import limit

        return limit(
            self._source, self._problem(self._given("limit", asked(progress=progress), values, parameters)), progress
        )

    def limits(self, values: Values | None = None, /, *, progress: Progress | None = None, **parameters: Any) -> Limits:
        """The same on a grid: a parameter may have several values, as a ridge along its path.

        >>> import derive
        >>> from derive.api.example import REGRESSION
        >>> derive.load(REGRESSION).limits(ridge=[0.1, 1], alpha=[1, 2])["distance"].shape
        (2, 2)
        """
        from derive.api.limiting import limits

        given = self._given("limits", asked(progress=progress), values, parameters)
        return limits(self._source, self.declared, given, progress)

    def stable_rate(
        self,
        values: Values | None = None,
        /,
        *,
        of: str = "eta",
        loss: str = "train_loss",
        curvature: str | None = None,
        tolerance: float = TOLERANCE,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> StableRate:
        """The largest rate with a bounded loss, and the smallest at which a direction of the curvature overshoots.

        of: the parameter to raise; its value is where the search starts. loss: the observable that must stay bounded.
        curvature: the layer whose largest eigenvalue it is, by default ntk where there is one; "none" leaves it out,
        and "sample/alpha" divides that of layer sample by the parameter alpha.
        """
        from derive.api.stability import stable_rate

        options = asked(
            of=None if of == "eta" else of,
            loss=None if loss == "train_loss" else loss,
            curvature=curvature,
            progress=progress,
        )
        problem = self._problem(self._given("stable_rate", options, values, parameters))
        solver = self._solver(problem.model, progress)
        return stable_rate(solver, problem, of, loss, curvature, tolerance, progress)

    def expand(
        self,
        of: str = "edge",
        variable: str | None = None,
        *,
        order: int = 3,
        at: Mapping[str, Any] | None = None,
        parameter: str | None = None,
        layer: int | str | None = None,
    ) -> Expansion:
        """An edge of the bulk, the largest outlier or a threshold as an exact series in a parameter.

        of: "edge", "lower_edge", "outlier" or "threshold" (of `parameter`). variable: what is small, "gamma", "1/nu" or
        "gamma0-2"; the quantity itself if None. at: parameters fixed to exact numbers.

        >>> import derive

        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).expand("outlier").series
        '((strength**2 + 1)/strength)'
        """
        from derive.api.expanding import expand

        return expand(self.declared, dict(self.chosen), (of, variable, order), at or {}, parameter, layer)

    def verify(self, claims: str | Path | None = None) -> Verdicts:
        """Hand-written formulas against what is derived: those of a claims file, or the project's own for the setting.

        >>> import derive

        >>> from derive.api.example import SPIKE
        >>> import pathlib, tempfile
        >>> claims = pathlib.Path(tempfile.mkdtemp()) / "paper.toml"
        >>> lines = ['model = "spike"', "[[claim]]", 'name = "outlier"', 'kind = "outlier"']
        >>> _ = claims.write_text(chr(10).join([*lines, 'value = "strength + 1/strength"', 'region = "strength > 1"']))
        >>> bool(derive.load(SPIKE).verify(claims))
        True
        """
        from derive.api.verifying import verify

        return verify(self.model, self.target, None if claims is None else str(path_of(claims, "claims")))

    def function(self, quantity: str = "outlier", of: str | Sequence[str] = (), **fixed: Any) -> Callable[..., Any]:
        """A quantity as a plain JAX function of some parameters; `jax.grad`, `jit` and `vmap` act on it.

        quantity: "outlier" (the largest), "edge" (the upper one), or the name of an observable, which gives an array
        over time. of: the parameters that the function takes, in this order; the others are fixed or take defaults.

        >>> import derive, jax

        >>> from derive.api.example import SPIKE
        >>> outlier = derive.load(SPIKE).function("outlier", of="strength")
        >>> float(jax.grad(outlier)(2.0))
        0.75
        """
        from derive.api.functions import function

        problem = self._problem(fixed)
        names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, Iterable) else (of,)
        return function(problem, lambda: self._solver(problem.model, None), quantity, names, fixed)

    def report(
        self,
        path: str | Path = "report.html",
        values: Values | None = None,
        /,
        *,
        size: int = REPORT_SIZE,
        seeds: int = REPORT_SEEDS,
        samples: int | None = None,
        seed: int = SEED,
        simulation: bool | None = None,
        command: str | None = None,
        progress: Progress | None = None,
        **parameters: Any,
    ) -> Reported:
        """Write the whole derivation as one page (.html) or LaTeX document (.tex); `.written` are the files.

        With theory against simulation at these parameters, unless simulation=False. command: what the document says
        that it was made with.
        """
        from derive.api.reporting import report

        options = asked(
            size=size,
            seeds=seeds,
            samples=samples,
            seed=seed,
            simulation=simulation,
            command=command,
            progress=progress,
        )
        given = self._given("report", options, values, parameters)

        def compared(share: Progress) -> Comparison:
            return self.compare(
                given, size=int(size), seeds=int(seeds), samples=samples, seed=int(seed), progress=share
            )

        wanted = None if simulation is False else compared
        return report(self._problem(given), self.target, path_of(path), wanted, command or "", progress)

    def build(self, directory: str | Path) -> list[Path]:
        """Write the solver into DIRECTORY/<name>/ with what it needs, so that it stands alone."""
        from derive.api.building import build

        return build(self.model, path_of(directory, "directory"))

    # -- displays

    def __repr__(self) -> str:
        chosen = "".join(f", {name}={value!r}" for name, value in self.chosen)
        return f"derive.load({self.target or self.declared.name!r}{chosen})"

    def _repr_markdown_(self) -> str:
        return self.model._repr_markdown_()

    # -- inside

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it was loaded from, which must be there and the same when it is loaded again."""
        if not self.target:
            raise NotPickled(
                f"{self.declared.name} was declared in Python and is not pickled; write it into a file and load it by "
                "its path, or pickle what solve and simulate give"
            )
        place = os.path.abspath(self.target) if is_file_target(self.target) else self.target
        return _loaded_again, (place, self.chosen, self.declaration)

    def _given(self, verb: str, options: Asked, values: Values | None, parameters: Values) -> dict[str, Any]:
        """All values by name; an option that is called like a parameter is refused, as it might be meant as either."""
        if values is not None and not isinstance(values, Mapping):
            raise ParameterError(f"{verb}({values!r}): give parameters by name, as {verb}(name=value)")
        names = {parameter.name for parameter in self.parameters} | {name for name, _ in self.model.choices}
        for name in sorted(names & set(options) - set(values or {})):
            raise ParameterError(
                f"{name} is an option of {verb} and a parameter of {self.model.setting}: write "
                f"{verb}({{{name!r}: ...}}) for the parameter, and {name}=... beside it for the option"
            )
        check(options)
        twice = sorted(set(values or {}) & set(parameters))
        if twice:
            raise ParameterError(f"{twice[0]} is given twice; keep one of the two values")
        return {**dict(self.chosen), **(values or {}), **parameters}

    def _problem(self, given: Values) -> Problem:
        return problem_of(self.declared, {**dict(self.chosen), **given})

    def _point(self, given: Values, progress: Progress | None, align: str | Sequence[str] = ()) -> Point:
        return Point.of(self._source, aligned(self._problem(given), align), progress)

    def _solver(self, model: Model, progress: Progress | None) -> Solver:
        return self._source.solver(model, progress)


def _loaded_again(target: str, chosen: tuple[tuple[str, int | str], ...], declaration: str) -> Theory:
    """What was pickled, from where it was loaded; refused if its declaration is another one by now."""
    found = Theory(load_declaration(target), target, chosen)
    if found.declaration != declaration:
        raise DeclarationError(f"{target} is not what was pickled: its declaration was changed; load it again by hand")
    return found
