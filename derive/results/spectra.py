"""Spectra of the weight matrices of a trained network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from derive.errors import ParameterError
from derive.support.extras import optional
from numerics.spectra.changes import Change
from numerics.spectra.fitting import EXTENSIVE, FITS, MATRIX, NOT, FittedSpectrum
from numerics.spectra.kinds import by_kind, kind_and_depth
from numerics.spectra.theory import TheoryComparison
from numerics.support.formatting import counted, html_table, listed, shown_number

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Skipped:
    """An array for which there is no spectrum, and the reason; `damaged` if it should have one."""

    name: str
    shape: tuple[int, ...]
    reason: str
    damaged: bool = False


@dataclass(frozen=True)
class Spectra:
    """The weight matrices of a network, each as bulk and outliers, and for two checkpoints the changes.

    `file` is the file, or the type of a model in memory. `s["fc.weight"]` is the spectrum of one matrix. `tied` are
    names of arrays that equal another, with its name; `skipped` are arrays without a spectrum, with the reason.

    >>> import derive
    >>> s = derive.spectra("weights.npz")  # doctest: +SKIP
    >>> s.kinds, s["fc.weight"].outliers  # doctest: +SKIP
    """

    file: str
    level: float
    matrices: tuple[FittedSpectrum, ...]
    tied: tuple[tuple[str, str], ...]
    skipped: tuple[Skipped, ...]
    compared: tuple[TheoryComparison, ...] = ()
    before: str | None = None
    changes: tuple[Change, ...] = ()

    def __getitem__(self, name: str) -> FittedSpectrum:
        for one in self.matrices:
            if one.name == name:
                return one
        raise ParameterError(f"{self.file} has no matrix {name!r}; it has {listed(one.name for one in self.matrices)}")

    def __iter__(self) -> Iterator[FittedSpectrum]:
        return iter(self.matrices)

    def __len__(self) -> int:
        return len(self.matrices)

    @property
    def kinds(self) -> dict[str, tuple[FittedSpectrum, ...]]:
        """Groups of matrices whose names differ only by a number, such as `h.*.mlp.weight`, in order of depth."""
        known = {one.name: one for one in self.matrices}
        return {kind: tuple(known[name] for name in names) for kind, names in by_kind(known).items()}

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the keys that `derive spectrum --json` prints."""
        compared = {one.name: _compared(c) for one, c in zip(self.matrices, self.compared, strict=False)}
        found: dict[str, Any] = {
            "file": self.file,
            "level": self.level,
            "matrices": [
                {**_matrix(one), **({"theory": compared[one.name]} if one.name in compared else {})}
                for one in self.matrices
            ],
            "tied": [{"name": name, "same_as": other} for name, other in self.tied],
            "left_out": [asdict(one) for one in self.skipped],
        }
        if self.before is not None:
            found |= {"before": self.before, "changes": [_changed(one) for one in self.changes]}
        return found

    def to_frame(self) -> pandas.DataFrame:
        """One row per matrix: sizes, scale, edges, law, number beyond the edges, localisation, tail exponent, verdict
        in words.

        participation_rows, participation_columns: participation ratios of the vectors of the largest singular value;
        tail_exponent: exponent of the fitted power law; trust it only if tail_doubts is empty.
        """
        pandas = optional("pandas")

        rows = []
        for one in self.matrices:
            kind, depth = kind_and_depth(one.name)
            fit = one.extensive
            rows.append(
                {
                    "kind": kind,
                    "depth": depth,
                    "rows": one.rows,
                    "columns": one.columns,
                    "scale": one.scale,
                    "low_edge": one.singular_edges[0],
                    "high_edge": one.singular_edges[1],
                    "picture": one.picture,
                    "ks_distance": one.distance,
                    "ks_allowed": one.distance_allowed,
                    "beyond": len(one.outliers),
                    "top": one.top,
                    "participation_rows": one.vectors[0].left.ratio,
                    "participation_rows_error": one.vectors[0].left.error,
                    "participation_columns": one.vectors[0].right.ratio,
                    "participation_columns_error": one.vectors[0].right.error,
                    "top_doubts": "; ".join(one.vectors[0].doubts),
                    "tail_exponent": None if one.tail is None else one.tail.exponent,
                    "tail_error": None if one.tail is None else one.tail.error,
                    "tail_doubts": "; ".join(one.tail_doubts),
                    "extensive_distance": None if fit is None else fit.distance,
                    "chi": None if fit is None else fit.chi,
                    "gamma": None if fit is None else fit.gamma,
                    "verdict": verdict_of(one),
                }
            )
        frame = pandas.DataFrame(rows, index=pandas.Index([one.name for one in self.matrices], name="matrix"))
        if self.changes:
            changed = {one.name: one for one in self.changes}
            for column in ("moved", "stable_rank", "distance"):
                frame[f"change_{column}"] = [getattr(changed.get(name), column, None) for name in frame.index]
        return frame

    def plot(self) -> Figure:
        """Plot each matrix with its law and outliers, or all of them over depth if there are many."""
        from numerics.plots.spectra import draw_spectra

        return draw_spectra(self.matrices, self.compared, self.title, self.changes)

    @property
    def title(self) -> str:
        """The names of the checkpoints, and of the theory if there is one."""
        named = self.file if self.before is None else f"{self.file} after {self.before}"
        return named if not self.compared else f"{named}, theory {self.compared[0].theory.name}"

    def _rows(self) -> list[tuple[str, str]]:
        return [(one.name, verdict_of(one)) for one in self.matrices]

    def __str__(self) -> str:
        lines = [f"{name}: {words}" for name, words in self._rows()]
        left = [f"skipped {one.name}: {one.reason}" for one in self.skipped if one.damaged]
        return "\n".join([f"{self.title}: {counted(len(self), 'matrix', 'matrices')}", *lines, *left])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(self.title, self._rows())


def verdict_of(one: FittedSpectrum) -> str:
    """Return a sentence about a matrix: its bulk, its outliers, their localisation, and its tail."""
    above = sum(outlier.side == "above" for outlier in one.outliers)
    below = len(one.outliers) - above
    if one.picture == EXTENSIVE:
        words = "bulk of a gradient step with extensively many outputs"
    elif one.verdict == NOT and one.tail is not None and not one.tail_doubts:
        words = f"power-law tail, exponent {shown_number(one.tail.exponent, one.tail.error)}"
    elif one.verdict == NOT:
        words = "neither noise, nor a gradient step with many outputs, nor a power law"
    else:
        noise = "noise" if one.verdict == FITS else "nearly noise"
        beyond = [
            f"{counted(number, 'outlier')} {side}" for number, side in ((above, "above"), (below, "below")) if number
        ]
        words = f"{noise}, and {' and '.join(beyond)} the bulk" if beyond else f"{noise}, no outlier"
    places = [
        f"{shown_number(side.ratio, side.error)} of {side.size} {name}"
        for side, name in ((one.vectors[0].left, "rows"), (one.vectors[0].right, "columns"))
        if side.localised
    ]
    where = f"; the vectors of the largest singular value extend over about {' and '.join(places)}" if places else ""
    return words + where


def notes_of(one: FittedSpectrum) -> list[str]:
    """Return caveats about the numbers of a matrix."""
    notes = []
    if one.layout != MATRIX:
        notes.append(f"kernel {' x '.join(map(str, one.shape))}, read as {one.layout}, unfolded")
    if one.left_out:
        notes.append(f"{one.left_out} rows and columns of zeros omitted")
    if one.verdict == NOT:
        notes.append(
            f"the bulk is not Marchenko-Pastur (KS {one.distance:.2g}, noise has at most {one.distance_allowed:.2g}): "
            "scale and edges describe it poorly, and the values beyond form a tail rather than outliers"
        )
    elif one.verdict != FITS:
        notes.append(
            f"the bulk is only near Marchenko-Pastur (KS {one.distance:.2g}, noise has at most "
            f"{one.distance_allowed:.2g}): no p-values; outliers are those {one.threshold:.3g} units beyond the edge"
        )
    fit = one.extensive
    if fit is not None:
        notes.append(
            f"the law of a step with extensively many outputs {'fits' if fit.fits else 'does not fit'} (KS "
            f"{fit.distance:.2g}, noise has about {fit.distance_allowed:.2g}; chi {fit.chi:.3g}, "
            f"gamma {fit.gamma:.3g}, edge {fit.edges[1]:.4g}, {fit.beyond} beyond it)"
        )
    if one.largest_entry > one.entry_threshold:
        notes.append(
            f"the largest entry is {one.largest_entry:.3g} times the scale, and a single entry above "
            f"{one.entry_threshold:.3g} can create an outlier"
        )
    if one.tail is not None:
        doubts = f"not reliable: {', and '.join(one.tail_doubts)}" if one.tail_doubts else "believed, although "
        doubts += "" if one.tail_doubts else "a log-normal tail is rarely excluded and eigenvalues repel each other"
        notes.append(
            f"power law of the {one.tail.count} largest eigenvalues: exponent "
            f"{shown_number(one.tail.exponent, one.tail.error)}, {doubts}"
        )
    return notes


def _matrix(one: FittedSpectrum) -> dict[str, Any]:
    kind, depth = kind_and_depth(one.name)
    fit = one.extensive
    return {
        "name": one.name,
        "kind": kind,
        "depth": depth,
        "shape": one.shape,
        "layout": one.layout,
        "rows": one.rows,
        "columns": one.columns,
        "aspect_ratio": one.aspect_ratio,
        "zero_rows_and_columns": one.left_out,
        "scale": one.scale,
        "entry_deviation": one.entry_deviation,
        "singular_edges": one.singular_edges,
        "eigenvalue_edges": one.eigenvalue_edges,
        "tracy_widom_scale": one.tracy_widom_scale,
        "threshold": one.threshold,
        "picture": one.picture,
        "bulk": one.verdict,
        "ks_distance": one.distance,
        "ks_allowed": one.distance_allowed,
        "misfit": one.misfit,
        "largest_entry": one.largest_entry,
        "entry_threshold": one.entry_threshold,
        "top": one.top,
        "notes": notes_of(one),
        "verdict": verdict_of(one),
        "outliers": [asdict(outlier) for outlier in one.outliers],
        "vectors": [asdict(vectors) for vectors in one.vectors],
        "tail": None if one.tail is None else {**asdict(one.tail), "doubts": one.tail_doubts},
        "extensive": None
        if fit is None
        else {
            "scale": fit.scale,
            "chi": fit.chi,
            "gamma": fit.gamma,
            "singular_edges": fit.edges,
            "beyond": fit.beyond,
            "ks_distance": fit.distance,
            "ks_allowed": fit.distance_allowed,
            "fits": fit.fits,
        },
    }


def _compared(comparison: TheoryComparison) -> dict[str, Any]:
    return {
        "name": comparison.theory.name,
        "factor": comparison.factor,
        "bulk_edges": comparison.theory.edges,
        "matrix_edges": comparison.edges,
        "pairs": [asdict(pair) for pair in comparison.pairs],
        "agrees": comparison.agrees,
        "verdict": comparison.verdict,
    }


def _changed(change: Change) -> dict[str, Any]:
    both = (change.before, change.after)
    return {
        "name": change.name,
        "moved": change.moved,
        "stable_rank": change.stable_rank,
        "ks_distance": change.distance,
        "scale": [one.scale for one in both],
        "upper_edge": [one.singular_edges[1] for one in both],
        "beyond": [len(one.outliers) for one in both],
        "top": [one.top for one in both],
        "picture": [one.picture for one in both],
    }
