"""Exact recursions of nonlinear models that nothing in the project was written for, with NumPy and SciPy alone.

Where fields are Gaussian a recursion runs on means and covariances, with closed forms or integrals of its own. Where a
site remembers itself through a nonlinear law, a few steps are integrated over all noises of a site
(`sampled_by_hand`). Approximate message passing has its state evolution, which has no memory at all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from sampled_by_hand import Grid, wider
from scipy.special import erf, ndtr

Pair = Callable[..., float]
"""<f(x) f(y)> of two Gaussian variables, from their means, variances and covariance."""


def panels(low: float, high: float, count: int, order: int = 24) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes on so many panels."""
    x, w = np.polynomial.legendre.leggauss(order)
    edges = np.linspace(low, high, count + 1)
    half = np.diff(edges)[:, None] / 2
    return ((edges[:-1, None] + half) + half * x).ravel(), (half * w).ravel()


def density(z: np.ndarray) -> np.ndarray:
    return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


# -- pairs of laws


def relu_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    """<max(x, 0) max(y, 0)>: the inner mean in closed form, the outer one over x > 0."""
    spread = math.sqrt(vx)
    z, w = panels(max(-mx / spread, -12.0), 12.0, 24)
    x = mx + spread * z
    mean, rest = my + c / vx * (x - mx), max(vy - c * c / vx, 0.0)
    if rest > 1e-12 * vy:
        u = mean / math.sqrt(rest)
        inner = mean * ndtr(u) + math.sqrt(rest) * density(u)
    else:
        inner = np.maximum(mean, 0.0)
    return float(np.sum(w * density(z) * x * inner))


def erf_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    assert mx == my == 0
    return 2 / math.pi * math.asin(2 * c / math.sqrt((1 + 2 * vx) * (1 + 2 * vy)))


def sin_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    apart, sum_ = math.exp(-(vx + vy - 2 * c) / 2), math.exp(-(vx + vy + 2 * c) / 2)
    return (apart * math.cos(mx - my) - sum_ * math.cos(mx + my)) / 2


def cubic_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    """f(x) = x - x^3 / 9."""
    assert mx == my == 0
    return c - (3 * c * vy + 3 * c * vx) / 9 + (9 * c * vx * vy + 6 * c**3) / 81


def abs_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    assert mx == my == 0
    size = math.sqrt(vx * vy)
    return 2 / math.pi * (math.sqrt(max(vx * vy - c * c, 0.0)) + c * math.asin(max(-1.0, min(1.0, c / size))))


def bump_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    """f(x) = exp(-x^2 / 2)."""
    assert mx == my == 0
    return 1 / math.sqrt((1 + vx) * (1 + vy) - c * c)


def rectified(mean: np.ndarray, spread: float) -> np.ndarray:
    """<max(y, 0)> of normal y."""
    u = mean / spread
    return mean * ndtr(u) + spread * density(u)


def clipped(mean: np.ndarray, spread: float) -> np.ndarray:
    """<clip(y, -1, 1)> of normal y."""
    return rectified(mean + 1, spread) - rectified(mean - 1, spread) - 1


def clip_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    """f(x) = clip(x, -1, 1): the inner mean in closed form, the outer one over three pieces."""
    spread, rest = math.sqrt(vx), vy - c * c / vx
    ends = [-12.0, *(min(12.0, max(-12.0, (x - mx) / spread)) for x in (-1.0, 1.0)), 12.0]
    found = 0.0
    for low, high in zip(ends, ends[1:], strict=False):
        z, w = panels(low, high, 12)
        x = np.clip(mx + spread * z, -1, 1)
        inner = clipped(my + c / spread * z, math.sqrt(rest)) if rest > 1e-12 * vy else x
        found += float(np.sum(w * density(z) * x * inner))
    return found


def sin_clip_pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
    """<sin(x) clip(y, -1, 1)>: the mean of the sine given y is a sine."""
    spread, rest = math.sqrt(vy), max(vx - c * c / vy, 0.0)
    ends = [-12.0, *(min(12.0, max(-12.0, (y - my) / spread)) for y in (-1.0, 1.0)), 12.0]
    found = 0.0
    for low, high in zip(ends, ends[1:], strict=False):
        z, w = panels(low, high, 12)
        inner = np.sin(mx + c / spread * z) * math.exp(-rest / 2)
        found += float(np.sum(w * density(z) * np.clip(my + spread * z, -1, 1) * inner))
    return found


def smooth_pair(f: Callable, count: int = 10) -> Pair:
    """By Gauss-Legendre in the plane."""
    z, w = panels(-9.0, 9.0, count)
    w = w * density(z)

    def pair(mx: float, my: float, vx: float, vy: float, c: float) -> float:
        x = f(mx + math.sqrt(vx) * z)
        slope, rest = (c / math.sqrt(vx), math.sqrt(max(vy - c * c / vx, 0.0))) if vx else (0.0, math.sqrt(vy))
        y = f(my + slope * z[:, None] + rest * z[None, :])
        return float((w * x) @ y @ w)

    return pair


# -- Gaussian fields


def populations(
    steps: int,
    keep: float,
    start: Sequence[Sequence[float]],
    drive: Callable[[int], Sequence[Sequence[float]]],
    shift: Callable[[int], Sequence[float]],
    gain: Callable[[int, np.ndarray], np.ndarray],
    pair: Pair,
    noise: float = 0.0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x_p(t+1) = keep x_p(t) + sum_k drive_pk(t) u_k + shift_p(t) + sum_q gain_pq(t) xi_pq(t) + noise n_p(t), where
    <xi_pq(t) xi_pq(s)> = <f(x_q(t)) f(x_q(s))> and u_k, n are normal; x_p(0) = sum_k start_pk u_k.

    Means m[t, p], covariances c[t, p, s, p'] and <f f> as k[p, t, s]. gain is told <f_q(t)^2> of all populations.
    """
    parts, fixed = len(start), len(start[0])
    count = steps + 1
    names = [("u", k) for k in range(fixed)]
    names += [("xi", p, q, t) for p, q, t in product(range(parts), range(parts), range(count))]
    names += [("n", p, t) for p, t in product(range(parts), range(count))]
    place = {name: k for k, name in enumerate(names)}
    size = np.eye(len(names))
    rows = np.zeros((count, parts, len(names)))
    m, k = np.zeros((count, parts)), np.zeros((parts, count, count))
    rows[0, :, :fixed] = start
    for t in range(count):
        now = rows[: t + 1].reshape(-1, len(names))
        c = (now @ size @ now.T).reshape(t + 1, parts, t + 1, parts)
        for q, s in product(range(parts), range(t + 1)):
            k[q, t, s] = k[q, s, t] = pair(m[t, q], m[s, q], c[t, q, t, q], c[s, q, s, q], c[t, q, s, q])
            for p in range(parts):
                one, two = place["xi", p, q, t], place["xi", p, q, s]
                size[one, two] = size[two, one] = k[q, t, s]
        if t == steps:
            return m, c, k
        rows[t + 1] = keep * rows[t]
        rows[t + 1, :, :fixed] += drive(t)
        m[t + 1] = keep * m[t] + shift(t)
        factor = gain(t, k[:, t, t])
        for p in range(parts):
            rows[t + 1, p, place["n", p, t]] += noise
            for q in range(parts):
                rows[t + 1, p, place["xi", p, q, t]] += factor[p, q]
    raise AssertionError


def excitation_and_inhibition(g: float, b: float, steps: int) -> dict[str, list[float]]:
    """x(t+1) = b x + g J erf(x) - 2 L erf(y), y(t+1) = b y + 3/2 S erf(x) - R erf(y), every matrix over the root of its
    columns, x(0) = w, y(0) = S w. S meets w and erf(x) alike, so that <w erf(x(t))> joins its noises."""
    count = steps + 1
    names = ["w", *((kind, t) for kind in "JLR" for t in range(count)), *(("S", t) for t in range(-1, count))]
    place = {name: k for k, name in enumerate(names)}
    size = np.eye(len(names))
    x, y = np.zeros((count, len(names))), np.zeros((count, len(names)))
    x[0, place["w"]] = y[0, place["S", -1]] = 1
    found: dict[str, list[float]] = {"square": [], "late": [], "active": [], "other": []}
    for t in range(count):
        for rows, kinds in ((x, "JS"), (y, "LR")):
            for s in range(t + 1):
                c = rows[[t, s]] @ size @ rows[[t, s]].T
                value = erf_pair(0.0, 0.0, c[0, 0], c[1, 1], c[0, 1])
                for kind in kinds:
                    one, two = place[kind, t], place[kind, s]
                    size[one, two] = size[two, one] = value
        variance = x[t] @ size @ x[t]
        slope = 2 / math.sqrt(math.pi * (1 + 2 * variance))
        one, two = place["S", -1], place["S", t]
        size[one, two] = size[two, one] = slope * (x[t] @ size[place["w"]])
        found["square"].append(variance)
        found["late"].append(float(x[t] @ size @ x[t - 2]) if t >= 2 else math.nan)
        found["active"].append(size[place["J", t], place["J", t]])
        found["other"].append(size[place["L", t], place["L", t]])
        if t < steps:
            x[t + 1], y[t + 1] = b * x[t], b * y[t]
            x[t + 1, place["J", t]] += g
            x[t + 1, place["L", t]] -= 2
            y[t + 1, place["S", t]] += 1.5
            y[t + 1, place["R", t]] -= 1
    return found


def gated_pair(steps: int, g: float, h: float, keep: float) -> tuple[np.ndarray, np.ndarray]:
    """r = tanh(x) y, x(t+1) = g J r(t) + u, y(t+1) = keep x(t) + h K r(t), x(0) = u, y(0) = u + w: <r(t) r(s)>, <x y>.

    x and y are Gaussian; r is quadratic in y given x, so that pairs are integrals over x(t) and x(s).
    """
    count = steps + 1
    width = 2 + 2 * count
    size = np.eye(width)
    x, y = np.zeros((count, width)), np.zeros((count, width))
    x[0, 0] = y[0, 0] = y[0, 1] = 1
    z, w = panels(-9.0, 9.0, 8)
    w = w * density(z)
    rr, xy = np.zeros((count, count)), np.zeros(count)
    for t in range(count):
        xy[t] = x[t] @ size @ y[t]
        for s in range(t + 1):
            some = np.array([x[t], x[s], y[t], y[s]])
            c = some @ size @ some.T
            if s == t:
                slope = c[0, 2] / c[0, 0]
                values = np.tanh(math.sqrt(c[0, 0]) * z) ** 2
                found = values * (slope**2 * c[0, 0] * z**2 + c[2, 2] - slope**2 * c[0, 0])
                rr[t, t] = np.sum(w * found)
            else:
                lower = np.linalg.cholesky(c[:2, :2])
                one, two = lower[0, 0] * z[:, None] + 0 * z, lower[1, 0] * z[:, None] + lower[1, 1] * z
                on = np.linalg.solve(c[:2, :2], c[:2, 2:])
                rest = c[2, 3] - c[2, :2] @ on[:, 1]
                means = [on[0, k] * one + on[1, k] * two for k in (0, 1)]
                rr[t, s] = rr[s, t] = w @ (np.tanh(one) * np.tanh(two) * (means[0] * means[1] + rest)) @ w
            for first in (2, 2 + count):
                size[first + t, first + s] = size[first + s, first + t] = rr[t, s]
        if t < steps:
            x[t + 1, 0], x[t + 1, 2 + t] = 1, g
            y[t + 1] = keep * x[t]
            y[t + 1, 2 + count + t] += h
    return rr, xy


def committee(eta: float, alpha: float, steps: int) -> dict[str, np.ndarray]:
    """Two students s_i with fresh data: k_i = X s_i, y = X v (over sqrt(D)), e = erf(y) - erf(k_1) - erf(k_2),
    s_i(t+1) = s_i(t) + eta/alpha X^T e exp(-k_i^2) / sqrt(D). s_1(0) = w_1, s_2(0) = (w_1 + w_2)/2. Mean of e^2, the
    table <s_i s_j>, <s_i v>."""
    z, w = panels(-8.0, 8.0, 4, 18)
    w = w * density(z)
    square = np.array([[1.0, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])  # s_1, s_2, v
    loss, table, overlap = [], [], []
    for _ in range(steps + 1):
        lower = np.linalg.cholesky(square)
        axes = np.meshgrid(z, z, z, indexing="ij")
        k1, k2, y = (sum(lower[i, j] * axes[j] for j in range(i + 1)) for i in range(3))
        e = erf(y) - erf(k1) - erf(k2)
        weight = w[:, None, None] * w[:, None] * w
        d = [e * np.exp(-(k**2)) for k in (k1, k2)]
        loss.append(float(np.sum(weight * e**2)))
        table.append(square[:2, :2].copy())
        overlap.append(square[:2, 2].copy())
        # by Stein's lemma <X^T d . s> / (alpha D) is <d k>, and |X^T d|^2 adds <d d> / alpha to the square of its mean
        on = np.array([[np.sum(weight * d[i] * field) for field in (k1, k2, y)] for i in (0, 1)])
        across = np.array([[np.sum(weight * d[i] * d[j]) for j in (0, 1)] for i in (0, 1)])
        mixed = np.linalg.solve(square, on.T)  # of the mean move in terms of s_1, s_2, v
        move = eta * mixed
        basis = np.eye(3)
        basis[:, :2] += move
        new = basis.T @ square @ basis
        new[:2, :2] += eta**2 / alpha * across
        square = new
    return {"loss": np.array(loss), "square": np.array(table), "overlap": np.array(overlap)}


def late_and_clipped(g: float, k: float, b: float, steps: int) -> dict[str, list[float]]:
    """x(t+1) = b x(t) + g J r(t) + n(t) / 4 + 1/10, r(t) = sin(x(t)) + k clip(x(t-2), -1, 1), x(0) normal; before the
    start there is nothing."""
    count = steps + 1
    size, rows, m = np.eye(1 + 2 * count), np.zeros((count, 1 + 2 * count)), np.zeros(count)
    rows[0, 0] = 1
    pairs = {"ss": sin_pair, "sc": sin_clip_pair, "cc": clip_pair}
    rr = np.zeros((count, count))
    for t in range(count):
        c = rows @ size @ rows.T

        def pair(kind: str, i: int, j: int, c: np.ndarray = c) -> float:
            return pairs[kind](m[i], m[j], c[i, i], c[j, j], c[i, j]) if min(i, j) >= 0 else 0.0

        for s in range(t + 1):
            cross = pair("sc", t, s - 2) + pair("sc", s, t - 2)
            rr[t, s] = rr[s, t] = pair("ss", t, s) + k * cross + k * k * pair("cc", t - 2, s - 2)
            size[1 + t, 1 + s] = size[1 + s, 1 + t] = rr[t, s]
        if t < steps:
            rows[t + 1] = b * rows[t]
            rows[t + 1, 1 + t] += g
            rows[t + 1, 1 + count + t] += 0.25
            m[t + 1] = b * m[t] + 0.1
    return {
        "square": [c[t, t] + m[t] ** 2 for t in range(count)],
        "late": [math.nan, math.nan, *(c[t, t - 2] + m[t] * m[t - 2] for t in range(2, count))],
        "active": list(np.diag(rr)),
        "before": [math.nan, *(rr[t, t - 1] for t in range(1, count))],
    }


def rectifier_with_momentum(eta: float, beta: float, alpha: float, steps: int) -> dict[str, list[float]]:
    """One rectifier learns another from fresh data: k = X s, y = X v (over sqrt(D)), d = (max(y, 0) - max(k, 0)) for
    k > 0, m(t+1) = beta m(t) + eta/alpha X^T d / sqrt(D), s(t+1) = s(t) + m(t+1); s(0) = (w + v)/2, m(0) = 0."""
    z, w = panels(0.0, 12.0, 24)
    w = w * density(z)
    square = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 0.0], [0.5, 0.0, 1.0]])  # s, m, v
    found: dict[str, list[float]] = {"loss": [], "norm": [], "overlap": [], "move": []}
    for _ in range(steps + 1):
        norm, overlap, teacher = square[0, 0], square[0, 2], square[2, 2]
        rest = math.sqrt(teacher - overlap**2 / norm)

        def second(mean: np.ndarray, spread: float = rest) -> np.ndarray:
            """<max(y, 0)^2>, which is <y max(y, 0)>."""
            return (mean**2 + spread**2) * ndtr(mean / spread) + mean * spread * density(mean / spread)

        k, mean = math.sqrt(norm) * z, overlap / math.sqrt(norm) * z
        first = rectified(mean, rest)
        dd = float(np.sum(w * (second(mean) - 2 * k * first + k**2)))
        on = [float(np.sum(w * (first - k) * k)), float(np.sum(w * (second(mean) - k * mean)))]
        found["loss"].append(dd + float(np.sum(w * second(-mean))))
        for name, place in (("norm", (0, 0)), ("overlap", (0, 2)), ("move", (0, 1))):
            found[name].append(float(square[place]))
        along, across = eta * np.linalg.solve([[norm, overlap], [overlap, teacher]], on)
        step = np.array([[1 + along, beta, across], [along, beta, across], [0.0, 0.0, 1.0]])
        square = step @ square @ step.T
        square[:2, :2] += eta**2 / alpha * dd
    return found


def deep_relu_kernel(inputs: np.ndarray, depth: int, bias: float) -> np.ndarray:
    """<f f> of the last layer, h_1 = W_1 x + bias b_1, h_l = W_l f(h_(l-1)) + bias b_l with f = sqrt(2) max(., 0)."""
    kernel = inputs @ inputs.T / inputs.shape[1]
    for _ in range(depth):
        c = kernel + bias**2
        size = np.sqrt(np.outer(np.diag(c), np.diag(c)))
        angle = np.arccos(np.clip(c / size, -1, 1))
        kernel = size / math.pi * (np.sin(angle) + (math.pi - angle) * np.cos(angle))
    return kernel


# -- approximate message passing


def symmetric_message_passing(pull: float, start: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """x(t+1) = M f(t) - <f'(t)> f(t-1) + pull v <v f(t)>, f = tanh(x), x(0) = start v + w, with a symmetric matrix M:
    x(t+1) = pull v <v f(t)> + xi(t), <xi(t) xi(s)> = <f(t) f(s)>. <v f(t)> and <f(t) f(t)>."""
    pair = smooth_pair(np.tanh)
    z, w = panels(-9.0, 9.0, 10)
    w = w * density(z)
    variance, along = start**2 + 1, start
    found = []
    for _ in range(steps + 1):
        spread = math.sqrt(variance)
        mu = along * np.sum(w * (1 - np.tanh(spread * z) ** 2))
        square = pair(0.0, 0.0, variance, variance, variance)
        found.append((mu, square))
        variance, along = (pull * mu) ** 2 + square, pull * mu
    return tuple(np.array(found).T)


def soft_message_passing(pull: float, start: float, threshold: float, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """The same with f the soft threshold, whose means are closed forms."""
    variance, along, found = start**2 + 1, start, []
    for _ in range(steps + 1):
        edge = threshold / math.sqrt(variance)
        outside = ndtr(-edge)
        mu = 2 * along * outside
        square = 2 * variance * ((1 + edge**2) * outside - edge * density(edge))
        found.append((mu, square))
        variance, along = (pull * mu) ** 2 + square, pull * mu
    return tuple(np.array(found).T)


def rectangular_message_passing(alpha: float, noise: float, steps: int) -> np.ndarray:
    """z(t) = A v + noise n - A x(t) + z(t-1) <f'>(t-1) / alpha, x(t+1) = f(A^T z(t) + x(t)), f = tanh, x(0) = 0, with
    alpha D rows of variance 1/(alpha D): A^T z + x is v plus a normal of variance tau^2. Mean of (x(t) - v)^2."""
    z, w = panels(-9.0, 9.0, 10)
    w = w * density(z)
    off = [1.0]
    for _ in range(steps):
        tau = math.sqrt(noise**2 + off[-1] / alpha)
        x = np.tanh(z[:, None] + tau * z)
        off.append(float(w @ (x - z[:, None]) ** 2 @ w))
    return np.array(off)


# -- sites that remember themselves


def symmetric_in_part(
    g: float, k: float, bias: float, drive: Callable[[int], float], steps: int, count: int = 40
) -> dict[str, np.ndarray]:
    """x(t+1) = g (J + k J^T) r(t) / sqrt(N) + drive(t) u, r = sin(x) + bias, x(0) = u: <x(t) x(s)> and <r(t)>.

    As in `sampled_by_hand.partly_symmetric_network`: x(t+1) = xi(t) + drive(t) u + 2 k g^2 sum_{s<t} rho(t, s) r(s).
    """
    grid = Grid(count)
    x, r = [grid.noise(0)], [np.sin(grid.noise(0)) + bias]
    slopes: list[dict[int, np.ndarray]] = [{}]
    rr, xx, rho = (np.zeros((steps + 1, steps + 1)) for _ in range(3))
    level = np.zeros(steps + 1)
    rr[0, 0], xx[0, 0], level[0] = grid.mean(r[0] ** 2), 1.0, grid.mean(r[0])
    for t in range(steps):
        axes = t + 2
        factor = np.linalg.cholesky(g**2 * (1 + k**2) * rr[: t + 1, : t + 1])
        now = sum(factor[t, s] * wider(grid.noise(s + 1), axes) for s in range(t + 1))
        now = now + drive(t) * wider(grid.noise(0), axes)
        here = {t: np.ones((1,) * axes)}
        for s in range(t):
            push = 2 * k * g**2 * rho[t, s]
            now = now + push * wider(r[s], axes)
            for q, slope in slopes[s].items():
                here[q] = here.get(q, 0.0) + push * wider(np.cos(x[s]) * slope, axes)
        x.append(now)
        r.append(np.sin(now) + bias)
        slopes.append(here)
        level[t + 1] = grid.mean(r[-1])
        for s in range(t + 2):
            rr[t + 1, s] = rr[s, t + 1] = grid.mean(r[t + 1] * wider(r[s], axes))
            xx[t + 1, s] = xx[s, t + 1] = grid.mean(now * wider(x[s], axes))
        for q, slope in here.items():
            rho[t + 1, q] = grid.mean(np.cos(now) * slope)
    return {"xx": xx, "level": level}


def symmetric_with_decay(g: float, b: float, steps: int, count: int = 40) -> dict[str, np.ndarray]:
    """x(t+1) = (1 - b) x(t) + g M r(t) + 1/5, r = erf(x), with a symmetric matrix M, x(0) normal: <x(t) x(s)>, <r(t)>.

    M r(t) is a noise with covariance <r r> and sum_{s<t} rho(t, s) r(s), rho(t, s) the mean derivative of r(t) by what
    M r(s) is multiplied by g.
    """
    grid = Grid(count)
    x, r = [grid.noise(0)], [erf(grid.noise(0))]
    slopes: list[dict[int, np.ndarray]] = [{}]
    rr, xx, rho = (np.zeros((steps + 1, steps + 1)) for _ in range(3))
    level = np.zeros(steps + 1)
    rr[0, 0], xx[0, 0] = grid.mean(r[0] ** 2), 1.0
    for t in range(steps):
        axes = t + 2
        factor = np.linalg.cholesky(g**2 * rr[: t + 1, : t + 1])
        now = sum(factor[t, s] * wider(grid.noise(s + 1), axes) for s in range(t + 1))
        now = now + (1 - b) * wider(x[t], axes) + 0.2
        here = {q: (1 - b) * wider(slope, axes) for q, slope in slopes[t].items()} | {t: np.ones((1,) * axes)}
        for s in range(t):
            push = g**2 * rho[t, s]
            now = now + push * wider(r[s], axes)
            for q, slope in slopes[s].items():
                bend = 2 / math.sqrt(math.pi) * np.exp(-(x[s] ** 2))
                here[q] = here.get(q, 0.0) + push * wider(bend * slope, axes)
        x.append(now)
        r.append(erf(now))
        slopes.append(here)
        level[t + 1] = grid.mean(r[-1])
        for s in range(t + 2):
            rr[t + 1, s] = rr[s, t + 1] = grid.mean(r[t + 1] * wider(r[s], axes))
            xx[t + 1, s] = xx[s, t + 1] = grid.mean(now * wider(x[s], axes))
        for q, slope in here.items():
            rho[t + 1, q] = grid.mean(2 / math.sqrt(math.pi) * np.exp(-(now**2)) * slope)
    return {"xx": xx, "level": level}


def nested(g: float, b: float, steps: int, count: int = 40) -> np.ndarray:
    """x(t+1) = tanh(b x(t) + g J x(t) / sqrt(N) + 1/2), x(0) normal: <x(t) x(s)>. J is not symmetric, so that noises
    have covariance g^2 <x x> and there is no memory but the site's own."""
    grid = Grid(count)
    x = [grid.noise(0)]
    xx = np.zeros((steps + 1, steps + 1))
    xx[0, 0] = 1.0
    for t in range(steps):
        axes = t + 2
        factor = g * np.linalg.cholesky(xx[: t + 1, : t + 1])
        noise = sum(factor[t, s] * wider(grid.noise(s + 1), axes) for s in range(t + 1))
        x.append(np.tanh(b * wider(x[t], axes) + noise + 0.5))
        for s in range(t + 2):
            xx[t + 1, s] = xx[s, t + 1] = grid.mean(x[t + 1] * wider(x[s], axes))
    return xx
