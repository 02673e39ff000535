"""Fit of the bulk after one gradient step with extensively many outputs to a trained matrix.

The law is that of W = scale (W0 + gamma / sqrt(C) A B) with independent Gaussian entries, C = chi x columns, from the
built setting `extensive_two_layer`: it has three parameters, while Marchenko-Pastur has one. They are fitted to the
resolvent of the matrix at points above the real axis, where the curve of the law is a polynomial. The fit is judged by
the Kolmogorov-Smirnov distance between the distributions.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from scipy.optimize import least_squares

from derive.errors import NumericalError
from numerics.bulk.support import law_of
from numerics.modules import Solver, load_built
from numerics.runtime.point import Point
from numerics.spectra.extensive_law import ExtensiveFit
from numerics.spectra.fitting import TAIL, FittedSpectrum, distance_allowed

SETTING = "extensive_two_layer"
STARTS = [(chi, gamma) for chi in (0.1, 0.5, 2.0) for gamma in (0.5, 1.5, 5.0)]
HEIGHT = 0.2
"""Ratio of imaginary to real part of the points at which resolvents are compared; smaller resolves more shape."""
MOST_BEYOND = TAIL
"""Largest fraction of singular values beyond the edge of the fitted law."""


def with_another_law(one: FittedSpectrum) -> FittedSpectrum:
    """Return the spectrum with this law attached."""
    return replace(one, extensive=fit_extensive(one))


def fit_extensive(one: FittedSpectrum) -> ExtensiveFit | None:
    """Return the law of the setting that fits best; None if the setting is not built, or has no such bulk."""
    solver = load_built(SETTING)
    if solver is None:
        return None
    squares = np.sort(one.singular_values**2 * one.columns)
    count, beyond, seen = len(squares), 0, set()
    fit = None
    for _ in range(3):
        seen.add(beyond)
        try:
            fit = _fit(solver, squares[: count - beyond], one.rows - beyond, one.columns - beyond, one.columns)
        except NumericalError:
            return None
        top = fit.edges[1] ** 2 * one.columns * (1.0 + 4.0 * count ** (-2.0 / 3.0))
        more = int((squares > top).sum())
        fit = replace(fit, beyond=max(beyond, more), few_beyond=more <= MOST_BEYOND * count)
        beyond = min(more, int(MOST_BEYOND * count))
        if beyond in seen:
            break
    return fit


def _fit(solver: Solver, squares: np.ndarray, rows: int, columns: int, stored: int) -> ExtensiveFit:
    eigenvalues, nu = squares / rows, rows / columns
    mean = float(eigenvalues.sum() / columns)
    spread, chi, gamma = _matched(solver, eigenvalues / mean, columns, nu)
    variance = spread * mean
    law = law_of(solver.branch({"nu": nu, "chi": chi, "gamma": gamma}))
    here = eigenvalues / variance
    zero = sum(weight for at, weight in law.atoms if at == 0.0)
    share = (law.cumulative(here) - zero) / (1.0 - zero)
    steps = np.arange(len(here) + 1) / len(here)
    distance = float(max(np.abs(share - steps[1:]).max(), np.abs(share - steps[:-1]).max()))
    low, high = (math.sqrt(edge * variance * rows / stored) for edge in (max(law.edges[0][0], 0.0), law.edges[-1][1]))
    return ExtensiveFit(
        scale=math.sqrt(variance),
        chi=chi,
        gamma=gamma,
        edges=(low, high),
        beyond=0,
        few_beyond=True,
        distance=distance,
        distance_allowed=distance_allowed(len(here)),
        unit=stored / rows / variance,
        law=law,
    )


def _matched(solver: Solver, eigenvalues: np.ndarray, columns: int, nu: float) -> tuple[float, float, float]:
    """Return the variance of the entries, chi and gamma of the best-fitting resolvent, for eigenvalues of mean one."""
    real = np.quantile(eigenvalues, np.linspace(0.02, 1.0, 30))
    real = np.append(np.maximum(real, 1e-6), 1.3 * real[-1])
    z = real * (1.0 + HEIGHT * 1j)
    resolvent = ((1.0 / (z[:, None] - eigenvalues)).sum(axis=1) + (columns - len(eigenvalues)) / z) / columns

    curve = solver.matrices[0].bulk.curve
    assert curve is not None

    def off(logarithms: np.ndarray) -> np.ndarray:
        variance, chi, gamma = np.exp(logarithms)
        table = np.array(curve.at(Point(nu=nu, chi=chi, gamma=gamma)), float)
        rows = table @ (z / variance) ** np.arange(table.shape[1])[:, None]
        g = resolvent * variance
        for _ in range(3):
            value = slope = np.zeros_like(g)
            for row in rows[::-1]:
                slope = slope * g + value
                value = value * g + row
            g = g - value / slope
        gap = (g / variance - resolvent) * np.abs(z)
        gap = np.where(np.isfinite(gap), gap, 10.0)
        return np.concatenate([gap.real, gap.imag]).clip(-10.0, 10.0)

    limits = np.log([(1e-3, 10.0), (1e-3, 100.0), (0.03, 100.0)]).T
    with np.errstate(all="ignore"):
        tried = [
            least_squares(off, np.log([1.0 / (1.0 + gamma**2), chi, gamma]), bounds=tuple(limits), max_nfev=80)
            for chi, gamma in STARTS
        ]
    variance, chi, gamma = np.exp(min(tried, key=lambda one: one.cost).x)
    return float(variance), float(chi), float(gamma)
