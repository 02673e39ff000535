"""Models in which a site answers to itself through a nonlinear law, by quadrature over all the noises of one site.

For a few steps a site has a few noises, so that its averages are integrals over a grid with one axis per noise. NumPy
alone, and derivatives written out; nothing is sampled.
"""

from __future__ import annotations

import numpy as np


def normal_grid(count: int, reach: float = 6.5) -> tuple[np.ndarray, np.ndarray]:
    """The trapezoidal rule for a standard normal."""
    z = np.linspace(-reach, reach, count)
    w = np.exp(-z * z / 2)
    return z, w / w.sum()


class Grid:
    """Functions of noises z0, z1, ... as arrays with one axis per noise, in that order."""

    def __init__(self, count: int):
        self.z, self.w = normal_grid(count)

    def noise(self, axis: int) -> np.ndarray:
        return self.z.reshape((-1,) + (1,) * 0) if axis == 0 else self.z.reshape((1,) * axis + (-1,))

    def mean(self, value: np.ndarray) -> float:
        """The average over all axes; an axis of length one is one the value does not depend on."""
        for _ in range(value.ndim):
            value = np.tensordot(self.w, value, axes=(0, 0)) if len(value) > 1 else value[0]
        return float(value)


def wider(value: np.ndarray, axes: int) -> np.ndarray:
    """A function of the first noises as one of more of them."""
    return value.reshape(value.shape + (1,) * (axes - value.ndim))


def partly_symmetric_network(g: float, k: float, steps: int, count: int = 40) -> dict[str, np.ndarray]:
    """x(t+1) = g (J + k J^T) tanh(x(t)) / sqrt(N), x(0) normal: <x(t) x(s)> and <r(t) r(s)> with r = tanh(x).

    x(t+1) = xi(t) + 2 k g^2 sum_{s<t} rho(t, s) r(s), where <xi(t) xi(s)> = g^2 (1 + k^2) <r(t) r(s)> and rho(t, s) is
    the mean derivative of r(t) by xi(s).
    """
    grid = Grid(count)
    x, r = [grid.noise(0)], [np.tanh(grid.noise(0))]
    slopes: list[dict[int, np.ndarray]] = [{}]
    rr, xx, rho = (np.zeros((steps + 1, steps + 1)) for _ in range(3))
    rr[0, 0], xx[0, 0] = grid.mean(r[0] ** 2), 1.0
    for t in range(steps):
        axes = t + 2
        factor = np.linalg.cholesky(g**2 * (1 + k**2) * rr[: t + 1, : t + 1])
        now = sum(factor[t, s] * wider(grid.noise(s + 1), axes) for s in range(t + 1))
        here = {t: np.ones((1,) * axes)}
        for s in range(t):
            push = 2 * k * g**2 * rho[t, s]
            now = now + push * wider(r[s], axes)
            for q, slope in slopes[s].items():
                here[q] = here.get(q, 0.0) + push * wider((1 - r[s] ** 2) * slope, axes)
        x.append(now)
        r.append(np.tanh(now))
        slopes.append(here)
        for s in range(t + 2):
            rr[t + 1, s] = rr[s, t + 1] = grid.mean(r[t + 1] * wider(r[s], axes))
            xx[t + 1, s] = xx[s, t + 1] = grid.mean(now * wider(x[s], axes))
        for q, slope in here.items():
            rho[t + 1, q] = grid.mean((1 - r[t + 1] ** 2) * slope)
    return {"xx": xx, "rr": rr, "rho": rho}


def batch_perceptron(eta: float, alpha: float, count: int = 40) -> dict[str, np.ndarray]:
    """Two steps of s(t+1) = s(t) + eta/alpha X^T d(t) / sqrt(D) on one set X of alpha D rows, with l = X s / sqrt(D),
    y = X v / sqrt(D), d = (tanh(y) - tanh(l)) (1 - tanh(l)^2), s(0) and v independent and normal: the mean of
    (tanh(y) - tanh(l))^2, <s s> and <s v> at t = 0, 1, 2.

    X^T d(t)/(alpha sqrt(D)) = e(t) + b(t) v + sum_{r<=t} a(t, r) s(r), with <e(t) e(r)> = <d(t) d(r)>/alpha, b(t) the
    mean derivative of d(t) by the noise of y, a(t, r) by that of l(r). On a row of X, l(t) is its noise, with the
    covariance of s, plus (eta/alpha) times d(r), r < t: the response of s(t) to e(r) is eta at every later time, but
    for what a(t, r) feeds back.
    """
    grid = Grid(count)
    y, l0 = grid.noise(0), grid.noise(1)
    loss, norm, overlap = np.zeros(3), np.zeros(3), np.zeros(3)
    norm[0] = 1.0
    f0, fy = np.tanh(l0), np.tanh(y).reshape(-1, 1)
    gate0 = 1 - f0**2
    d0 = (fy - f0) * gate0
    loss[0] = grid.mean((fy - f0) ** 2)
    a00 = grid.mean(-(gate0**2) - 2 * (fy - f0) * f0 * gate0)
    b0 = grid.mean((1 - fy**2) * gate0)
    c00 = grid.mean(d0**2) / alpha
    # s(1) = (1 + eta a00) s(0) + eta b0 v + eta e(0)
    keep, push = 1 + eta * a00, eta * b0
    norm[1], overlap[1] = keep**2 + push**2 + eta**2 * c00, push
    # noise of l(1): keep * l(0) + push * y + eta sqrt(c00) z2; response of s(1) to e(0) is eta
    d0 = d0[..., None]
    own = np.sqrt(c00) * eta
    l1 = keep * l0[..., None] + push * y.reshape(-1, 1, 1) + own * grid.noise(2) + eta / alpha * d0
    f1 = np.tanh(l1)
    gate1 = 1 - f1**2
    target = fy[..., None]
    d1 = (target - f1) * gate1
    loss[1] = grid.mean((target - f1) ** 2)
    by_l1 = -(gate1**2) - 2 * (target - f1) * f1 * gate1
    d0_by_l0 = (-(gate0**2) - 2 * (fy - f0) * f0 * gate0)[..., None]
    d0_by_y = ((1 - fy**2) * gate0)[..., None]
    a11 = grid.mean(by_l1 + 0 * d0)
    a10 = grid.mean(by_l1 * eta / alpha * d0_by_l0)
    b1 = grid.mean((1 - target**2) * gate1 + by_l1 * eta / alpha * d0_by_y)
    c11, c10 = grid.mean(d1**2) / alpha, grid.mean(d1 * d0) / alpha
    # s(2) = (1 + eta a11) s(1) + eta a10 s(0) + eta b1 v + eta e(1), with s(1) in terms of s(0), v and e(0)
    on_start = (1 + eta * a11) * keep + eta * a10
    on_teacher = (1 + eta * a11) * push + eta * b1
    on_noise = (1 + eta * a11) * eta
    norm[2] = on_start**2 + on_teacher**2 + on_noise**2 * c00 + 2 * on_noise * eta * c10 + eta**2 * c11
    overlap[2] = on_teacher
    return {"loss": loss[:2], "norm": norm, "overlap": overlap}
