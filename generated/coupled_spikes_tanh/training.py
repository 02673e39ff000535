# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level by sampling: many sites forward in time, responses by Stein's lemma: correlations with the noises."""

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp  # noqa: F401


def unit(position, size):
    """Unit vectors of the noise basis at the given positions."""
    return (position[..., None] == jnp.arange(size)).astype(float)


def room(entries, rank):
    """How many directions are kept of so many."""
    return entries if rank is None else min(entries, rank)


def pivoted(gram, floor):
    """Cholesky factor of a Gram matrix, largest remainder first, down to the floor; and the order."""
    size = gram.shape[0]

    def one(k, state):
        left, factor, chosen, free = state
        candidates = jnp.where(free, jnp.diagonal(left), -1.0)
        i = jnp.argmax(candidates)
        take = candidates[i] > floor
        column = jnp.where(take, left[:, i], 0.0) / jnp.sqrt(jnp.where(take, candidates[i], 1.0))
        left = left - column[:, None] * column[None, :]
        return left, factor.at[:, k].set(column), chosen.at[k].set(i), free.at[i].set(False)

    start = gram, jnp.zeros_like(gram), jnp.zeros(size, int), jnp.ones(size, bool)
    left, factor, chosen, _ = jax.lax.fori_loop(0, size, one, start)
    return factor, chosen, jnp.trace(left)


def extend(span, used, values, tolerance):
    """Orthonormal directions over the sites, joined by what is new in `values` (sites by labels).

    Gives the coordinates of the values, the span, how many directions it has, and the share of variance
    that was left out.
    """
    sites, most = span.shape
    labels = values.shape[1]
    rows = values.T @ span / sites
    left = values - span @ rows.T
    again = left.T @ span / sites
    rows, left = rows + again, left - span @ again.T
    size = jnp.max(jnp.mean(values**2, axis=0))
    factor, chosen, lost = pivoted(left.T @ left / sites, tolerance * size)
    taken = jnp.any(factor != 0.0, axis=0)
    places = jnp.where(taken, used + jnp.arange(labels), most)
    lower = jnp.where(taken, factor[chosen], jnp.eye(labels))
    made = jax.scipy.linalg.solve_triangular(lower, left[:, chosen].T, lower=True).T
    new_span = span.at[:, places].set(made, mode="drop")
    rows = rows.at[:, places].add(factor, mode="drop")
    lost = lost + jnp.sum(jnp.where(places >= most, jnp.sum(factor**2, axis=0), 0.0))
    used = jnp.minimum(used + jnp.sum(taken), most)
    share = lost / jnp.maximum(jnp.sum(jnp.mean(values**2, axis=0)), 1e-300)
    return rows, new_span, used, share


def response_matrix(seen, noise, rows, entries, reach, tolerance):
    """Responses R from correlations with noises, seen = R noise, where R reaches back in time only.

    rows, entries: the times of fields and of noises; reach: how much earlier a noise must be to count. A
    noise that earlier ones determine, but for a share `tolerance` of its variance, is left out.
    """
    count = noise.shape[0]
    sequence = jnp.argsort(entries, stable=True)

    def one(k, state):
        factor, taken = state
        i = sequence[k]
        left = noise[:, i] - factor @ factor[i]
        take = left[i] > tolerance * noise[i, i]
        column = jnp.where(take, left / jnp.sqrt(jnp.where(take, left[i], 1.0)), 0.0)
        return factor.at[:, k].set(column), taken.at[k].set(take)

    start = jnp.zeros((count, count)), jnp.zeros(count, bool)
    factor, taken = jax.lax.fori_loop(0, count, one, start)
    lower = jnp.where(taken[:, None] & taken[None, :], factor[sequence], jnp.eye(count))
    solved = jax.scipy.linalg.solve_triangular(lower, (seen[:, sequence] * taken).T, lower=True).T
    causal = entries[sequence][None, :] + reach[sequence][None, :] <= rows[:, None]
    solved = jax.scipy.linalg.solve_triangular(lower.T, (solved * causal * taken).T, lower=False).T
    return jnp.zeros_like(seen).at[:, sequence].set(solved * taken)


def forward_pass(alpha, sigma, theta, kappa, S, normals, rank=None, tolerance=1e-12):
    """What order parameters are made of (see order_parameters), observables at all times, the number of times
    before anything overflowed, and a report on the directions that are remembered.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each
    span of fields, all if None. tolerance: share of its variance below which a new direction is left
    out.
    """
    steps, times = S, S
    when = jnp.arange(times)  # noqa: F841
    size_W0 = room(times, rank)  # directions of phi
    size_W0T = room(times, rank)  # directions of g
    size_chi = room(times, rank)  # directions of chi
    size_xi = room(times, rank)  # directions of xi
    in_W0T = jnp.arange(size_W0T)
    in_W0 = jnp.arange(size_W0)
    sites = normals["W0"].shape[0]
    span_xi = jnp.zeros((sites, size_xi))
    used_xi = 0
    span_chi = jnp.zeros((sites, size_chi))
    used_chi = 0
    span_W0T = jnp.zeros((sites, size_W0T))
    used_W0T = 0
    span_W0 = jnp.zeros((sites, size_W0))
    used_W0 = 0
    lost = 0.0
    a = jnp.moveaxis(normals["a"], 1, 0)
    b = jnp.moveaxis(normals["b"], 1, 0)
    # how many times are free of overflow
    finite = 0
    row_phi = jnp.zeros((times, size_W0))
    row_chi = jnp.zeros((times, size_chi))
    row_g = jnp.zeros((times, size_W0T))
    row_xi = jnp.zeros((times, size_xi))
    answer_g_W0 = jnp.zeros((times, size_W0))
    answer_phi_W0T = jnp.zeros((times, size_W0T))
    seen_phi_norm = jnp.zeros(times)
    seen_g_norm = jnp.zeros(times)
    seen_alignment = jnp.zeros(times)

    def step(t, state):
        (
            span_W0,
            used_W0,
            span_W0T,
            used_W0T,
            span_chi,
            used_chi,
            span_xi,
            used_xi,
            row_phi,
            row_chi,
            row_g,
            row_xi,
            answer_g_W0,
            answer_phi_W0T,
            seen_phi_norm,
            seen_g_norm,
            seen_alignment,
            lost,
            finite,
        ) = state
        # phi_input(t) = sum_{s<t} xi(s)
        kernel_0 = jnp.einsum("s,sk->k", (when < t), row_xi)
        phi_input_new = jnp.einsum("k,mk->m", kernel_0, span_xi)
        phi_input_now = phi_input_new
        # phi(t) = tanh(kappa phi_input(t) + a(t))
        phi_new = (lambda a_now, phi_input_now: jnp.tanh(kappa * phi_input_now + a_now))(a[t], phi_input_now)
        phi_now = phi_new
        row_new, span_W0, used_W0, share = extend(span_W0, used_W0, phi_now[:, None], tolerance)
        row_phi_now, lost = row_new[0], jnp.maximum(lost, share)
        row_phi = row_phi.at[t].set(row_phi_now)
        answer_phi_W0T = answer_phi_W0T.at[t].set(
            phi_now.T @ normals["W0T"] / sites * (jnp.arange(size_W0T) < used_W0T)
        )
        # chi(t) = u[chi] + sum_s (sigma^2/alpha) R[phi,xi](t,s) g(s)
        row = (sigma) * row_phi_now
        chi_new = jnp.einsum("k,mk->m", row, normals["W0"])
        answer = (
            (sigma / jnp.sqrt(alpha)) * phi_now.T @ normals["W0T"] / sites * (jnp.arange(size_W0T) < used_W0T)
        )
        chi_new += jnp.einsum("k,mk->m", answer, span_W0T)
        chi_now = chi_new
        row_new, span_chi, used_chi, share = extend(span_chi, used_chi, chi_now[:, None], tolerance)
        row_chi_now, lost = row_new[0], jnp.maximum(lost, share)
        row_chi = row_chi.at[t].set(row_chi_now)
        # g_input(t) = sum_{s<t} chi(s)
        kernel_0 = jnp.einsum("s,sk->k", (when < t), row_chi)
        g_input_new = jnp.einsum("k,mk->m", kernel_0, span_chi)
        g_input_now = g_input_new
        # g(t) = theta tanh(kappa g_input(t) + b(t))
        g_new = (lambda b_now, g_input_now: theta * jnp.tanh(kappa * g_input_now + b_now))(b[t], g_input_now)
        g_now = g_new
        row_new, span_W0T, used_W0T, share = extend(span_W0T, used_W0T, g_now[:, None], tolerance)
        row_g_now, lost = row_new[0], jnp.maximum(lost, share)
        row_g = row_g.at[t].set(row_g_now)
        answer_g_W0 = answer_g_W0.at[t].set(g_now.T @ normals["W0"] / sites * (jnp.arange(size_W0) < used_W0))
        # xi(t) = u[xi] + sum_s sigma^2 R[g,chi](t,s) phi(s)
        row = (sigma / jnp.sqrt(alpha)) * row_g_now
        xi_new = jnp.einsum("k,mk->m", row, normals["W0T"])
        answer = (sigma) * g_now.T @ normals["W0"] / sites * (jnp.arange(size_W0) < used_W0)
        xi_new += jnp.einsum("k,mk->m", answer, span_W0)
        xi_now = xi_new
        row_new, span_xi, used_xi, share = extend(span_xi, used_xi, xi_now[:, None], tolerance)
        row_xi_now, lost = row_new[0], jnp.maximum(lost, share)
        row_xi = row_xi.at[t].set(row_xi_now)
        finite = jnp.where(
            (finite == t)
            & jnp.all(jnp.isfinite(phi_input_now))
            & jnp.all(jnp.isfinite(phi_now))
            & jnp.all(jnp.isfinite(chi_now))
            & jnp.all(jnp.isfinite(g_input_now))
            & jnp.all(jnp.isfinite(g_now))
            & jnp.all(jnp.isfinite(xi_now)),
            t + 1,
            finite,
        )
        seen_phi_norm = seen_phi_norm.at[t].set((phi_now**2).mean(axis=0))
        seen_g_norm = seen_g_norm.at[t].set((g_now**2).mean(axis=0))
        seen_alignment = seen_alignment.at[t].set((chi_now * g_now).mean(axis=0))
        return (
            span_W0,
            used_W0,
            span_W0T,
            used_W0T,
            span_chi,
            used_chi,
            span_xi,
            used_xi,
            row_phi,
            row_chi,
            row_g,
            row_xi,
            answer_g_W0,
            answer_phi_W0T,
            seen_phi_norm,
            seen_g_norm,
            seen_alignment,
            lost,
            finite,
        )

    (
        span_W0,
        used_W0,
        span_W0T,
        used_W0T,
        span_chi,
        used_chi,
        span_xi,
        used_xi,
        row_phi,
        row_chi,
        row_g,
        row_xi,
        answer_g_W0,
        answer_phi_W0T,
        seen_phi_norm,
        seen_g_norm,
        seen_alignment,
        lost,
        finite,
    ) = jax.lax.fori_loop(
        0,
        times,
        step,
        (
            span_W0,
            used_W0,
            span_W0T,
            used_W0T,
            span_chi,
            used_chi,
            span_xi,
            used_xi,
            row_phi,
            row_chi,
            row_g,
            row_xi,
            answer_g_W0,
            answer_phi_W0T,
            seen_phi_norm,
            seen_g_norm,
            seen_alignment,
            lost,
            finite,
        ),
    )

    noise_W0 = (sigma) * row_phi[:steps].reshape(-1, size_W0)  # each noise in terms of the normals
    noise_W0T = (sigma / jnp.sqrt(alpha)) * row_g[:steps].reshape(
        -1, size_W0T
    )  # each noise in terms of the normals
    moments = {
        "C_g_g": row_g[:steps].reshape(-1, size_W0T) @ row_g[:steps].reshape(-1, size_W0T).T,
        "C_phi_phi": row_phi[:steps].reshape(-1, size_W0) @ row_phi[:steps].reshape(-1, size_W0).T,
        "G_W0": noise_W0 @ noise_W0.T,
        "G_W0T": noise_W0T @ noise_W0T.T,
        "K_g_W0": answer_g_W0[:steps].reshape(-1, size_W0) @ noise_W0.T,
        "K_phi_W0T": answer_phi_W0T[:steps].reshape(-1, size_W0T) @ noise_W0T.T,
    }
    observables = {
        "phi_norm": seen_phi_norm,
        "g_norm": seen_g_norm,
        "alignment": seen_alignment,
    }
    return (
        moments,
        observables,
        finite,
        {"lost": lost, "directions": {"W0": used_W0, "W0T": used_W0T, "chi": used_chi, "xi": used_xi}},
    )


def strides(alpha, sigma, theta, kappa, S):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        "C_g_g": (1, 1),
        "C_phi_phi": (1, 1),
        "R_g_chi": (1, 1),
        "R_phi_xi": (1, 1),
    }


def shapes(alpha, sigma, theta, kappa, S, rank=None):
    """Entries of standard normals that each kind of random number takes, one site of each kind."""
    steps, times = S, S
    return {"W0": (room(times, rank),), "W0T": (room(times, rank),), "a": (times,), "b": (times,)}


def order_parameters(moments, alpha, sigma, theta, kappa, S, tolerance=1e-12):
    """Correlations and responses before the last update, times by times, from averaged moments."""
    steps, times = S, S
    R_g_W0 = response_matrix(
        moments["K_g_W0"],
        moments["G_W0"],
        jnp.arange(steps),
        jnp.arange(steps),
        jnp.full(steps, 1),
        tolerance,
    )
    R_phi_W0T = response_matrix(
        moments["K_phi_W0T"],
        moments["G_W0T"],
        jnp.arange(steps),
        jnp.arange(steps),
        jnp.full(steps, 1),
        tolerance,
    )
    return {
        "C_g_g": moments["C_g_g"],
        "C_phi_phi": moments["C_phi_phi"],
        "R_g_chi": R_g_W0,
        "R_phi_xi": R_phi_W0T,
    }


def footprint(alpha, sigma, theta, kappa, S, rank=None):
    """How many numbers are kept for one site of each kind."""
    steps, times = S, S
    size_W0 = room(times, rank)  # directions of phi
    size_W0T = room(times, rank)  # directions of g
    size_chi = room(times, rank)  # directions of chi
    size_xi = room(times, rank)  # directions of xi
    return (size_W0 + size_xi + 1 + 1 + 1) + (size_W0T + size_chi + 1 + 1 + 1)


# normals that belong to the same sites
GROUPS = (
    (
        "W0T",
        "a",
    ),
    (
        "W0",
        "b",
    ),
)
RESPONSES = "stein"
