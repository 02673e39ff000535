# Written by `derive build coupled_spikes_tanh` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level by sampling: many sites forward in time, responses by automatic differentiation of each law."""

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp  # noqa: F401


def earlier(rows, time, lag):
    """The row `lag` steps before `time`; before the start everything is zero."""
    return jnp.where(time >= lag, rows[time - lag], 0.0)


def delayed(rows, lag):
    """All rows, moved `lag` steps later."""
    return jnp.concatenate([jnp.zeros_like(rows[:lag]), rows[: rows.shape[0] - lag]])


def unit(position, size):
    """Unit vectors of the noise basis at the given positions."""
    return (position[..., None] == jnp.arange(size)).astype(float)


def put(matrix, rows, columns, values):
    """A symmetric matrix with values written at rows x columns and, transposed, at columns x rows."""
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    values = values.reshape(rows.size, columns.size)
    matrix = matrix.at[rows[:, None], columns[None, :]].set(values)
    return matrix.at[columns[:, None], rows[None, :]].set(values.T)


def extend(factor, covariance, rows):
    """The Cholesky factor of the noises so far, with the rows of new noises filled in."""
    rows = rows.reshape(-1)
    past = jnp.arange(factor.shape[0]) < rows[0]
    cross = jnp.where(past, covariance[rows], 0.0)
    lower = jax.scipy.linalg.solve_triangular(factor, cross.T, lower=True).T * past
    left = covariance[rows[:, None], rows[None, :]] - lower @ lower.T
    tiny = 1e-13 * (1.0 + jnp.trace(covariance[rows[:, None], rows[None, :]]))
    inner = jnp.linalg.cholesky(left + tiny * jnp.eye(rows.size))
    return factor.at[rows].set(lower.at[:, rows].set(inner))


def law_and_slope(law, values, slopes):
    """A law at the given values, and its derivatives by every noise from those of its arguments."""
    value, push = jax.linearize(law, *values)
    return value, jax.vmap(push, in_axes=-1, out_axes=-1)(*slopes)


def forward_pass(alpha, sigma, theta, kappa, S, normals):
    """Order parameters before the last update (C_g_g, C_phi_phi, R_g_chi, R_phi_xi: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """
    steps, times = S, S
    when = jnp.arange(times)
    # a site of N0 is described by xi
    in_xi = when
    size_N0 = times
    # a site of N1 is described by chi
    in_chi = when
    size_N1 = times
    sites = normals["noise_N0"].shape[0]
    cov_N0 = jnp.zeros((size_N0, size_N0))
    factor_N0 = jnp.eye(size_N0)
    a = jnp.moveaxis(normals["a"], 1, 0)
    d_a = jnp.zeros((*a.shape, size_N0))
    cov_N1 = jnp.zeros((size_N1, size_N1))
    factor_N1 = jnp.eye(size_N1)
    b = jnp.moveaxis(normals["b"], 1, 0)
    d_b = jnp.zeros((*b.shape, size_N1))
    phi_input = jnp.zeros((times, sites))
    d_phi_input = jnp.zeros((times, sites, size_N0))
    phi = jnp.zeros((times, sites))
    d_phi = jnp.zeros((times, sites, size_N0))
    chi = jnp.zeros((times, sites))
    d_chi = jnp.zeros((times, sites, size_N1))
    g_input = jnp.zeros((times, sites))
    d_g_input = jnp.zeros((times, sites, size_N1))
    g = jnp.zeros((times, sites))
    d_g = jnp.zeros((times, sites, size_N1))
    xi = jnp.zeros((times, sites))
    d_xi = jnp.zeros((times, sites, size_N0))
    # how many times are free of overflow
    finite = 0

    def step(t, state):
        (
            phi_input,
            d_phi_input,
            phi,
            d_phi,
            chi,
            d_chi,
            g_input,
            d_g_input,
            g,
            d_g,
            xi,
            d_xi,
            cov_N0,
            factor_N0,
            cov_N1,
            factor_N1,
            finite,
        ) = state
        # phi_input(t) = sum_{s<t} xi(s)
        phi_input_new = jnp.einsum("s,sm->m", (when < t), xi)
        d_phi_input_new = jnp.einsum("s,smn->mn", (when < t), d_xi)
        phi_input = phi_input.at[t].set(phi_input_new)
        d_phi_input = d_phi_input.at[t].set(d_phi_input_new)
        # phi(t) = tanh(kappa phi_input(t) + a(t))
        phi_new, d_phi_new = law_and_slope(
            lambda a_now, phi_input_now: jnp.tanh(kappa * phi_input_now + a_now),
            (
                a[t],
                phi_input[t],
            ),
            (
                d_a[t],
                d_phi_input[t],
            ),
        )
        phi = phi.at[t].set(phi_new)
        d_phi = d_phi.at[t].set(d_phi_new)
        # chi(t) = u[chi] + sum_s (sigma^2/alpha) R[phi,xi](t,s) g(s)
        cov_N1 = put(cov_N1, in_chi[t], in_chi, (sigma**2) * jnp.einsum("m,sm->s", phi[t], phi) / sites)
        factor_N1 = extend(factor_N1, cov_N1, in_chi[t])
        chi_new = normals["noise_N1"] @ factor_N1[in_chi[t]].T
        d_chi_new = jnp.broadcast_to(unit(in_chi[t], size_N1), (*(sites,), size_N1))
        response = (sigma**2 / alpha) * d_phi[t][..., in_xi].mean(axis=0)
        chi_new += jnp.einsum("s,sm->m", response, g)
        d_chi_new += jnp.einsum("s,smn->mn", response, d_g)
        chi = chi.at[t].set(chi_new)
        d_chi = d_chi.at[t].set(d_chi_new)
        # g_input(t) = sum_{s<t} chi(s)
        g_input_new = jnp.einsum("s,sm->m", (when < t), chi)
        d_g_input_new = jnp.einsum("s,smn->mn", (when < t), d_chi)
        g_input = g_input.at[t].set(g_input_new)
        d_g_input = d_g_input.at[t].set(d_g_input_new)
        # g(t) = theta tanh(kappa g_input(t) + b(t))
        g_new, d_g_new = law_and_slope(
            lambda b_now, g_input_now: theta * jnp.tanh(kappa * g_input_now + b_now),
            (
                b[t],
                g_input[t],
            ),
            (
                d_b[t],
                d_g_input[t],
            ),
        )
        g = g.at[t].set(g_new)
        d_g = d_g.at[t].set(d_g_new)
        # xi(t) = u[xi] + sum_s sigma^2 R[g,chi](t,s) phi(s)
        cov_N0 = put(cov_N0, in_xi[t], in_xi, (sigma**2 / alpha) * jnp.einsum("m,sm->s", g[t], g) / sites)
        factor_N0 = extend(factor_N0, cov_N0, in_xi[t])
        xi_new = normals["noise_N0"] @ factor_N0[in_xi[t]].T
        d_xi_new = jnp.broadcast_to(unit(in_xi[t], size_N0), (*(sites,), size_N0))
        response = (sigma**2) * d_g[t][..., in_chi].mean(axis=0)
        xi_new += jnp.einsum("s,sm->m", response, phi)
        d_xi_new += jnp.einsum("s,smn->mn", response, d_phi)
        xi = xi.at[t].set(xi_new)
        d_xi = d_xi.at[t].set(d_xi_new)
        finite = jnp.where(
            (finite == t)
            & jnp.all(jnp.isfinite(phi_input[t]))
            & jnp.all(jnp.isfinite(phi[t]))
            & jnp.all(jnp.isfinite(chi[t]))
            & jnp.all(jnp.isfinite(g_input[t]))
            & jnp.all(jnp.isfinite(g[t]))
            & jnp.all(jnp.isfinite(xi[t]))
            & jnp.all(jnp.isfinite(jnp.diagonal(cov_N0)))
            & jnp.all(jnp.isfinite(jnp.diagonal(cov_N1))),
            t + 1,
            finite,
        )
        return (
            phi_input,
            d_phi_input,
            phi,
            d_phi,
            chi,
            d_chi,
            g_input,
            d_g_input,
            g,
            d_g,
            xi,
            d_xi,
            cov_N0,
            factor_N0,
            cov_N1,
            factor_N1,
            finite,
        )

    (
        phi_input,
        d_phi_input,
        phi,
        d_phi,
        chi,
        d_chi,
        g_input,
        d_g_input,
        g,
        d_g,
        xi,
        d_xi,
        cov_N0,
        factor_N0,
        cov_N1,
        factor_N1,
        finite,
    ) = jax.lax.fori_loop(
        0,
        times,
        step,
        (
            phi_input,
            d_phi_input,
            phi,
            d_phi,
            chi,
            d_chi,
            g_input,
            d_g_input,
            g,
            d_g,
            xi,
            d_xi,
            cov_N0,
            factor_N0,
            cov_N1,
            factor_N1,
            finite,
        ),
    )

    order = {
        "C_g_g": jnp.moveaxis(g[:steps], 1, -1).reshape(-1, sites)
        @ jnp.moveaxis(g[:steps], 1, -1).reshape(-1, sites).T
        / sites,
        "C_phi_phi": jnp.moveaxis(phi[:steps], 1, -1).reshape(-1, sites)
        @ jnp.moveaxis(phi[:steps], 1, -1).reshape(-1, sites).T
        / sites,
        "R_g_chi": jnp.moveaxis(d_g[:steps], 1, -2)
        .reshape(-1, sites, size_N1)
        .mean(axis=1)[:, in_chi[:steps].reshape(-1)],
        "R_phi_xi": jnp.moveaxis(d_phi[:steps], 1, -2)
        .reshape(-1, sites, size_N0)
        .mean(axis=1)[:, in_xi[:steps].reshape(-1)],
    }
    observables = {
        "phi_norm": (phi**2).mean(axis=-1),
        "g_norm": (g**2).mean(axis=-1),
        "alignment": (chi * g).mean(axis=-1),
    }
    return order, observables, finite


def strides(alpha, sigma, theta, kappa, S):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        "C_g_g": (1, 1),
        "C_phi_phi": (1, 1),
        "R_g_chi": (1, 1),
        "R_phi_xi": (1, 1),
    }


def shapes(alpha, sigma, theta, kappa, S):
    """Entries of standard normals that each kind of random number takes, one site of each sector."""
    steps, times = S, S
    size_N0 = times
    size_N1 = times
    return {"noise_N0": (size_N0,), "noise_N1": (size_N1,), "a": (times,), "b": (times,)}
