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
    """A symmetric matrix with the block columns x rows of values and its transpose."""
    rows, columns = rows.reshape(-1), columns.reshape(-1)
    values = values.reshape(columns.size, rows.size)
    matrix = jax.lax.dynamic_update_slice(matrix, values, (columns[0], rows[0]))
    return jax.lax.dynamic_update_slice(matrix, values.T, (rows[0], columns[0]))


def stages(times):
    """First and last time of each stage: the last has all times, the ones before half of the next."""
    ends = [times]
    while ends[0] > 256:
        ends.insert(0, (ends[0] + 1) // 2)
    return tuple(zip((0, *ends[:-1]), ends))


def forward_pass(alpha, sigma, theta, kappa, S):
    """Order parameters before the last update (C_g_g, C_phi_phi, R_g_chi, R_phi_xi: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """
    steps = S
    # how many times are free of overflow
    finite = 0
    before = ()
    for begin, times in stages(S):
        when = jnp.arange(times)
        # a site of N0 is described by xi, a
        in_xi = when
        in_a = times + when
        size_N0 = times + times
        # a site of N1 is described by chi, b
        in_chi = when
        in_b = times + when
        size_N1 = times + times
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
        if begin:
            old_N0 = jnp.concatenate([in_xi[:begin].reshape(-1), in_a[:begin].reshape(-1)])
            old_N1 = jnp.concatenate([in_chi[:begin].reshape(-1), in_b[:begin].reshape(-1)])
            phi = phi.at[:begin, ..., old_N0].set(before[0])
            chi = chi.at[:begin, ..., old_N1].set(before[1])
            g = g.at[:begin, ..., old_N1].set(before[2])
            xi = xi.at[:begin, ..., old_N0].set(before[3])
            cov_N0 = cov_N0.at[old_N0[:, None], old_N0].set(before[4])
            cov_N1 = cov_N1.at[old_N1[:, None], old_N1].set(before[5])

        def step(t, state):
            phi, chi, g, xi, cov_N0, cov_N1, finite = state
            # phi(t) = a(t) + kappa sum_{s<t} xi(s)
            phi_new = jnp.einsum("s,sn->n", (kappa) * (when < t), xi) + a[t]
            # chi(t) = u[chi] + sum_s (sigma^2/alpha) R[phi,xi](t,s) g(s)
            chi_new = unit(in_chi[t], size_N1)
            chi_new += (sigma**2 / alpha) * jnp.einsum("s,sn->n", phi_new[..., in_xi], g)
            cov_N1 = put(cov_N1, in_chi[t], in_chi, (sigma**2) * jnp.einsum("sm,m->s", phi, phi_new @ cov_N0))
            cov_N1 = put(
                cov_N1, in_chi[t], in_chi[t], (sigma**2) * jnp.einsum("m,m->", phi_new, phi_new @ cov_N0)
            )
            # g(t) = theta b(t) + kappa theta sum_{s<t} chi(s)
            g_new = (theta) * b[t] + jnp.einsum("s,sn->n", (kappa * theta) * (when < t), chi)
            # xi(t) = u[xi] + sum_s sigma^2 R[g,chi](t,s) phi(s)
            xi_new = unit(in_xi[t], size_N0)
            xi_new += (sigma**2) * jnp.einsum("s,sn->n", g_new[..., in_chi], phi)
            xi_new += (sigma**2) * jnp.einsum(",n->n", g_new[..., in_chi[t]], phi_new)
            cov_N0 = put(
                cov_N0, in_xi[t], in_xi, (sigma**2 / alpha) * jnp.einsum("sm,m->s", g, g_new @ cov_N1)
            )
            cov_N0 = put(
                cov_N0, in_xi[t], in_xi[t], (sigma**2 / alpha) * jnp.einsum("m,m->", g_new, g_new @ cov_N1)
            )
            finite = jnp.where(
                (finite == t)
                & jnp.all(jnp.isfinite(phi_new))
                & jnp.all(jnp.isfinite(chi_new))
                & jnp.all(jnp.isfinite(g_new))
                & jnp.all(jnp.isfinite(xi_new))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_N0)))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_N1))),
                t + 1,
                finite,
            )
            # keep this time: `here` is t, told only when all is computed, so that arrays are changed in place
            here = t + (finite < 0)
            phi = jax.lax.dynamic_update_index_in_dim(phi, phi_new, here, 0)
            chi = jax.lax.dynamic_update_index_in_dim(chi, chi_new, here, 0)
            g = jax.lax.dynamic_update_index_in_dim(g, g_new, here, 0)
            xi = jax.lax.dynamic_update_index_in_dim(xi, xi_new, here, 0)
            return phi, chi, g, xi, cov_N0, cov_N1, finite

        phi, chi, g, xi, cov_N0, cov_N1, finite = jax.lax.fori_loop(
            begin, times, step, (phi, chi, g, xi, cov_N0, cov_N1, finite)
        )
        before = (
            phi,
            chi,
            g,
            xi,
            cov_N0,
            cov_N1,
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


def strides(alpha, sigma, theta, kappa, S):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        "C_g_g": (1, 1),
        "C_phi_phi": (1, 1),
        "R_g_chi": (1, 1),
        "R_phi_xi": (1, 1),
    }
