# Written by `derive build deep_linear L=2 data=full_batch param=mup` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def forward_pass(alpha, nu, gamma0, eta, sigma, T, C):
    """Order parameters before the last update (C_g1_g1, C_g2_g2, C_h0_h0, C_h1_h1, R_g1_J0_h0, R_g2_J1_h1, R_h0_J0T_g1, R_h1_J1T_g2: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """
    steps = T
    # how many times are free of overflow
    finite = 0
    before = ()
    for begin, times in stages(T + 1):
        when = jnp.arange(times)
        label = jnp.arange(C)
        # a site of N2 is described by J1_h1, readout
        in_readout = label
        in_J1_h1 = (C + C * when)[:, None] + label
        size_N2 = C + C * times
        # a site of N1 is described by J1T_g2, J0_h0
        in_J1T_g2 = (C * when)[:, None] + label
        in_J0_h0 = (C * times + C * when)[:, None] + label
        size_N1 = C * times + C * times
        # a site of D is described by J0T_g1, h0, teacher
        in_teacher = label
        in_J0T_g1 = (C + C * when)[:, None] + label
        in_h0 = (C + C * times + C * when)[:, None] + label
        size_D = C + C * times + C * times
        # a site of P is described by X_v, eps
        in_eps = label
        in_X_v = (C + C * when)[:, None] + label
        size_P = C + C * times
        cov_N2 = jnp.zeros((size_N2, size_N2))
        readout = unit(in_readout, size_N2)
        cov_N2 = put(cov_N2, in_readout, in_readout, jnp.eye(in_readout.size))
        cov_N1 = jnp.zeros((size_N1, size_N1))
        cov_D = jnp.zeros((size_D, size_D))
        teacher = unit(in_teacher, size_D)
        cov_D = put(cov_D, in_teacher, in_teacher, jnp.eye(in_teacher.size))
        cov_P = jnp.zeros((size_P, size_P))
        eps = unit(in_eps, size_P)
        cov_P = put(cov_P, in_eps, in_eps, jnp.eye(in_eps.size))
        g2 = jnp.zeros((times, C, size_N2))
        g1 = jnp.zeros((times, C, size_N1))
        v = jnp.zeros((times, C, size_D))
        delta = jnp.zeros((times, C, size_P))
        h0 = jnp.zeros((times, C, size_D))
        h1 = jnp.zeros((times, C, size_N1))
        h2 = jnp.zeros((times, C, size_N2))
        if begin:
            old_N2 = jnp.concatenate([in_readout.reshape(-1), in_J1_h1[:begin].reshape(-1)])
            old_N1 = jnp.concatenate([in_J1T_g2[:begin].reshape(-1), in_J0_h0[:begin].reshape(-1)])
            old_D = jnp.concatenate(
                [in_teacher.reshape(-1), in_J0T_g1[:begin].reshape(-1), in_h0[:begin].reshape(-1)]
            )
            old_P = jnp.concatenate([in_eps.reshape(-1), in_X_v[:begin].reshape(-1)])
            g2 = g2.at[:begin, ..., old_N2].set(before[0])
            g1 = g1.at[:begin, ..., old_N1].set(before[1])
            v = v.at[:begin, ..., old_D].set(before[2])
            delta = delta.at[:begin, ..., old_P].set(before[3])
            h0 = h0.at[:begin, ..., old_D].set(before[4])
            h1 = h1.at[:begin, ..., old_N1].set(before[5])
            h2 = h2.at[:begin, ..., old_N2].set(before[6])
            cov_N2 = cov_N2.at[old_N2[:, None], old_N2].set(before[7])
            cov_N1 = cov_N1.at[old_N1[:, None], old_N1].set(before[8])
            cov_D = cov_D.at[old_D[:, None], old_D].set(before[9])
            cov_P = cov_P.at[old_P[:, None], old_P].set(before[10])

        def step(t, state):
            g2, g1, v, delta, h0, h1, h2, cov_N2, cov_N1, cov_D, cov_P, finite = state
            # g2(t) = eta gamma0 h2(t-1) + g2(t-1)
            g2_new = (eta * gamma0) * earlier(h2, t, 1) + earlier(g2, t, 1)
            g2_start = readout
            g2_new = jnp.where(t == 0, g2_start, g2_new)
            # J1T_g2(t) = u[J1T_g2] + sum_s R[g2,J1_h1](t,s) h1(s)
            J1T_g2_new = unit(in_J1T_g2[t], size_N1)
            J1T_g2_new += jnp.einsum("csb,sbn->cn", g2_new[..., in_J1_h1], h1)
            cov_N1 = put(cov_N1, in_J1T_g2[t], in_J1T_g2, jnp.einsum("sbm,cm->sbc", g2, g2_new @ cov_N2))
            cov_N1 = put(cov_N1, in_J1T_g2[t], in_J1T_g2[t], jnp.einsum("bm,cm->bc", g2_new, g2_new @ cov_N2))
            # g1(t) = J1T_g2(t) + eta gamma0 sum_{s<t} <g2(t) g2(s)> h1(s)
            g1_new = (
                jnp.einsum(
                    "s,sbc,sbn->cn",
                    (eta * gamma0) * (when < t),
                    jnp.einsum("sbm,cm->sbc", g2, g2_new @ cov_N2),
                    h1,
                )
                + J1T_g2_new
            )
            # J0T_g1(t) = u[J0T_g1] + sum_s R[g1,J0_h0](t,s) h0(s)
            J0T_g1_new = unit(in_J0T_g1[t], size_D)
            J0T_g1_new += jnp.einsum("csb,sbn->cn", g1_new[..., in_J0_h0], h0)
            cov_D = put(
                cov_D,
                in_J0T_g1[t],
                in_J0T_g1,
                (nu ** (-1.0)) * jnp.einsum("sbm,cm->sbc", g1, g1_new @ cov_N1),
            )
            cov_D = put(
                cov_D,
                in_J0T_g1[t],
                in_J0T_g1[t],
                (nu ** (-1.0)) * jnp.einsum("bm,cm->bc", g1_new, g1_new @ cov_N1),
            )
            # v(t) = teacher - J0T_g1(t)/gamma0 - eta sum_{s<t} <g1(t) g1(s)> h0(s)
            v_new = (
                (-1 / gamma0) * J0T_g1_new
                + jnp.einsum(
                    "s,sbc,sbn->cn", (-eta) * (when < t), jnp.einsum("sbm,cm->sbc", g1, g1_new @ cov_N1), h0
                )
                + teacher
            )
            # X_v(t) = u[X_v] + sum_s R[v,h0](t,s) delta(s)/alpha
            X_v_new = unit(in_X_v[t], size_P)
            X_v_new += (alpha ** (-1.0)) * jnp.einsum("csb,sbn->cn", v_new[..., in_h0], delta)
            cov_P = put(cov_P, in_X_v[t], in_X_v, jnp.einsum("sbm,cm->sbc", v, v_new @ cov_D))
            cov_P = put(cov_P, in_X_v[t], in_X_v[t], jnp.einsum("bm,cm->bc", v_new, v_new @ cov_D))
            # delta(t) = sigma eps + X_v(t)
            delta_new = (sigma) * eps + X_v_new
            # h0(t) = u[h0] + sum_s R[delta,X_v](t,s) v(s)
            h0_new = unit(in_h0[t], size_D)
            h0_new += jnp.einsum("csb,sbn->cn", delta_new[..., in_X_v], v)
            h0_new += jnp.einsum("cb,bn->cn", delta_new[..., in_X_v[t]], v_new)
            cov_D = put(
                cov_D,
                in_h0[t],
                in_h0,
                (alpha ** (-1.0)) * jnp.einsum("sbm,cm->sbc", delta, delta_new @ cov_P),
            )
            cov_D = put(
                cov_D,
                in_h0[t],
                in_h0[t],
                (alpha ** (-1.0)) * jnp.einsum("bm,cm->bc", delta_new, delta_new @ cov_P),
            )
            # J0_h0(t) = u[J0_h0] + sum_s R[h0,J0T_g1](t,s) g1(s)/nu
            J0_h0_new = unit(in_J0_h0[t], size_N1)
            J0_h0_new += (nu ** (-1.0)) * jnp.einsum("csb,sbn->cn", h0_new[..., in_J0T_g1], g1)
            J0_h0_new += (nu ** (-1.0)) * jnp.einsum("cb,bn->cn", h0_new[..., in_J0T_g1[t]], g1_new)
            cov_N1 = put(cov_N1, in_J0_h0[t], in_J0_h0, jnp.einsum("sbm,cm->sbc", h0, h0_new @ cov_D))
            cov_N1 = put(cov_N1, in_J0_h0[t], in_J0_h0[t], jnp.einsum("bm,cm->bc", h0_new, h0_new @ cov_D))
            # h1(t) = J0_h0(t) + eta gamma0 sum_{s<t} <h0(t) h0(s)> g1(s)
            h1_new = (
                jnp.einsum(
                    "s,sbc,sbn->cn",
                    (eta * gamma0) * (when < t),
                    jnp.einsum("sbm,cm->sbc", h0, h0_new @ cov_D),
                    g1,
                )
                + J0_h0_new
            )
            # J1_h1(t) = u[J1_h1] + sum_s R[h1,J1T_g2](t,s) g2(s)
            J1_h1_new = unit(in_J1_h1[t], size_N2)
            J1_h1_new += jnp.einsum("csb,sbn->cn", h1_new[..., in_J1T_g2], g2)
            J1_h1_new += jnp.einsum("cb,bn->cn", h1_new[..., in_J1T_g2[t]], g2_new)
            cov_N2 = put(cov_N2, in_J1_h1[t], in_J1_h1, jnp.einsum("sbm,cm->sbc", h1, h1_new @ cov_N1))
            cov_N2 = put(cov_N2, in_J1_h1[t], in_J1_h1[t], jnp.einsum("bm,cm->bc", h1_new, h1_new @ cov_N1))
            # h2(t) = J1_h1(t) + eta gamma0 sum_{s<t} <h1(t) h1(s)> g2(s)
            h2_new = (
                jnp.einsum(
                    "s,sbc,sbn->cn",
                    (eta * gamma0) * (when < t),
                    jnp.einsum("sbm,cm->sbc", h1, h1_new @ cov_N1),
                    g2,
                )
                + J1_h1_new
            )
            finite = jnp.where(
                (finite == t)
                & jnp.all(jnp.isfinite(g2_new))
                & jnp.all(jnp.isfinite(J1T_g2_new))
                & jnp.all(jnp.isfinite(g1_new))
                & jnp.all(jnp.isfinite(J0T_g1_new))
                & jnp.all(jnp.isfinite(v_new))
                & jnp.all(jnp.isfinite(X_v_new))
                & jnp.all(jnp.isfinite(delta_new))
                & jnp.all(jnp.isfinite(h0_new))
                & jnp.all(jnp.isfinite(J0_h0_new))
                & jnp.all(jnp.isfinite(h1_new))
                & jnp.all(jnp.isfinite(J1_h1_new))
                & jnp.all(jnp.isfinite(h2_new))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_N2)))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_N1)))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_D)))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_P))),
                t + 1,
                finite,
            )
            # keep this time: `here` is t, told only when all is computed, so that arrays are changed in place
            here = t + (finite < 0)
            g2 = jax.lax.dynamic_update_index_in_dim(g2, g2_new, here, 0)
            g1 = jax.lax.dynamic_update_index_in_dim(g1, g1_new, here, 0)
            v = jax.lax.dynamic_update_index_in_dim(v, v_new, here, 0)
            delta = jax.lax.dynamic_update_index_in_dim(delta, delta_new, here, 0)
            h0 = jax.lax.dynamic_update_index_in_dim(h0, h0_new, here, 0)
            h1 = jax.lax.dynamic_update_index_in_dim(h1, h1_new, here, 0)
            h2 = jax.lax.dynamic_update_index_in_dim(h2, h2_new, here, 0)
            return g2, g1, v, delta, h0, h1, h2, cov_N2, cov_N1, cov_D, cov_P, finite

        g2, g1, v, delta, h0, h1, h2, cov_N2, cov_N1, cov_D, cov_P, finite = jax.lax.fori_loop(
            begin, times, step, (g2, g1, v, delta, h0, h1, h2, cov_N2, cov_N1, cov_D, cov_P, finite)
        )
        before = (
            g2,
            g1,
            v,
            delta,
            h0,
            h1,
            h2,
            cov_N2,
            cov_N1,
            cov_D,
            cov_P,
        )

    order = {
        "C_g1_g1": g1[:steps].reshape(-1, size_N1) @ cov_N1 @ g1[:steps].reshape(-1, size_N1).T,
        "C_g2_g2": g2[:steps].reshape(-1, size_N2) @ cov_N2 @ g2[:steps].reshape(-1, size_N2).T,
        "C_h0_h0": h0[:steps].reshape(-1, size_D) @ cov_D @ h0[:steps].reshape(-1, size_D).T,
        "C_h1_h1": h1[:steps].reshape(-1, size_N1) @ cov_N1 @ h1[:steps].reshape(-1, size_N1).T,
        "R_g1_J0_h0": g1[:steps].reshape(-1, size_N1)[:, in_J0_h0[:steps].reshape(-1)],
        "R_g2_J1_h1": g2[:steps].reshape(-1, size_N2)[:, in_J1_h1[:steps].reshape(-1)],
        "R_h0_J0T_g1": h0[:steps].reshape(-1, size_D)[:, in_J0T_g1[:steps].reshape(-1)],
        "R_h1_J1T_g2": h1[:steps].reshape(-1, size_N1)[:, in_J1T_g2[:steps].reshape(-1)],
    }
    observables = {
        "train_loss": (jnp.sum((delta @ cov_P) * delta, axis=-1).mean(axis=-1)),
        "test_loss": sigma**2 + (jnp.sum((v @ cov_D) * v, axis=-1).mean(axis=-1)),
    }
    return order, observables, finite


def strides(alpha, nu, gamma0, eta, sigma, T, C):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        "C_g1_g1": (C, C),
        "C_g2_g2": (C, C),
        "C_h0_h0": (C, C),
        "C_h1_h1": (C, C),
        "R_g1_J0_h0": (C, C),
        "R_g2_J1_h1": (C, C),
        "R_h0_J0T_g1": (C, C),
        "R_h1_J1T_g2": (C, C),
    }
