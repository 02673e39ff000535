"""A loaded model with its verbs: derive, solve, simulate, compare, sweep and others."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from derive.api.options import split_arguments, takes_options
from derive.api.points import ProblemPoint
from derive.api.solvers import DeclarationSource
from derive.errors import DeclarationError, NotPickled, ParameterError
from derive.inputs.loading import is_file_target, load_declaration
from derive.inputs.problems import Problem, aligned, problem_of
from derive.language.family import Family
from derive.language.model import Model
from derive.language.symbols import Parameter
from derive.results import Check, Comparison, Limit, Limits, Simulation, Solution, Sweep
from derive.support.places import path_of
from derive.support.progress import Progress
from numerics.modules import Solver
from numerics.options import Options

if TYPE_CHECKING:
    from derive.api.expanding import Expansion
    from derive.api.reporting import Reported
    from derive.api.sweeping import Plan, Sweeping
    from derive.api.verifying import Verdicts
    from derive.pipeline import Derivation
    from derive.printing.documents import NumberedEquation
    from numerics.devices.records import Compilation
    from numerics.limit.stability import StableRate

Values = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Theory:
    """A loaded model. Its verbs take parameters and choices as keywords, checked before any work is done.

    A parameter with the name of an option is passed in a dictionary: `m.solve({"seed": 2.0}, seed=1)`.

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
    def _source(self) -> DeclarationSource:
        return DeclarationSource(self.target)

    @cached_property
    def model(self) -> Model:
        """The declared model; for a family, the chosen member."""
        return self._problem({}).model

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.model.name

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The declared parameters, each with its default, domain and meaning."""
        return tuple(self.model.parameters)

    @property
    def declaration(self) -> str:
        """The text of the declaring file with the files that it imports."""
        return self._source.text(self.model)

    def inputs(self, values: Values | None = None, /, **parameters: Any) -> dict[str, Any]:
        """Return all parameters, choices and data arrays by name, as the verbs take them."""
        return dict(self._problem({**(values or {}), **parameters}).inputs)

    @cached_property
    def derivation(self) -> Derivation:
        """The records of all stages of the derivation."""
        from derive.pipeline import derive_model  # a setting that is built or stored starts without what derives it

        return derive_model(self.model)

    @cached_property
    def equations(self) -> dict[str, NumberedEquation]:
        """The numbered equations of the derivation, as SymPy expressions, text and LaTeX in the declared letters.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> m = derive.load(SPIKE)
        >>> m.equations["G1"]
        G**2 - G*z + 1 = 0
        >>> m.equations["G1"].latex
        'G^{2} - G\\, z + 1 = 0'
        """
        from derive.printing import equations_of

        return equations_of(self.derivation)

    def equations_in(self, notation: str) -> dict[str, NumberedEquation]:
        """The numbered equations in the notation of the model or of its source (notation="paper")."""
        from derive.printing import equations_of, lettered, letters_of

        with lettered(letters_of(self.model, notation)):
            return equations_of(self.derivation)

    @property
    def solver(self) -> Solver:
        """The loaded generated solver."""
        return self._solver(self.model, None)

    # -- theory

    @takes_options
    def solve(self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any) -> Solution:
        """Solve the theory at infinite size: bulk, outliers, order parameters along the training.

        Omitted parameters take their defaults. `layer=` selects one of several probed matrices, and "none" skips all
        spectra; `data=` is a file of arrays or a dict of arrays by name. Two-time functions not listed in `kernels` are
        computed on first access. A solution that diverged, or whose certificate fails, is false in a condition and
        gives the reason.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).solve(strength=2).outliers
        array([2.5])
        >>> derive.load(SPIKE).solve(strength=2, align="v").alignments
        {'v': {'right': array([0.75])}}
        """
        options, _, inputs = self._asked("solve", values, arguments, progress)
        return self._point(inputs, progress, options.align).solved(options, progress)

    @takes_options
    def sweep(self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any) -> Sweep:
        """Solve, simulate or compare on a grid: each parameter or choice with several values (a list, an array) is an
        axis.

        A point that diverges is reported as such; the others are computed nevertheless. Points do not store order
        parameters: solve a point again for A(z). Certificates are off by default, because points solved in one batch
        take less time than their checks.

        The work is done by this process, by `jobs` additional processes ("cores": one per core, once that saves time),
        by any `executor`, or by the Dask cluster named by `on`. Processes have one thread each, and numbers are bitwise
        identical whichever of them computes. With a `journal` the same call resumes an interrupted sweep, and
        additional seeds extend it. shard="2/8" computes the second eighth of the work into its own journal (`derive
        merge` joins them).

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> m = derive.load(SPIKE)
        >>> m.sweep(strength=[2, 4]).to_xarray()["outliers"].values[:, 0]
        array([2.5 , 4.25])
        >>> [c.agrees for c in m.sweep(strength=[2, 4], of="compare", size=100, seeds=4)]
        [True, True]
        """
        return self._sweeping("sweep", values, arguments, progress).done(progress)

    def plan(self, values: Values | None = None, /, *, measured: bool = False, **arguments: Any) -> Plan:
        """Return the number of points and units of a sweep, how many are done, and the expected time; arguments as for
        `sweep`.

        measured: compute the next unit to estimate the time; it is stored in the journal, if there is one.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).plan(strength=[2, 4], of="simulate", seeds=3).samples
        6
        """
        progress = arguments.pop("progress", None)
        return self._sweeping("plan", values, arguments, progress).plan(measured)

    def _sweeping(self, verb: str, values: Values | None, arguments: Values, progress: Progress | None) -> Sweeping:
        """Return a sweep with its workers."""
        from derive.api.sweeping import sweeping_of

        options, sweep, inputs = self._asked(verb, values, arguments, progress)
        return sweeping_of(self._source, self.declared, inputs, options, sweep)

    # -- finite size

    @takes_options
    def simulate(
        self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any
    ) -> Simulation:
        """Simulate the declaration at finite size: draw the disorder, run the equations, diagonalise.

        `path` may list the times of the spectra; by default these are a handful if layers have names.
        eigenvalues="ends" gives twenty at either end; at large sizes Lanczos' method with checked residuals finds them
        without the others.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).simulate(strength=2, size=100, seeds=3).eigenvalues.shape
        (3, 100)
        """
        options, _, inputs = self._asked("simulate", values, arguments, progress)
        return self._point(inputs, progress, options.align).simulated(options, progress)

    @takes_options
    def compare(
        self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any
    ) -> Comparison:
        """Solve the theory, simulate the declaration, and compare the two.

        eigenvalues="ends" computes only those that are compared, the outliers on either side and the edges behind them,
        unless a layer needs all. No histogram is available then.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).compare(strength=2, size=200, seeds=4).agrees
        True
        """
        options, _, inputs = self._asked("compare", values, arguments, progress)
        return self._point(inputs, progress, options.align).compared(options, progress)

    @takes_options
    def check(self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any) -> Check:
        """Test this declaration against the laws that every declaration must obey: equivalent models must give equal
        numbers.

        Symbols are renamed, equations reordered, intermediates named and expanded, a matrix split in two, parameters
        replaced by numbers, and more; the theory is compared with the cavity argument, exact arithmetic and simulations
        at two sizes, extrapolated in 1/size. The result is false in a condition if a law is violated.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> check = derive.load(SPIKE).check(strength=2, quick=True, simulate=False)
        >>> [law.law for law in check if law.status == "broke"]
        []
        """
        from derive.api.checking import check

        options, own, inputs = self._asked("check", values, arguments, progress)
        return check(self._source, self._problem(inputs), own.quick, own.simulate, options.seed, progress)

    # -- other verbs

    def limit(self, values: Values | None = None, /, *, progress: Progress | None = None, **parameters: Any) -> Limit:
        """Return the stationary limit of linear training: the observables after arbitrarily many steps,
        without running them.

        Gradient descent on a quadratic loss converges to the ridge estimator or, without a ridge, to the interpolator
        closest to its initial condition. A limit that does not exist, for example because the rate is too large, is
        false in a condition and gives the reason.

        >>> import derive
        >>> from derive.api.example import REGRESSION
        >>> m = derive.load(REGRESSION)
        >>> round(m.limit(alpha=0.5, ridge=0)["distance"], 6), bool(m.limit(alpha=1, ridge=0))
        (0.59, False)
        """
        from derive.api.limiting import limit

        _, _, inputs = self._asked("limit", values, parameters, progress)
        return limit(self._source, self._problem(inputs), progress)

    def limits(self, values: Values | None = None, /, *, progress: Progress | None = None, **parameters: Any) -> Limits:
        """Return stationary limits on a grid: a parameter may have several values, such as a path of ridges.

        >>> import derive
        >>> from derive.api.example import REGRESSION
        >>> derive.load(REGRESSION).limits(ridge=[0.1, 1], alpha=[1, 2])["distance"].shape
        (2, 2)
        """
        from derive.api.limiting import limits

        _, _, inputs = self._asked("limits", values, parameters, progress)
        return limits(self._source, self.declared, inputs, progress)

    @takes_options
    def stable_rate(
        self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any
    ) -> StableRate:
        """Return the largest learning rate with a bounded loss, and the smallest at which a direction of the curvature
        overshoots.
        """
        from derive.api.limiting import stable_rate

        _, own, inputs = self._asked("stable_rate", values, arguments, progress)
        problem = self._problem(inputs)
        return stable_rate(self._solver(problem.model, progress), problem, own, progress)

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
        """Return an edge of the bulk, the largest outlier or a threshold as an exact series in a parameter.

        Args:
            of: "edge", "lower_edge", "outlier" or "threshold" (of `parameter`).
            variable: the small quantity, "gamma", "1/nu" or "gamma0-2"; None returns the quantity itself.
            order: the highest power.
            at: parameters fixed to exact numbers.
            parameter: the parameter of a threshold.
            layer: the probed matrix.

        >>> import derive
        >>> from derive.api.example import SPIKE
        >>> derive.load(SPIKE).expand("outlier").series
        '((strength**2 + 1)/strength)'
        """
        from derive.api.expanding import expand

        return expand(self.declared, dict(self.chosen), (of, variable, order), at or {}, parameter, layer)

    def verify(self, claims: str | Path | None = None) -> Verdicts:
        """Verify hand-written formulas against the derivation: those of a claims file, or the project's own
        for the setting.

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

    @takes_options
    def function(self, quantity: str = "outlier", of: str | Sequence[str] = (), **arguments: Any) -> Callable[..., Any]:
        """Return a quantity as a plain JAX function of some parameters; `jax.grad`, `jit` and `vmap` act on it.

        Args:
            quantity: "outlier" (the largest), "edge" (the upper one), or the name of an observable, which gives an
                array over time.
            of: the parameters that the function takes, in this order; the others are fixed or take defaults.

        Derivatives of a sampled theory are pathwise, at the fixed random numbers of its replicates. `f.gradient(x)` has
        value and derivatives with their standard errors. Models with jumps are refused; the error names the jump.

        >>> import derive, jax
        >>> from derive.api.example import SPIKE
        >>> outlier = derive.load(SPIKE).function("outlier", of="strength")
        >>> float(jax.grad(outlier)(2.0))
        0.75
        """
        from derive.api.functions import function

        options, _, inputs = self._asked("function", None, arguments, None)
        problem = self._problem(inputs)
        names = (of,) if isinstance(of, str) else tuple(of) if isinstance(of, Iterable) else (of,)
        return function(problem, lambda: self._solver(problem.model, None), quantity, names, arguments, options)

    @takes_options
    def compile(
        self, values: Values | None = None, /, *, progress: Progress | None = None, **arguments: Any
    ) -> Compilation:
        """Compile every generated function, and quantities with their derivatives, for a GPU, which need not be
        present.

        For each function the result gives its kernels and bytes, the libraries it calls, and what remains on the host.
        Nothing is executed on a GPU. `pip install 'two-level-dmft[gpu]'` installs the compiler.
        """
        from derive.api.compiling import compilation

        _, own, inputs = self._asked("compile", values, arguments, progress)
        problem = self._problem(inputs)
        return compilation(problem, lambda: self._solver(problem.model, progress), own, progress)

    @takes_options
    def report(
        self,
        path: str | Path = "report.html",
        values: Values | None = None,
        /,
        *,
        progress: Progress | None = None,
        **arguments: Any,
    ) -> Reported:
        """Write the whole derivation as one page (.html) or LaTeX document (.tex); `.written` lists the files."""
        from derive.api.reporting import report
        from derive.printing import lettered, letters_of

        options, own, inputs = self._asked("report", values, arguments, progress)

        def compared(share: Progress) -> Comparison:
            return self._point(inputs, share).compared(options, share)

        wanted = compared if own.simulation else None
        with lettered(letters_of(self.model, own.notation)):
            return report(self._problem(inputs), self.target, path_of(path), wanted, own.command, progress)

    def build(self, directory: str | Path, notation: str = "model") -> list[Path]:
        """Write a self-contained solver into DIRECTORY/<name>/.

        notation="paper" writes its comments and derivation.md in the notation that the model declares for its source.
        """
        from derive.api.building import build

        return build(self.model, path_of(directory, "directory"), notation)

    # -- displays

    def __repr__(self) -> str:
        chosen = "".join(f", {name}={value!r}" for name, value in self.chosen)
        return f"derive.load({self.target or self.declared.name!r}{chosen})"

    def _repr_markdown_(self) -> str:
        return self.model._repr_markdown_()

    # -- helpers

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the target; unpickling loads it again and requires the same declaration."""
        if not self.target:
            raise NotPickled(
                f"{self.declared.name} was declared in Python and cannot be pickled; write it to a file and load "
                f"that by its path, or pickle the results of solve and simulate"
            )
        place = os.path.abspath(self.target) if is_file_target(self.target) else self.target
        return _loaded_again, (place, self.chosen, self.declaration)

    def _asked(
        self, verb: str, values: Values | None, arguments: Values, progress: Progress | None
    ) -> tuple[Options, Any, dict[str, Any]]:
        """Return the common options of a verb, its own options, and all values of the model by name."""
        if values is not None and not isinstance(values, Mapping):
            raise ParameterError(f"{verb}({values!r}): give parameters by name, as {verb}(name=value)")
        if progress is not None and not callable(progress):
            raise ParameterError(f"progress={progress!r}: progress must be a function of a fraction and a text")
        names = {parameter.name for parameter in self.parameters} | {name for name, _ in self.model.choices}
        own = values or {}
        options, record, parameters = split_arguments(verb, arguments, names - set(own), self.model.setting)
        twice = sorted(set(own) & set(parameters))
        if twice:
            raise ParameterError(f"{twice[0]} is given twice; keep one of the two values")
        return options, record, {**dict(self.chosen), **own, **parameters}

    def _problem(self, inputs: Values) -> Problem:
        return problem_of(self.declared, {**dict(self.chosen), **inputs})

    def _point(self, inputs: Values, progress: Progress | None, align: str | Sequence[str] = ()) -> ProblemPoint:
        return ProblemPoint.of(self._source, aligned(self._problem(inputs), align), progress)

    def _solver(self, model: Model, progress: Progress | None) -> Solver:
        return self._source.solver(model, progress)


def _loaded_again(target: str, chosen: tuple[tuple[str, int | str], ...], declaration: str) -> Theory:
    """Load an unpickled theory; raise if its declaration has changed."""
    theory = Theory(load_declaration(target), target, chosen)
    if theory.declaration != declaration:
        raise DeclarationError(f"{target} differs from the pickled model: its declaration has changed; load it again")
    return theory
