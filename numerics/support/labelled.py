"""Observables with labels, such as the prediction at each training point, as one series per label."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from numerics.runtime.interface import ObservableOf


def where_defined(
    observables: Iterable[ObservableOf], table: Mapping[str, Any], axis: int = 0
) -> dict[str, np.ndarray]:
    """Return observables as arrays, with NaN at times before all of their fields are defined."""
    arrays = {name: np.array(series, float) for name, series in table.items()}
    for observable in observables:
        if observable.first and observable.name in arrays:
            np.moveaxis(arrays[observable.name], axis, 0)[: observable.first] = np.nan
    return arrays


def with_none(array: np.ndarray) -> Any:
    """Return nested lists with None for NaN."""
    objects = np.asarray(array, float).astype(object)
    objects[np.isnan(np.asarray(array, float))] = None
    return objects.tolist()


SHOWN = 3
"""Number of labels of an observable that are compared and printed; results contain all."""


def single_series(observables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return each observable as an array over time; of a labelled one the first few, as name[0], name[1], ..., or
    name[0,0] along two axes."""
    series_by_name: dict[str, np.ndarray] = {}
    for name, series in observables.items():
        for label in itertools.islice(np.ndindex(*series.shape[1:]), SHOWN):
            series_by_name[f"{name}[{','.join(map(str, label))}]" if label else name] = series[:, *label]
    return series_by_name


def single_draws(name: str, observables: Mapping[str, Any]) -> Any:
    """Return the draws of one such series, seeds x times."""
    if name in observables:
        return observables[name]
    plain, _, label = name.rstrip("]").partition("[")
    return observables[plain][:, :, *map(int, label.split(","))]
