# Written by `derive build coupled_spikes` (two-level-dmft 0.1.0) from a declaration; edits are lost.
# The mathematics is in derivation.md beside this file.
"""Training level, exactly: all laws are linear, so all fields are Gaussian and one forward pass is enough."""

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
    """A symmetric matrix with `values` written at rows x columns and, transposed, at columns x rows."""
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    values = values.reshape(rows.size, columns.size)
    matrix = matrix.at[rows[:, None], columns[None, :]].set(values)
    return matrix.at[columns[:, None], rows[None, :]].set(values.T)


def forward_pass(alpha, sigma, theta, kappa, S):
    """Order parameters before the last update (C_g_g, C_phi_phi, R_g_chi, R_phi_xi: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """
    steps, times = S, S
    when = jnp.arange(times)
    # a site of N0 is described by xi, a
    in_xi = (1 + 1) * when
    in_a = (1 + 1) * when + 1
    size_N0 = (1 + 1) * times
    # a site of N1 is described by chi, b
    in_chi = (1 + 1) * when
    in_b = (1 + 1) * when + 1
    size_N1 = (1 + 1) * times
    cov_N0 = jnp.zeros((size_N0, size_N0))
    a = unit(in_a, size_N0)
    cov_N0 = put(cov_N0, in_a, in_a, jnp.eye(in_a.size))
    cov_N1 = jnp.zeros((size_N1, size_N1))
    b = unit(in_b, size_N1)
    cov_N1 = put(cov_N1, in_b, in_b, jnp.eye(in_b.size))
    phi = jnp.zeros((times, size_N0))
    chi = jnp.zeros((times, size_N1))
    g = jnp.zeros((times, size_N1))
    xi = jnp.zeros((times, size_N0))
    # how many times are free of overflow
    finite = 0

    def step(t, state):
        phi, chi, g, xi, cov_N0, cov_N1, finite = state
        # phi(t) = a(t) + kappa sum_{s<t} xi(s)
        phi_new = jnp.einsum("s,sn->n", (kappa) * (when < t), xi) + a[t]
        phi = phi.at[t].set(phi_new)
        # chi(t) = u[chi] + sum_s (sigma^2/alpha) R[phi,xi](t,s) g(s)
        chi_new = unit(in_chi[t], size_N1)
        chi_new += (sigma**2 / alpha) * jnp.einsum("s,sn->n", phi[t][..., in_xi], g)
        chi = chi.at[t].set(chi_new)
        cov_N1 = put(cov_N1, in_chi[t], in_chi, (sigma**2) * jnp.einsum("m,sm->s", phi[t] @ cov_N0, phi))
        # g(t) = theta b(t) + kappa theta sum_{s<t} chi(s)
        g_new = (theta) * b[t] + jnp.einsum("s,sn->n", (kappa * theta) * (when < t), chi)
        g = g.at[t].set(g_new)
        # xi(t) = u[xi] + sum_s sigma^2 R[g,chi](t,s) phi(s)
        xi_new = unit(in_xi[t], size_N0)
        xi_new += (sigma**2) * jnp.einsum("s,sn->n", g[t][..., in_chi], phi)
        xi = xi.at[t].set(xi_new)
        cov_N0 = put(cov_N0, in_xi[t], in_xi, (sigma**2 / alpha) * jnp.einsum("m,sm->s", g[t] @ cov_N1, g))
        finite = jnp.where(
            (finite == t)
            & jnp.all(jnp.isfinite(phi[t]))
            & jnp.all(jnp.isfinite(chi[t]))
            & jnp.all(jnp.isfinite(g[t]))
            & jnp.all(jnp.isfinite(xi[t]))
            & jnp.all(jnp.isfinite(cov_N0))
            & jnp.all(jnp.isfinite(cov_N1)),
            t + 1,
            finite,
        )
        return phi, chi, g, xi, cov_N0, cov_N1, finite

    phi, chi, g, xi, cov_N0, cov_N1, finite = jax.lax.fori_loop(
        0, times, step, (phi, chi, g, xi, cov_N0, cov_N1, finite)
    )

    order = {
        "C_g_g": g[:steps].reshape(-1, size_N1) @ cov_N1 @ g[:steps].reshape(-1, size_N1).T,
        "C_phi_phi": phi[:steps].reshape(-1, size_N0) @ cov_N0 @ phi[:steps].reshape(-1, size_N0).T,
        "R_g_chi": g[:steps].reshape(-1, size_N1)[:, in_chi[:steps].reshape(-1)],
        "R_phi_xi": phi[:steps].reshape(-1, size_N0)[:, in_xi[:steps].reshape(-1)],
    }
    observables = {
        "phi_norm": (jnp.sum((phi @ cov_N0) * phi, axis=-1)),
        "g_norm": (jnp.sum((g @ cov_N1) * g, axis=-1)),
        "alignment": (jnp.sum((chi @ cov_N1) * g, axis=-1)),
    }
    return order, observables, finite
