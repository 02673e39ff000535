"""Spectra of trained networks, from checkpoints and from models in memory: a torch module, a JAX pytree or a dict."""

from __future__ import annotations

import difflib
import fnmatch
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from derive.api.theory_files import read_solutions, theory_of
from derive.errors import CheckpointError, DeriveError, ParameterError
from derive.inputs.checkpoints import Entry, flat, load, read_checkpoint, refuse_same_names, torch_entry
from derive.results.spectra import Skipped, Spectra
from derive.support.places import path_of
from derive.support.plain_words import printable
from derive.support.progress import Progress
from derive.support.shapes import fits, texts
from numerics.spectra.changes import Change, change_of
from numerics.spectra.fitting import LAYOUTS, FittedSpectrum, NoSpectrum, analyse, layout_of
from numerics.spectra.theory import TheoryComparison, compare_with_theory


def live_entries(model: Any, what: str) -> tuple[Entry, ...]:
    """Return all arrays of a model in memory, named by their path; what: the argument, for the error."""
    entries = tuple(_entry(printable(name), array) for name, array in _named_arrays(model))
    if not entries:
        raise CheckpointError(
            f"{what} of type {type(model).__name__} contains no arrays; give a file, a torch module, a JAX pytree or a "
            "dict of arrays"
        )
    refuse_same_names(type(model).__name__, entries)
    return entries


def _named_arrays(model: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a torch module, of nested dictionaries in their order, and of JAX pytrees among them."""
    for method in ("state_dict", "named_parameters"):
        if not isinstance(model, type) and callable(getattr(model, method, None)):
            model = dict(getattr(model, method)())
    arrays = []
    for name, part in ((name, _detached(part)) for name, part in flat(model)):
        if _is_array(part):
            arrays.append((name, part))
            continue
        from jax.tree_util import keystr, tree_flatten_with_path

        root = "" if part is model else f"{name}."
        leaves = tree_flatten_with_path(part)[0]
        arrays += [(root + keystr(path, simple=True, separator="."), leaf) for path, leaf in leaves if _is_array(leaf)]
    return arrays


def _detached(value: Any) -> Any:
    """Return the NumPy array of a tensor that has no `dtype`; anything else is unchanged."""
    if _is_array(value) or isinstance(value, type) or not callable(getattr(value, "detach", None)):
        return value
    values = value.detach()
    return np.asarray(values.numpy()) if callable(getattr(values, "numpy", None)) else value


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") and hasattr(value, "dtype")


def _entry(name: str, leaf: Any) -> Entry:
    if hasattr(leaf, "detach"):
        return torch_entry(name, leaf)
    kind = str(leaf.dtype)
    real = kind.startswith(("float", "bfloat", "int", "uint"))

    def read() -> np.ndarray:
        wide = np.float32 if kind.startswith(("float", "bfloat")) and kind != "float64" else np.float64
        return np.asarray(leaf).astype(wide, copy=False)

    return Entry(name, tuple(leaf.shape), kind, read, unusable=None if real else f"type {kind} is not a weight type")


def spectra(
    model: Any,
    after: Any = None,
    *,
    include: str | Sequence[str] = (),
    exclude: str | Sequence[str] = (),
    layout: str = "auto",
    level: float = 1e-3,
    theory: str | Path | None = None,
    layer: str | None = None,
    progress: Progress | None = None,
) -> Spectra:
    """Bulk and outliers of every weight matrix of a network, from a file or from a model in memory.

    Args:
        model: a checkpoint (.npz, .safetensors, PyTorch; nothing in it is executed), a torch module, a JAX pytree
            (Flax, Equinox, Haiku), or a dict of arrays.
        after: the same network later; the spectra are then those of this one, and `changes` describes each matrix.
        include: names of arrays, with * and ? as wildcards, or parts of names.
        exclude: names of arrays to omit, in the same form.
        layout: axes of convolution kernels, "oihw", "hwio" or "auto".
        level: the probability with which noise alone exceeds the threshold for outliers.
        theory: a file with the output of `derive solve --json`, for comparison.
        layer: the solution in that file, if it contains several.
        progress: a function called with a fraction and a text.

    >>> import derive, numpy as np
    >>> s = derive.spectra({"W": np.random.default_rng(0).standard_normal((60, 80))})
    >>> print(s)
    dict: 1 matrix
    W: noise, no outlier
    >>> derive.spectra("weights.npz", include="*.weight").to_frame()  # doctest: +SKIP
    """
    if layout not in LAYOUTS:
        raise ParameterError(f"layout is {' or '.join(LAYOUTS)}, not {layout!r}")
    if not fits(level, Real) or not 1e-9 <= level <= 0.2:
        raise ParameterError(f"level={level!r}: level is a probability from 1e-9 to 0.2")
    patterns = tuple(map(texts, (include, exclude)))
    solved = None
    if theory is not None:
        file_of_theory = path_of(theory, "theory")
        solved = theory_of(read_solutions(file_of_theory), file_of_theory, layer)
    given = [(model, "model"), *([] if after is None else [(after, "after")])]
    read = [_Chosen(*_entries(one, what), patterns[0], patterns[1], layout) for one, what in given]
    now = read[-1]
    fitted, changes = _analysed(now, None if after is None else read[0], level, progress or (lambda share, what: None))
    if not fitted:
        raise DeriveError(now.nothing())
    matrices = tuple(map(_with_another_law, fitted))
    if after is not None:
        now.missing(read[0])
    compared: tuple[TheoryComparison, ...] = ()
    if solved is not None:
        compared = tuple(compare_with_theory(one, solved) for one in matrices)
    known = {one.name: one for one in matrices}
    return Spectra(
        file=now.name,
        level=level,
        matrices=matrices,
        tied=tuple(now.tied.items()),
        skipped=tuple(now.skipped),
        compared=compared,
        before=None if after is None else read[0].name,
        changes=tuple(replace(one, before=_with_another_law(one.before), after=known[one.name]) for one in changes),
    )


def _analysed(
    now: _Chosen, before: _Chosen | None, level: float, progress: Progress
) -> tuple[list[FittedSpectrum], list[Change]]:
    """Return the spectra of a checkpoint, and the changes of each matrix since an earlier one."""
    fitted: list[FittedSpectrum] = []
    changes: list[Change] = []
    then = {} if before is None else {entry.name: entry for entry in before.usable}
    for done, entry in enumerate(now.usable):
        progress(done / len(now.usable), entry.name)
        array = now.numbers(entry)
        one = None if array is None or now.is_tied(entry, array) else now.spectrum(entry, array, level)
        if array is None or one is None:
            continue
        fitted.append(one)
        if before is not None and entry.name in then:
            old = before.numbers(then[entry.name])
            earlier = None if old is None else before.spectrum(then[entry.name], old, level)
            if old is not None and earlier is not None:
                changes.append(change_of(earlier, one, old, array))
    return fitted, changes


def _with_another_law(one: FittedSpectrum) -> FittedSpectrum:
    """Return the spectrum with a second law fitted if Marchenko-Pastur does not describe it."""
    if not one.wants_another_law:
        return one
    from numerics.spectra.extensive import with_another_law  # brings JAX, which most matrices do not need

    return with_another_law(one)


def _entries(model: Any, what: str) -> tuple[str, tuple[Entry, ...]]:
    """Return the name of a file or the type of a model in memory, and its arrays."""
    if isinstance(model, (str, os.PathLike)):
        path = path_of(model, what)
        return str(path), read_checkpoint(path)
    return type(model).__name__, live_entries(model, what)


class _Chosen:
    """The selected arrays of a network; those without a spectrum are set aside."""

    def __init__(
        self, name: str, entries: tuple[Entry, ...], include: tuple[str, ...], exclude: tuple[str, ...], layout: str
    ) -> None:
        self.name, self.layout = name, layout
        self.chosen_by_name = bool(include or exclude)
        self.skipped: list[Skipped] = []
        self.tied: dict[str, str] = {}
        self.usable: list[Entry] = []
        self._seen: dict[tuple[tuple[int, ...], str, bytes], str] = {}
        names = [entry.name for entry in entries]
        wanted = _fitting(name, names, include, "include") if include else set(names)
        wanted -= _fitting(name, names, exclude, "exclude")
        for entry in entries:
            if entry.name in wanted:
                self._sort(entry)
        shapes = [(entry.shape, entry.kind) for entry in self.usable]
        self._twice: Mapping[tuple[tuple[int, ...], str], bool] = {shape: shapes.count(shape) > 1 for shape in shapes}

    def _sort(self, entry: Entry) -> None:
        try:
            if entry.broken is not None:
                raise NoSpectrum(entry.broken, damaged=True)
            if entry.unusable is not None:
                raise NoSpectrum(entry.unusable)
            layout_of(entry.shape, self.layout)
        except NoSpectrum as reason:
            self._skip(entry, reason)
        else:
            self.usable.append(entry)

    def _skip(self, entry: Entry, reason: NoSpectrum) -> None:
        self.skipped.append(Skipped(entry.name, entry.shape, str(reason), reason.damaged))

    def numbers(self, entry: Entry) -> np.ndarray | None:
        """Return the array; record it and return None if it is damaged."""
        try:
            return load(self.name, entry)
        except CheckpointError as error:
            reason = str(error).removeprefix(f"{self.name}: ").removeprefix(f"{entry.name} ")
            self.skipped.append(Skipped(entry.name, entry.shape, reason, damaged=True))
            return None

    def is_tied(self, entry: Entry, array: np.ndarray) -> bool:
        """Return whether the array equals an earlier one bit for bit, and record it."""
        if not self._twice[entry.shape, entry.kind]:
            return False
        content = hashlib.blake2b(np.ascontiguousarray(array).view(np.uint8).data).digest()
        first = self._seen.setdefault((entry.shape, entry.kind, content), entry.name)
        if first == entry.name or not array.any():
            return False
        self.tied[entry.name] = first
        return True

    def spectrum(self, entry: Entry, array: np.ndarray, level: float) -> FittedSpectrum | None:
        try:
            return analyse(entry.name, array, self.layout, level)
        except NoSpectrum as reason:
            self._skip(entry, reason)
            return None

    def missing(self, before: _Chosen) -> None:
        """Record the matrices that exist in only one of two checkpoints, or were damaged in the earlier one."""
        mine, theirs = ({entry.name for entry in one.usable} for one in (self, before))
        for entry in self.usable:
            if entry.name not in theirs:
                self.skipped.append(Skipped(entry.name, entry.shape, f"not in {before.name}: no change to show"))
        for entry in before.usable:
            if entry.name not in mine:
                self.skipped.append(Skipped(entry.name, entry.shape, f"only in {before.name}"))
        for one in before.skipped:
            if one.damaged:
                self.skipped.append(replace(one, reason=f"in {before.name}: {one.reason}"))

    def nothing(self) -> str:
        """Return the error message for a file that contains no spectrum."""
        one = next((one for one in self.skipped if one.damaged), self.skipped[0] if self.skipped else None)
        where = "those chosen" if self.chosen_by_name else "its arrays"
        if one is None:
            return f"{self.name} has no array left among {where}; exclude fewer"
        others = f", and {len(self.skipped) - 1} more" if len(self.skipped) > 1 else ""
        return (
            f"{self.name} has no matrix with a bulk among {where} ({one.name}: {one.reason}{others}); give a file with "
            "weight matrices"
        )


def _fitting(source: str, names: Sequence[str], patterns: Sequence[str], word: str) -> set[str]:
    """Return the names that match any pattern, as a whole, by wildcards, or in part; each pattern must match at least
    one."""
    chosen: set[str] = set()
    for pattern in patterns:
        fitting = [name for name in names if name == pattern]
        fitting = fitting or [name for name in names if fnmatch.fnmatchcase(name, pattern)]
        fitting = fitting or [name for name in names if pattern in name]
        if not fitting:
            near = difflib.get_close_matches(pattern, names, n=3, cutoff=0.3) or list(names[:3])
            more = f" and {len(names) - len(near)} more" if len(names) > len(near) else ""
            raise ParameterError(f"{word} {pattern}: {source} has no such array; it has {', '.join(near)}{more}")
        chosen.update(fitting)
    return chosen
