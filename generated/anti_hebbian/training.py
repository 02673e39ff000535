# Written by `derive build anti_hebbian` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def forward_pass(gamma0, dt, T):
    """Order parameters before the last update (C_v_v, R_v_M0_v: times by times), observables at all times, and the
    number of times before anything overflowed.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.
    """
    steps = T
    # how many times are free of overflow
    finite = 0
    before = ()
    for begin, times in stages(T + 1):
        when = jnp.arange(times)
        # a site of D is described by M0_v, start
        in_start = jnp.asarray(0)
        in_M0_v = 1 + when
        size_D = 1 + times
        cov_D = jnp.zeros((size_D, size_D))
        start = unit(in_start, size_D)
        cov_D = put(cov_D, in_start, in_start, jnp.eye(in_start.size))
        v = jnp.zeros((times, size_D))
        M0_v = jnp.zeros((times, size_D))
        if begin:
            old_D = jnp.concatenate([in_start.reshape(-1), in_M0_v[:begin].reshape(-1)])
            v = v.at[:begin, ..., old_D].set(before[0])
            M0_v = M0_v.at[:begin, ..., old_D].set(before[1])
            cov_D = cov_D.at[old_D[:, None], old_D].set(before[2])

        def step(t, state):
            v, M0_v, cov_D, finite = state
            # v(t) = v(t-1) - dt M0_v(t-1) - dt^2 gamma0 sum_{s<t-1} <v(s) v(t-1)> v(s)
            v_new = (
                (-dt) * earlier(M0_v, t, 1)
                + jnp.einsum(
                    "s,s,sn->n",
                    (-(dt**2) * gamma0) * (when < t - 1),
                    jnp.einsum("sm,m->s", v, earlier(v, t, 1) @ cov_D),
                    v,
                )
                + earlier(v, t, 1)
            )
            v_start = start
            v_new = jnp.where(t == 0, v_start, v_new)
            # M0_v(t) = u[M0_v] + sum_s R[v,M0_v](t,s) v(s)
            M0_v_new = unit(in_M0_v[t], size_D)
            M0_v_new += jnp.einsum("s,sn->n", v_new[..., in_M0_v], v)
            M0_v_new += jnp.einsum(",n->n", v_new[..., in_M0_v[t]], v_new)
            cov_D = put(cov_D, in_M0_v[t], in_M0_v, jnp.einsum("sm,m->s", v, v_new @ cov_D))
            cov_D = put(cov_D, in_M0_v[t], in_M0_v[t], jnp.einsum("m,m->", v_new, v_new @ cov_D))
            finite = jnp.where(
                (finite == t)
                & jnp.all(jnp.isfinite(v_new))
                & jnp.all(jnp.isfinite(M0_v_new))
                & jnp.all(jnp.isfinite(jnp.diagonal(cov_D))),
                t + 1,
                finite,
            )
            # keep this time: `here` is t, told only when all is computed, so that arrays are changed in place
            here = t + (finite < 0)
            v = jax.lax.dynamic_update_index_in_dim(v, v_new, here, 0)
            M0_v = jax.lax.dynamic_update_index_in_dim(M0_v, M0_v_new, here, 0)
            return v, M0_v, cov_D, finite

        v, M0_v, cov_D, finite = jax.lax.fori_loop(begin, times, step, (v, M0_v, cov_D, finite))
        before = (
            v,
            M0_v,
            cov_D,
        )

    order = {
        "C_v_v": v[:steps].reshape(-1, size_D) @ cov_D @ v[:steps].reshape(-1, size_D).T,
        "R_v_M0_v": v[:steps].reshape(-1, size_D)[:, in_M0_v[:steps].reshape(-1)],
    }
    observables = {
        "activity": (jnp.sum((v @ cov_D) * v, axis=-1)),
        "memory": (jnp.sum((start @ cov_D) * v, axis=-1)),
    }
    return order, observables, finite


def strides(gamma0, dt, T):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        "C_v_v": (1, 1),
        "R_v_M0_v": (1, 1),
    }
