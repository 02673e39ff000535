"""The deep linear network in the proportional limit, solved by hand: an independent reference in plain NumPy.

Model.  W^0 is N x D, W^1 .. W^{L-1} are N x N, w_1 .. w_C are readout vectors; N = nu D.  Full batch: the same
P = alpha D inputs and label noise at every step; online: B = alpha D fresh ones.  For t = 0 .. T

    v_c = w*_c - sqrt(D)/(N gamma0) W^0^T g^1_c     Delta_c = X v_c / sqrt(D) + sigma eps_c
    h^0 = sqrt(D)/P X^T Delta  (B for P if online)
    h^{l+1} = W^l h^l / sqrt(D or N)                g^L = w,  g^l = W^l^T g^{l+1} / sqrt(N)
    W^0 += eta gamma0/sqrt(D) sum_c g^1_c h^0_c^T   W^l += eta gamma0/sqrt(N) sum_c g^{l+1}_c h^l_c^T
    w_c += eta gamma0 h^L_c                         (param = "ntk": gamma0 -> gamma0 / sqrt(nu) everywhere)

Single-site equations.  A kernel is a matrix over I = (time, class), time first, so that "causal" is block lower
triangular.  [K]_< keeps s < t only, J is all ones over times (identity over classes), kappa = 1/(gamma0 nu).

    data      Delta = u_Delta + R_vu Delta / alpha + sigma eps          R_Delta = (1 - R_vu/alpha)^{-1}
              h^0   = u^0 + R_Delta v                (s <= t)           C_Delta = R_Delta (C_v + sigma^2 J) R_Delta^T
    online    R_Delta = 1, C_Delta(t,s) = delta_ts (C_v(t,t) + sigma^2), no R_vu
    input     v     = w* - r^0 - K h^0               (s < t)            K   = R_gu^1/gamma0 + eta [C_g^1]_<
    layer l   h^l   = u^l + A^l g^l                  (s <= t)           A^l = k_l R_hr^{l-1} + eta gamma0 [C_h^{l-1}]_<
              g^l   = r^l + B^l h^l                  (s < t)            B^l = R_gu^{l+1} + eta gamma0 [C_g^{l+1}]_<

with k_1 = kappa, else 1, and
    <u^0 u^0> = C_Delta/alpha,  <r^0 r^0> = C_g^1/(gamma0^2 nu),  <u^l u^l> = C_h^{l-1},  <r^l r^l> = C_g^{l+1}.

The readout is the last line with C_g^{L+1} = J and R_gu^{L+1} = 0: then r^L is the initial readout and
B^L h^L = eta gamma0 sum_{s<t} h^L(s).  Responses: R_vu = dv/du^0, R_hr^0 = dh^0/dr^0, R_hr^l = dh^l/dr^l,
R_gu^l = dg^l/du^l.  R_gu and R_vu vanish at equal times; R_hr does not: R_hr^0(t,t) = -1, so that
R_hr^1(t,t) = -kappa, R_hr^2(t,t) = -kappa, and so on up the network.

Nothing here uses the toolkit.  `solve(..., method="forward")` fills the kernels one time after another;
`method="fixed_point"` iterates all kernels at once.  `DEPARTURES` lists where this differs from the printed formulas.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from scipy.linalg import solve_triangular

Array = np.ndarray


@dataclass(frozen=True)
class Departure:
    """Where these equations differ from the printed ones; `solve(as_printed=...)` takes the names in UNDONE."""

    name: str
    where: str
    printed: str
    right: str
    evidence: str


# Figures: mean +- standard error over runs; "200: x, 400: y" gives them by D.
DEPARTURES = (
    Departure(
        "h0_sum",
        "Training-level DMFT, data sector, and the same line of the multi-class subsection",
        "h^0(t) = u^0(t) + sum_{s<t} R_Delta(t,s) v(s)",
        "s <= t: R_Delta(t,t) = 1, the error at t drives the gradient at t (as online: h^0 = u^0 + v)",
        "L=1 C=1 alpha=2 nu=1 gamma0=1 eta=0.1 sigma=0.3 full batch, test loss at t=1: simulation 200: 1.284 +- 0.020, "
        "400: 1.301 +- 0.012; right 1.318, printed 2.142.  At t=5: 0.643 +- 0.010, 0.651 +- 0.008; 0.660, 5.34.",
    ),
    Departure(
        "h1_sum",
        "First-layer boundary, h^1 (also multi-class and online)",
        "h^1(t) = u^1(t) + sum_{s<t} [R_hr^0(t,s)/(gamma0 nu) + eta gamma0 C_h^0(t,s)] g^1(s)",
        "s <= t for R_hr^0, s < t for C_h^0: h^0(t) contains -r^0(t), so R_hr^0(t,t) = -1 and h^1(t) contains "
        "-g^1(t)/(gamma0 nu); for L = 1 the inner sum r < s of the readout boundary is the same term",
        "same setting, test loss at t=1: simulation as above; right 1.318, printed 1.442.  L=2 alpha=2 nu=0.5 gamma0=1 "
        "eta=0.05 sigma=0.3, t=5: 200: 0.990 +- 0.009, 400: 0.984 +- 0.008; right 0.993, printed 4.253.",
    ),
    Departure(
        "hidden_sum",
        "Forward fields 2 <= l <= L, and the inner sum r < s of the readout boundary",
        "h^l(t) = u^l(t) + sum_{s<t} [R_hr^{l-1}(t,s) + eta gamma0 C_h^{l-1}(t,s)] g^l(s)",
        "s <= t for R_hr, s < t for C_h: R_hr^l(t,t) = -1/(gamma0 nu) at every l >= 1 is handed up the network",
        "full batch alpha=2 nu=0.5 gamma0=1 eta=0.05 sigma=0.3 C=1.  L=2, t=5: 200: 0.990 +- 0.009, "
        "400: 0.984 +- 0.008; right 0.993, printed 1.212.  L=3, t=4: 200: 0.973 +- 0.008, 400: 0.974 +- 0.008; "
        "right 0.966, printed 1.996.",
    ),
    Departure(
        "bulk_sign",
        "Probe-level fixed points: H = -R_{0,2}, R^{psi1 zeta1} = 1/(1 + H/nu); hidden layers: 1/(1 + H)",
        "R = 1/(1 + H/nu)",
        "R = 1/(1 - H/nu) (hidden: nu -> 1): z psi_0 = psi_2 + j makes the response of psi_0 to zeta_2 +H.  Only this "
        "is Marchenko-Pastur; the printed one has no upper edge.  The blocks of A(z) are right as printed.",
        "outlier of L=1 C=1 T=30 alpha=2 nu=1 gamma0=4 eta=0.05 sigma=0.3: 200: 4.702 +- 0.032, 400: 4.702 +- 0.022, "
        "800: 4.705 +- 0.017; right 4.711, printed 1.830.  L=2 nu=2 gamma0=6 eta=0.02 T=20, layer 0: 3.530 +- 0.021, "
        "3.518 +- 0.014, 3.529 +- 0.018; right 3.522, printed 1.945; layer 1: 4.508 +- 0.026, 4.469 +- 0.015, "
        "4.501 +- 0.014; right 4.490, printed 1.483.",
    ),
    Departure(
        "online_C_Delta",
        "Online Dynamics, error covariance",
        "C_Delta(t,t') = C_v(t,t') + sigma^2 delta_tt'",
        "C_Delta(t,t') = delta_tt' (C_v(t,t) + sigma^2): errors on fresh inputs are independent.  Losses do not "
        "change, since u^0 is printed with C_Delta(t,t') delta_tt'.",
        "L=1 alpha=2 nu=1 gamma0=1 eta=0.1 sigma=0.3, Delta(0).Delta(1)/B: 200: 0.000 +- 0.011, 400: -0.004 +- 0.009; "
        "right 0, printed 1.52.",
    ),
    Departure(
        "first_layer_scale",
        "Training fields: h^{l+1} = W^l h^l / sqrt(N) for l = 0 .. L-1; main text: 1/sqrt(N) in every update",
        "h^1 = W^0 h^0 / sqrt(N), W^0 += eta gamma0 / sqrt(N) ...",
        "1/sqrt(D) at l = 0, as in the printed f(x), chi^1 and the appendix's own W^0 update; else no gradient step",
        "a contradiction within the text; all figures above are simulated with sqrt(D).",
    ),
    Departure(
        "label_noise",
        "Multi-class setting, Delta_c of full-batch training",
        "sigma eps_c(t), a label noise at each time",
        "sigma eps_c: the labels of a fixed set do not change (so the printed Delta of one output, and y_c of Lemma 3)",
        "L=1 C=2 alpha=2 nu=1 gamma0=1 eta=0.1 sigma=1 T=8, train loss: see notebooks/errata.ipynb, section 17.",
    ),
    Departure(
        "readout_scale",
        "Readout boundary, g^L",
        "g^L = r^L + eta gamma0 sum_{s<t} [u^L(s) + sum_r (R_hr^{L-1} + eta gamma0 C_h^{L-1})(s,r) g^L(r)]",
        "the bracket is h^L(s), so for L = 1 the response in it is R_hr^0/(gamma0 nu), as in the printed h^1",
        "L=1 C=1 alpha=2 nu=gamma0=0.5 eta=0.1 sigma=0.3 T=5, test loss: see notebooks/errata.ipynb, section 18.",
    ),
)
UNDONE = ("h0_sum", "h1_sum", "hidden_sum", "label_noise", "readout_scale")
"""Departures that `solve(as_printed=...)` puts back."""


@dataclass(frozen=True)
class Problem:
    """Parameters; `gamma` is gamma0 in muP, gamma0/sqrt(nu) in NTK; `as_printed` names departures to undo."""

    L: int
    C: int
    T: int
    alpha: float
    nu: float
    gamma0: float
    eta: float
    sigma: float
    data: str = "full_batch"
    param: str = "mup"
    as_printed: tuple[str, ...] = ()
    teacher: tuple[tuple[float, ...], ...] | None = None

    @property
    def gamma(self) -> float:
        return self.gamma0 / np.sqrt(self.nu) if self.param == "ntk" else self.gamma0

    @property
    def step(self) -> float:
        return self.eta * self.gamma

    @property
    def kappa(self) -> float:
        return 1 / (self.gamma * self.nu)

    @property
    def size(self) -> int:
        return (self.T + 1) * self.C

    def past(self) -> Array:
        """1 where the column's time is before the row's, else 0."""
        return np.kron(np.tri(self.T + 1, k=-1), np.ones((self.C, self.C)))

    def same(self) -> Array:
        """1 where both times agree."""
        return np.kron(np.eye(self.T + 1), np.ones((self.C, self.C)))

    def ones(self, classes: Array | None = None) -> Array:
        """Constant in time; over classes the identity, or the given covariance."""
        return np.kron(np.ones((self.T + 1, self.T + 1)), np.eye(self.C) if classes is None else classes)

    def label_noise(self) -> Array:
        """Covariance of sigma eps: each label has one, unless the printed equations draw it afresh at each time."""
        return self.sigma**2 * self.ones() * (self.same() if "label_noise" in self.as_printed else 1.0)

    def teacher_covariance(self) -> Array:
        return np.eye(self.C) if self.teacher is None else np.array(self.teacher, float)


@dataclass(frozen=True)
class Kernels:
    """All order parameters, n x n with n = (T+1) C.

    C_h[l], R_hr[l] for l = 0 .. L; C_g[l], R_gu[l] for l = 1 .. L+1 (0 unused, L+1 the readout's J and 0).
    """

    C_h: Array
    C_g: Array
    R_hr: Array
    R_gu: Array
    C_v: Array
    C_Delta: Array
    R_Delta: Array
    R_vu: Array


@dataclass(frozen=True)
class Solution:
    problem: Problem
    kernels: Kernels
    test_loss: Array
    train_loss: Array
    iterations: int
    change: float
    diverged_at: int | None


def start(problem: Problem) -> Kernels:
    """Backward kernels of the untrained network, no forward fields, no responses: where iterations start.

    (With forward fields that do not decay, the first iterate grows exponentially in T and overflows.)
    """
    n, levels = problem.size, problem.L + 2
    ones, none = problem.ones(), np.zeros((problem.size, problem.size))
    teacher = problem.ones(problem.teacher_covariance())
    C_v = teacher + ones / (problem.gamma**2 * problem.nu)
    C_Delta = C_v + problem.label_noise()
    if problem.data == "online":
        C_Delta = C_Delta * problem.same()
    C_g = np.stack([none] + [ones] * (levels - 1))
    zeros = np.zeros((levels, n, n))
    return Kernels(zeros[1:].copy(), C_g, zeros[1:].copy(), zeros, C_v, C_Delta, np.eye(n), none)


def _forward_kernel(k: Kernels, p: Problem, layer: int, past: Array) -> Array:
    """A^l of h^l = u^l + A^l g^l."""
    response = k.R_hr[layer - 1]
    if "h1_sum" in p.as_printed if layer == 1 else "hidden_sum" in p.as_printed:
        response = response * past
    return (p.kappa if layer == 1 else 1.0) * response + p.step * past * k.C_h[layer - 1]


def _inner_kernel(k: Kernels, p: Problem, layer: int, past: Array) -> Array:
    """A^l as the next field below sees it, which is A^l itself; the printed readout boundary has another for L = 1."""
    A = _forward_kernel(k, p, layer, past)
    return A + (1 - p.kappa) * k.R_hr[0] if "readout_scale" in p.as_printed and layer == p.L == 1 else A


def _backward_kernel(k: Kernels, p: Problem, layer: int, past: Array) -> Array:
    """B^l of g^l = r^l + B^l h^l."""
    return k.R_gu[layer + 1] + p.step * past * k.C_g[layer + 1]


def _unit_solve(lower: Array, right: Array) -> Array:
    """Solve a unit lower triangular system."""
    return solve_triangular(lower, right, lower=True, unit_diagonal=True, check_finite=False)


def _layer(A: Array, B: Array, C_u: Array, C_r: Array, inner: Array) -> tuple[Array, Array, Array, Array]:
    """C_h, C_g, R_hr, R_gu of h = u + A g, g = r + B (u + inner g).  Within a class-block row, B is in the past."""
    one = np.eye(len(A))
    dg_dr = _unit_solve(one - B @ inner, one)
    R_gu = dg_dr @ B
    R_hr = A @ dg_dr
    dh_du = one + A @ R_gu
    C_h = dh_du @ C_u @ dh_du.T + R_hr @ C_r @ R_hr.T
    C_g = R_gu @ C_u @ R_gu.T + dg_dr @ C_r @ dg_dr.T
    return C_h, C_g, R_hr, R_gu


def _input(k: Kernels, p: Problem, past: Array) -> dict[str, Array]:
    """C_v, R_vu, C_h^0, R_hr^0 of v = w* - r^0 - K h^0, h^0 = u^0 + R_Delta v."""
    one = np.eye(p.size)
    K = k.R_gu[1] / p.gamma + p.eta * past * k.C_g[1]
    R_Delta = k.R_Delta * past if "h0_sum" in p.as_printed else k.R_Delta
    dv_dw = _unit_solve(one + K @ R_Delta, one)
    R_vu = -dv_dw @ K
    C_w = p.ones(p.teacher_covariance()) + k.C_g[1] / (p.gamma**2 * p.nu)
    C_u = k.C_Delta / p.alpha
    R_hr = -R_Delta @ dv_dw
    dh_du = one + R_Delta @ R_vu
    C_v = dv_dw @ C_w @ dv_dw.T + R_vu @ C_u @ R_vu.T
    return {"C_v": C_v, "R_vu": R_vu, "R_hr": R_hr, "C_h": R_hr @ C_w @ R_hr.T + dh_du @ C_u @ dh_du.T}


def _data(k: Kernels, p: Problem, same: Array) -> tuple[Array, Array]:
    """R_Delta and C_Delta."""
    one = np.eye(p.size)
    if p.data == "online":
        return one, (k.C_v + p.label_noise()) * same
    R_Delta = _unit_solve(one - k.R_vu / p.alpha, one)
    return R_Delta, R_Delta @ (k.C_v + p.label_noise()) @ R_Delta.T


def equations(kernels: Kernels, problem: Problem, weight: float = 1.0, in_turn: bool = False) -> Kernels:
    """The right-hand sides of the self-consistency conditions at the given kernels.

    With `in_turn`, a kernel once updated is used by those after it: backward fields from the readout down, then the
    input and the data, then forward fields up, which is the order of one training step.  `weight` < 1 damps.
    """
    p, old = problem, kernels
    past, same = p.past(), p.same()
    new = Kernels(**{f.name: getattr(old, f.name).copy() for f in fields(old)})
    seen = new if in_turn else old

    def put(target: Array, value: Array) -> None:
        target *= 1 - weight
        target += weight * value

    for layer in range(p.L, 0, -1):
        A, B = _forward_kernel(seen, p, layer, past), _backward_kernel(seen, p, layer, past)
        inner = _inner_kernel(seen, p, layer, past)
        _, C_g, _, R_gu = _layer(A, B, seen.C_h[layer - 1], seen.C_g[layer + 1], inner)
        put(new.C_g[layer], C_g)
        put(new.R_gu[layer], R_gu)
    values = _input(seen, p, past)
    put(new.C_v, values["C_v"])
    put(new.R_vu, values["R_vu"])
    R_Delta, C_Delta = _data(seen, p, same)
    put(new.R_Delta, R_Delta)
    put(new.C_Delta, C_Delta)
    if in_turn:
        values = _input(seen, p, past)
    put(new.C_h[0], values["C_h"])
    put(new.R_hr[0], values["R_hr"])
    for layer in range(1, p.L + 1):
        A, B = _forward_kernel(seen, p, layer, past), _backward_kernel(seen, p, layer, past)
        inner = _inner_kernel(seen, p, layer, past)
        C_h, _, R_hr, _ = _layer(A, B, seen.C_h[layer - 1], seen.C_g[layer + 1], inner)
        put(new.C_h[layer], C_h)
        put(new.R_hr[layer], R_hr)
    return new


def _distance(a: Kernels, b: Kernels) -> float:
    """Largest change of any kernel, relative to that kernel's largest entry (or 1)."""
    pairs = [(getattr(a, f.name), getattr(b, f.name)) for f in fields(a)]
    return max(float(np.max(np.abs(x - y)) / max(1.0, float(np.max(np.abs(x))))) for x, y in pairs)


def _iterate(problem: Problem, weight: float, tolerance: float, limit: int) -> tuple[Kernels, int, float]:
    """Damped iteration of all kernels until none changes by more than the tolerance."""
    kernels, change = start(problem), np.inf
    for iteration in range(1, limit + 1):
        updated = equations(kernels, problem, weight, in_turn=True)
        change = _distance(updated, kernels) / weight
        kernels = updated
        if not change > tolerance:
            return kernels, iteration, change
    return kernels, limit, change


class _Field:
    """A pair of fields h = u + A g, g = r + B h whose rows are filled time by time."""

    def __init__(self, n: int, C_u: Array, C_r: Array) -> None:
        self.C_u, self.C_r = C_u, C_r
        self.hu, self.hr, self.gu, self.gr = (np.zeros((n, n)) for _ in range(4))

    def add_g(self, now: slice, B: Array) -> tuple[Array, Array]:
        """Row of g from B(t, s < t): returns its response to u and its covariance with g(s <= t)."""
        a, b = now.start, now.stop
        self.gu[now, :a] = B @ self.hu[:a, :a]
        self.gr[now, :a] = B @ self.hr[:a, :a]
        self.gr[now, a:b] = np.eye(b - a)
        row = self.gu[now, :b] @ self.C_u[:b, :b] @ self.gu[:b, :b].T
        return self.gu[now, :b], row + self.gr[now, :b] @ self.C_r[:b, :b] @ self.gr[:b, :b].T

    def add_h(self, now: slice, A: Array) -> tuple[Array, Array]:
        """Row of h from A(t, s <= t): returns its response to r and its covariance with h(s <= t)."""
        a, b = now.start, now.stop
        self.hu[now, :b] = A @ self.gu[:b, :b]
        self.hu[now, a:b] += np.eye(b - a)
        self.hr[now, :b] = A @ self.gr[:b, :b]
        row = self.hu[now, :b] @ self.C_u[:b, :b] @ self.hu[:b, :b].T
        return self.hr[now, :b], row + self.hr[now, :b] @ self.C_r[:b, :b] @ self.hr[:b, :b].T


def _march(problem: Problem) -> Kernels:
    """Fill every kernel row by row: exact, since a row needs only earlier rows and, of its own, what came before."""
    p, n = problem, problem.size
    none = np.zeros((n, n))
    C_h, R_hr = np.zeros((p.L + 1, n, n)), np.zeros((p.L + 1, n, n))
    C_g, R_gu = np.zeros((p.L + 2, n, n)), np.zeros((p.L + 2, n, n))
    C_g[p.L + 1] = p.ones()
    C_v, C_Delta, R_Delta, R_vu = none.copy(), none.copy(), none.copy(), none.copy()
    C_w, K = none.copy(), none.copy()
    layers = [_Field(n, C_h[layer - 1], C_g[layer + 1]) for layer in range(1, p.L + 1)]
    v_w, h_u = none.copy(), none.copy()  # dv/dw* and dh^0/du^0
    noise, teacher = p.sigma**2 * p.ones(), p.ones(p.teacher_covariance())

    def mirror(matrix: Array, now: slice, row: Array) -> None:
        matrix[now, : now.stop] = row
        matrix[: now.stop, now] = row.T

    for t in range(p.T + 1):
        now = slice(t * p.C, (t + 1) * p.C)
        a, b = now.start, now.stop
        for layer in range(p.L, 0, -1):
            B = R_gu[layer + 1, now, :a] + p.step * C_g[layer + 1, now, :a]
            response, row = layers[layer - 1].add_g(now, B)
            R_gu[layer, now, :b] = response
            mirror(C_g[layer], now, row)
        C_w[:b, :b] = teacher[:b, :b] + C_g[1, :b, :b] / (p.gamma**2 * p.nu)
        K = R_gu[1, now, :a] / p.gamma + p.eta * C_g[1, now, :a]
        v_w[now, :a] = K @ R_hr[0, :a, :a]
        v_w[now, a:b] = np.eye(p.C)
        R_vu[now, :a] = -K @ h_u[:a, :a]
        row = v_w[now, :b] @ C_w[:b, :b] @ v_w[:b, :b].T + R_vu[now, :b] @ C_Delta[:b, :b] @ R_vu[:b, :b].T / p.alpha
        mirror(C_v, now, row)
        R_Delta[now, a:b] = np.eye(p.C)
        if p.data == "online":
            C_Delta[now, now] = C_v[now, now] + noise[now, now]
        else:
            R_Delta[now, :a] = R_vu[now, :a] @ R_Delta[:a, :a] / p.alpha
            mirror(C_Delta, now, R_Delta[now, :b] @ (C_v + noise)[:b, :b] @ R_Delta[:b, :b].T)
        R_hr[0, now, :b] = -R_Delta[now, :b] @ v_w[:b, :b]
        h_u[now, :b] = R_Delta[now, :b] @ R_vu[:b, :b]
        h_u[now, a:b] += np.eye(p.C)
        row = R_hr[0, now, :b] @ C_w[:b, :b] @ R_hr[0, :b, :b].T
        mirror(C_h[0], now, row + h_u[now, :b] @ C_Delta[:b, :b] @ h_u[:b, :b].T / p.alpha)
        for layer in range(1, p.L + 1):
            A = (p.kappa if layer == 1 else 1.0) * R_hr[layer - 1, now, :b]
            A[:, :a] += p.step * C_h[layer - 1, now, :a]
            response, row = layers[layer - 1].add_h(now, A)
            R_hr[layer, now, :b] = response
            mirror(C_h[layer], now, row)
    return Kernels(C_h, C_g, R_hr, R_gu, C_v, C_Delta, R_Delta, R_vu)


def solve(
    L: int,
    C: int,
    T: int,
    alpha: float,
    nu: float,
    gamma0: float,
    eta: float,
    sigma: float,
    data: str = "full_batch",
    param: str = "mup",
    method: str = "forward",
    *,
    weight: float = 1.0,
    tolerance: float = 1e-13,
    limit: int = 5000,
    as_printed: tuple[str, ...] = (),
    teacher: tuple[tuple[float, ...], ...] | None = None,
) -> Solution:
    """Solve the training level; `as_printed` (fixed point only) puts printed terms back, see DEPARTURES."""
    if data not in ("full_batch", "online") or param not in ("mup", "ntk") or method not in ("forward", "fixed_point"):
        raise ValueError("data is full_batch or online, param is mup or ntk, method is forward or fixed_point")
    problem = Problem(L, C, T, alpha, nu, gamma0, eta, sigma, data, param, tuple(as_printed), teacher)
    if as_printed and (method == "forward" or not set(as_printed) <= set(UNDONE)):
        raise ValueError(f"as_printed takes {', '.join(UNDONE)}, with method='fixed_point' only")
    with np.errstate(over="ignore", invalid="ignore"):
        if method == "forward":
            kernels, iterations, change = _march(problem), 1, 0.0
        else:
            kernels, iterations, change = _iterate(problem, weight, tolerance, limit)
    C_v, C_Delta = (np.diagonal(k).reshape(T + 1, C).mean(axis=1) for k in (kernels.C_v, kernels.C_Delta))
    bad = np.flatnonzero(~(np.isfinite(C_v) & np.isfinite(C_Delta)))
    return Solution(problem, kernels, C_v + sigma**2, C_Delta, iterations, change, int(bad[0]) if bad.size else None)


def marchenko_pastur(z: complex, ratio: float) -> tuple[complex, complex]:
    """R^{psi1 zeta1} and H off the bulk of W^T W / N; ratio = columns / N.

    R = 1/(1 - ratio H) and H = 1/(z - R) give, with z = 1 + ratio + sqrt(ratio) (y + 1/y) and |y| > 1,
    R = 1 + sqrt(ratio)/y and H = 1/(sqrt(ratio) y + ratio).
    """
    root = np.sqrt(ratio)
    middle = (z - 1 - ratio) / (2 * root)
    width = np.sqrt(complex(middle - 1)) * np.sqrt(complex(middle + 1))
    y = middle + width if abs(middle + width) >= 1 else middle - width
    R, H = 1 + root / y, 1 / (root * y + ratio)
    return (R, H) if isinstance(z, complex) else (R.real, H.real)


@dataclass(frozen=True)
class Blocks:
    """What A(z) of one layer at one time is made of: kernels over earlier times, eta gamma0, kappa or 1, columns/N."""

    C_h: Array
    R_hr: Array
    C_g: Array
    R_gu: Array
    step: float
    kappa: float
    ratio: float

    def matrix(self, d: complex, e: complex) -> Array:
        """A(z) acting on (C^{h psi0}, R^{psi0 r}, C^{g psi1}, R^{psi1 u}); d = z - R, e = 1/R."""
        C_h, R_hr, C_g, R_gu, step, kappa = self.C_h, self.R_hr, self.C_g, self.R_gu, self.step, self.kappa
        one, zero = np.eye(len(C_h)), np.zeros_like(C_h)
        return np.block(
            [
                [d * one, zero, -kappa * R_hr - step * C_h, -C_h],
                [zero, d * one, -step * R_hr.T, -R_hr.T],
                [-R_gu - step * C_g, -kappa * C_g, e * one, zero],
                [-step * R_gu.T, -kappa * R_gu.T, zero, e * one],
            ]
        )


def _blocks(solution: Solution, layer: int, time: int) -> Blocks:
    p, k, n = solution.problem, solution.kernels, time * solution.problem.C
    if not 0 <= layer < p.L or not 0 <= time <= p.T:
        raise ValueError(f"layer must be 0 .. {p.L - 1} and time 0 .. {p.T}")
    parts = k.C_h[layer], k.R_hr[layer], k.C_g[layer + 1], k.R_gu[layer + 1]
    C_h, R_hr, C_g, R_gu = (m[:n, :n] for m in parts)
    kappa, ratio = (p.kappa, 1 / p.nu) if layer == 0 else (1.0, 1.0)
    return Blocks(C_h, R_hr, C_g, R_gu, p.step, kappa, ratio)


def first_layer_matrix(z: complex, solution: Solution, time: int) -> Array:
    """A_0(z) of W^0(time)^T W^0(time) / N, size 4 C time."""
    blocks = _blocks(solution, 0, time)
    R, _ = marchenko_pastur(z, blocks.ratio)
    return blocks.matrix(z - R, 1 / R)


def hidden_layer_matrix(z: complex, layer: int, solution: Solution, time: int) -> Array:
    """A_l(z) of W^l(time)^T W^l(time) / N for 1 <= l < L, size 4 C time."""
    if layer < 1:
        raise ValueError("the first layer has its own matrix")
    blocks = _blocks(solution, layer, time)
    R, _ = marchenko_pastur(z, blocks.ratio)
    return blocks.matrix(z - R, 1 / R)


def bulk_edges(problem: Problem, layer: int) -> tuple[float, float]:
    """Edges of the Marchenko-Pastur bulk of W^T W / N."""
    root = np.sqrt(1 / problem.nu) if layer == 0 else 1.0
    return (1 - root) ** 2, (1 + root) ** 2


@dataclass(frozen=True)
class Outlier:
    """An eigenvalue off the bulk, how often it occurs, and the smallest singular values of A(z) there."""

    z: float
    multiplicity: int
    residual: float


def outliers(solution: Solution, layer: int, time: int, points: int = 48) -> list[Outlier]:
    """All real zeros of det A(z) off the bulk, ascending.

    With z = 1 + c + sqrt(c)(y + 1/y), the two sides of the bulk are y > 1 and y < -1.  Zeros in a real interval are
    counted by the winding of det A / (d e)^{2n} = det(1 - P Q / (d e)) around an ellipse on it, P and Q being minus
    the off-diagonal halves of A; an interval is halved until Newton's method on the logarithmic derivative, with the
    counted multiplicity, ends inside it and A(z) there has as many vanishing singular values.
    """
    blocks = _blocks(solution, layer, time)
    ratio = blocks.ratio
    if time == 0:
        return []
    root, n = np.sqrt(ratio), len(blocks.C_h)
    update = blocks.step * np.sqrt(max(float(np.sum(blocks.C_h * blocks.C_g)), 0.0))
    reach = (1 + root + update) ** 2  # |W(t)| <= |W(0)| + |update|
    if not np.isfinite(reach):
        raise ValueError(f"the solution diverged before time {time}; take an earlier time or a smaller eta")
    outer = blocks.matrix(0.0, 0.0)
    product, one = outer[: 2 * n, 2 * n :] @ outer[2 * n :, : 2 * n], np.eye(2 * n)

    def spectral(y: complex) -> complex:
        return 1 + ratio + root * (y + 1 / y)

    def halves(y: complex) -> complex:
        """(z - R) / R."""
        R = 1 + root / y
        return (spectral(y) - R) / R

    def phase(y: complex) -> complex:
        return np.linalg.slogdet(one - product / halves(y))[0]

    def newton(low: float, high: float, count: int) -> float:
        y = (low + high) / 2
        for _ in range(60):
            s = halves(y)  # equal to sqrt(c) y, whence ds/dy = sqrt(c)
            try:
                slope = np.trace(np.linalg.solve(one - product / s, product)) * root / s**2
            except np.linalg.LinAlgError:  # exactly on a zero
                return y
            if not np.isfinite(slope) or not slope:
                return np.nan
            y -= count / slope
            if abs(count / slope) <= 1e-13 * abs(y):
                return y
            if not low - 9 * (high - low) < y < high + 9 * (high - low):
                break
        return np.nan

    found: list[Outlier] = []

    def search(low: float, high: float, depth: int) -> None:
        count = _winding(phase, low, high, points)
        if count <= 0:
            return
        y = newton(low, high, count)
        if low < y < high:
            R = 1 + root / y
            A = blocks.matrix(spectral(y) - R, 1 / R)
            values = np.linalg.svd(A / np.diagonal(A)[:, None], compute_uv=False)
            if int(np.sum(values < 1e-9 * values[0])) >= count:
                found.append(Outlier(float(np.real(spectral(y))), count, float(values[-count])))
                return
        if depth > 40:
            raise ArithmeticError(f"zeros of det A near y = {low} of layer {layer} at time {time} do not separate")
        middle = low + 0.4837 * (high - low)
        search(low, middle, depth + 1)
        search(middle, high, depth + 1)

    middle = (reach - 1 - ratio) / (2 * root)
    ends = [((middle + np.sqrt(middle**2 - 1)) * 1.001, 1)]
    if abs(ratio - 1) > 1e-12:
        ends.append((max(root, 1 / root) * 1.0003, -1))  # z = 0 is at y = -sqrt(c) or -1/sqrt(c)
    for end, sign in ends:
        cuts = 1 + np.concatenate([[1e-7], np.geomspace(0.013, max(end - 1, 0.02), 2 + int(np.log2(end + 1)))])
        for low, high in zip(cuts[:-1], cuts[1:], strict=True):
            search(min(sign * low, sign * high), max(sign * low, sign * high), 0)
    return sorted(found, key=lambda outlier: outlier.z)


def _winding(phase: Callable[[complex], complex], low: float, high: float, points: int) -> int:
    """How often phase(y) turns around as y runs around a thin ellipse on [low, high]."""
    middle, half = (low + high) / 2, (high - low) / 2
    aspect = min(0.5, np.sqrt(0.8 * min(abs(low), abs(high)) / half))  # so thin that |y| is least at an end

    def at(angle: float) -> complex:
        return phase(middle + half * (np.cos(angle) + 1j * aspect * np.sin(angle)))

    # The function is real on the real axis: the upper half gives half the turns.  A step counts when its two halves
    # turn little and alike.
    def turns(a: float, b: float, at_a: complex, at_b: complex) -> float:
        at_middle = at((a + b) / 2)
        first, second = float(np.angle(at_middle / at_a)), float(np.angle(at_b / at_middle))
        if (abs(first) < 0.5 and abs(second) < 0.5) or b - a < 1e-9:
            return first + second
        return turns(a, (a + b) / 2, at_a, at_middle) + turns((a + b) / 2, b, at_middle, at_b)

    angles = np.linspace(0, np.pi, points // 4 + 1)
    values = [at(angle) for angle in angles]
    steps = zip(angles[:-1], angles[1:], values[:-1], values[1:], strict=True)
    return round(sum(turns(*step) for step in steps) / np.pi)
