# Written by `derive build wide_network L=3 activation=tanh loss=square responses=automatic` (two-level-dmft 0.1.0) from a declaration; edits are lost.
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


def forward_pass(gamma, eta, sigma, P, D, B, T, draw, x, y, normals, rank=None, tolerance=1e-12):
    """What order parameters are made of (see order_parameters), observables at all times, the number of times
    before anything overflowed, and a report on the directions that are remembered.

    Whole-number arguments fix shapes: pass them as Python integers, static under jit.

    normals: as `shapes` says, with the sites in front. rank: most directions to remember of each
    span of fields, all if None. tolerance: share of its variance below which a new direction is left
    out.
    """
    steps, times = T, T + 1
    when = jnp.arange(times)  # noqa: F841
    size_J1 = room(times * B, rank)  # directions of phi1
    size_J2 = room(times * B, rank)  # directions of phi2
    size_J2T = room(times * B, rank)  # directions of g3
    size_J1T = room(times * B, rank)  # directions of g2
    in_J2 = jnp.arange(size_J2)
    in_J1 = jnp.arange(size_J1)
    in_J2T = size_J1 + jnp.arange(size_J2T)
    in_J1T = jnp.arange(size_J1T)
    sites = normals["J1"].shape[0]
    span_J1T = jnp.zeros((sites, size_J1T))
    used_J1T = 0
    span_J2T = jnp.zeros((sites, size_J2T))
    used_J2T = 0
    span_J2 = jnp.zeros((sites, size_J2))
    used_J2 = 0
    span_J1 = jnp.zeros((sites, size_J1))
    used_J1 = 0
    lost = 0.0
    V0 = (sigma) * normals["V0"]
    w0 = (sigma) * normals["w0"]
    # how many times are free of overflow
    finite = 0
    V_late1 = jnp.zeros((sites, D))
    pushed_late1 = jnp.zeros((sites, B))
    spike1_late1 = jnp.zeros((sites, B))
    w_late1 = jnp.zeros((sites,))
    row_phi1 = jnp.zeros((times, B, size_J1))
    row_phi2 = jnp.zeros((times, B, size_J2))
    row_g3 = jnp.zeros((times, B, size_J2T))
    row_g2 = jnp.zeros((times, B, size_J1T))
    row_spike2 = jnp.zeros((times, B, size_J1T))
    row_spike3 = jnp.zeros((times, B, size_J2T))
    answer_g2_J1 = jnp.zeros((times, B, size_J1))
    answer_g3_J2 = jnp.zeros((times, B, size_J2))
    answer_phi1_J1T = jnp.zeros((times, B, size_J1T))
    answer_phi2_J2T = jnp.zeros((times, B, size_J2T))
    answer_spike2_J1 = jnp.zeros((times, B, size_J1))
    answer_spike3_J2 = jnp.zeros((times, B, size_J2))
    seen_loss = jnp.zeros(times)
    seen_prediction = jnp.zeros((times, B))
    seen_features1 = jnp.zeros(times)
    seen_features2 = jnp.zeros(times)
    seen_features3 = jnp.zeros(times)
    seen_gradients1 = jnp.zeros(times)
    seen_gradients2 = jnp.zeros(times)
    seen_gradients3 = jnp.zeros(times)

    def step(t, state):
        (
            V_late1,
            pushed_late1,
            spike1_late1,
            w_late1,
            span_J1,
            used_J1,
            span_J2,
            used_J2,
            span_J2T,
            used_J2T,
            span_J1T,
            used_J1T,
            row_phi1,
            row_phi2,
            row_g3,
            row_g2,
            row_spike2,
            row_spike3,
            answer_g2_J1,
            answer_g3_J2,
            answer_phi1_J1T,
            answer_phi2_J2T,
            answer_spike2_J1,
            answer_spike3_J2,
            seen_loss,
            seen_prediction,
            seen_features1,
            seen_features2,
            seen_features3,
            seen_gradients1,
            seen_gradients2,
            seen_gradients3,
            lost,
            finite,
        ) = state
        # V(t) = V(t-1) + (eta gamma/sqrt(D)) x(t-1)^T spike1(t-1)
        V_new = (eta * gamma / jnp.sqrt(D)) * jnp.einsum(
            "dc,md->mc", jnp.where(t >= 1, x[t - 1], 0.0), spike1_late1
        ) + V_late1
        V_start = V0
        V_new = jnp.where(t == 0, V_start, V_new)
        V_now = V_new
        # w(t) = eta gamma total(pushed(t-1)) + w(t-1)
        w_new = (eta * gamma) * pushed_late1.sum(axis=1) + w_late1
        w_start = w0
        w_new = jnp.where(t == 0, w_start, w_new)
        w_now = w_new
        # h1(t) = x(t) V(t)/sqrt(D)
        h1_new = (1 / jnp.sqrt(D)) * jnp.einsum("cd,md->mc", x[t], V_now)
        h1_now = h1_new
        # phi1(t) = tanh(h1(t))
        phi1_new = (lambda h1_now: jnp.tanh(h1_now))(h1_now)
        phi1_now = phi1_new
        row_new, span_J1, used_J1, share = extend(span_J1, used_J1, phi1_now, tolerance)
        row_phi1_now, lost = row_new, jnp.maximum(lost, share)
        row_phi1 = row_phi1.at[t].set(row_phi1_now)
        answer_phi1_J1T = answer_phi1_J1T.at[t].set(
            phi1_now.T @ normals["J1T"] / sites * (jnp.arange(size_J1T) < used_J1T)
        )
        # J1_phi1(t) = u[J1_phi1] + sum_s sigma^2 R[phi1,J1T_g2](t,s) g2(s)
        row = (sigma) * row_phi1_now
        J1_phi1_new = jnp.einsum("ck,mk->mc", row, normals["J1"])
        answer = (sigma) * phi1_now.T @ normals["J1T"] / sites * (jnp.arange(size_J1T) < used_J1T)
        J1_phi1_new += jnp.einsum("ck,mk->mc", answer, span_J1T)
        J1_phi1_now = J1_phi1_new
        # h2(t) = J1_phi1(t) + eta gamma sum_{s<t} <phi1(t) phi1(s)> spike2(s)
        kernel_0 = jnp.einsum(
            "s,sbc,sbk->ck",
            (eta * gamma) * (when < t),
            jnp.einsum("sbk,kc->sbc", row_phi1, span_J1.T @ phi1_now / sites),
            row_spike2,
        )
        h2_new = jnp.einsum("ck,mk->mc", kernel_0, span_J1T) + J1_phi1_now
        h2_now = h2_new
        # phi2(t) = tanh(h2(t))
        phi2_new = (lambda h2_now: jnp.tanh(h2_now))(h2_now)
        phi2_now = phi2_new
        row_new, span_J2, used_J2, share = extend(span_J2, used_J2, phi2_now, tolerance)
        row_phi2_now, lost = row_new, jnp.maximum(lost, share)
        row_phi2 = row_phi2.at[t].set(row_phi2_now)
        answer_phi2_J2T = answer_phi2_J2T.at[t].set(
            phi2_now.T @ normals["J2T"] / sites * (jnp.arange(size_J2T) < used_J2T)
        )
        # J2_phi2(t) = u[J2_phi2] + sum_s sigma^2 R[phi2,J2T_g3](t,s) g3(s)
        row = (sigma) * row_phi2_now
        J2_phi2_new = jnp.einsum("ck,mk->mc", row, normals["J2"])
        answer = (sigma) * phi2_now.T @ normals["J2T"] / sites * (jnp.arange(size_J2T) < used_J2T)
        J2_phi2_new += jnp.einsum("ck,mk->mc", answer, span_J2T)
        J2_phi2_now = J2_phi2_new
        # h3(t) = J2_phi2(t) + eta gamma sum_{s<t} <phi2(t) phi2(s)> spike3(s)
        kernel_0 = jnp.einsum(
            "s,sbc,sbk->ck",
            (eta * gamma) * (when < t),
            jnp.einsum("sbk,kc->sbc", row_phi2, span_J2.T @ phi2_now / sites),
            row_spike3,
        )
        h3_new = jnp.einsum("ck,mk->mc", kernel_0, span_J2T) + J2_phi2_now
        h3_now = h3_new
        # phi3(t) = tanh(h3(t))
        phi3_new = (lambda h3_now: jnp.tanh(h3_now))(h3_now)
        phi3_now = phi3_new
        # pushed(t) = y(t) phi3(t)/B - <phi3(t) w(t)> phi3(t)/(B gamma)
        pushed_new = (y[t] / B) * phi3_now + (
            -(phi3_now * w_now[:, None]).mean(axis=0) / (B * gamma)
        ) * phi3_now
        pushed_now = pushed_new
        # g3(t) = w(t) - tanh(h3(t))^2 w(t)
        g3_new = (lambda h3_now, w_now: -w_now * jnp.tanh(h3_now) ** 2 + w_now)(
            h3_now, jnp.broadcast_to(w_now[:, None], (sites, B))
        )
        g3_now = g3_new
        row_new, span_J2T, used_J2T, share = extend(span_J2T, used_J2T, g3_now, tolerance)
        row_g3_now, lost = row_new, jnp.maximum(lost, share)
        row_g3 = row_g3.at[t].set(row_g3_now)
        answer_g3_J2 = answer_g3_J2.at[t].set(
            g3_now.T @ normals["J2"] / sites * (jnp.arange(size_J2) < used_J2)
        )
        # J2T_g3(t) = u[J2T_g3] + sum_s sigma^2 R[g3,J2_phi2](t,s) phi2(s)
        row = (sigma) * row_g3_now
        J2T_g3_new = jnp.einsum("ck,mk->mc", row, normals["J2T"])
        answer = (sigma) * g3_now.T @ normals["J2"] / sites * (jnp.arange(size_J2) < used_J2)
        J2T_g3_new += jnp.einsum("ck,mk->mc", answer, span_J2)
        J2T_g3_now = J2T_g3_new
        # z2(t) = J2T_g3(t) + eta gamma sum_{s<t} <g3(t) spike3(s)> phi2(s)
        kernel_0 = jnp.einsum(
            "s,sbc,sbk->ck",
            (eta * gamma) * (when < t),
            jnp.einsum("sbk,kc->sbc", row_spike3, span_J2T.T @ g3_now / sites),
            row_phi2,
        )
        z2_new = jnp.einsum("ck,mk->mc", kernel_0, span_J2) + J2T_g3_now
        z2_now = z2_new
        # g2(t) = z2(t) - tanh(h2(t))^2 z2(t)
        g2_new = (lambda h2_now, z2_now: -z2_now * jnp.tanh(h2_now) ** 2 + z2_now)(h2_now, z2_now)
        g2_now = g2_new
        row_new, span_J1T, used_J1T, share = extend(span_J1T, used_J1T, g2_now, tolerance)
        row_g2_now, lost = row_new, jnp.maximum(lost, share)
        row_g2 = row_g2.at[t].set(row_g2_now)
        answer_g2_J1 = answer_g2_J1.at[t].set(
            g2_now.T @ normals["J1"] / sites * (jnp.arange(size_J1) < used_J1)
        )
        # J1T_g2(t) = u[J1T_g2] + sum_s sigma^2 R[g2,J1_phi1](t,s) phi1(s)
        row = (sigma) * row_g2_now
        J1T_g2_new = jnp.einsum("ck,mk->mc", row, normals["J1T"])
        answer = (sigma) * g2_now.T @ normals["J1"] / sites * (jnp.arange(size_J1) < used_J1)
        J1T_g2_new += jnp.einsum("ck,mk->mc", answer, span_J1)
        J1T_g2_now = J1T_g2_new
        # z1(t) = J1T_g2(t) + eta gamma sum_{s<t} <g2(t) spike2(s)> phi1(s)
        kernel_0 = jnp.einsum(
            "s,sbc,sbk->ck",
            (eta * gamma) * (when < t),
            jnp.einsum("sbk,kc->sbc", row_spike2, span_J1T.T @ g2_now / sites),
            row_phi1,
        )
        z1_new = jnp.einsum("ck,mk->mc", kernel_0, span_J1) + J1T_g2_now
        z1_now = z1_new
        # g1(t) = z1(t) - tanh(h1(t))^2 z1(t)
        g1_new = (lambda h1_now, z1_now: -z1_now * jnp.tanh(h1_now) ** 2 + z1_now)(h1_now, z1_now)
        g1_now = g1_new
        # spike1(t) = y(t) g1(t)/B - <phi3(t) w(t)> g1(t)/(B gamma)
        spike1_new = (y[t] / B) * g1_now + (-(phi3_now * w_now[:, None]).mean(axis=0) / (B * gamma)) * g1_now
        spike1_now = spike1_new
        # spike2(t) = y(t) g2(t)/B - <phi3(t) w(t)> g2(t)/(B gamma)
        spike2_new = (y[t] / B) * g2_now + (-(phi3_now * w_now[:, None]).mean(axis=0) / (B * gamma)) * g2_now
        spike2_now = spike2_new
        row_spike2_now = (
            ((y[t] / B - (phi3_now * w_now[:, None]).mean(axis=0) / (B * gamma))[:, None]) * row_g2_now
        )
        row_spike2 = row_spike2.at[t].set(row_spike2_now)
        answer_spike2_J1 = answer_spike2_J1.at[t].set(
            spike2_now.T @ normals["J1"] / sites * (jnp.arange(size_J1) < used_J1)
        )
        # spike3(t) = y(t) g3(t)/B - <phi3(t) w(t)> g3(t)/(B gamma)
        spike3_new = (y[t] / B) * g3_now + (-(phi3_now * w_now[:, None]).mean(axis=0) / (B * gamma)) * g3_now
        spike3_now = spike3_new
        row_spike3_now = (
            ((y[t] / B - (phi3_now * w_now[:, None]).mean(axis=0) / (B * gamma))[:, None]) * row_g3_now
        )
        row_spike3 = row_spike3.at[t].set(row_spike3_now)
        answer_spike3_J2 = answer_spike3_J2.at[t].set(
            spike3_now.T @ normals["J2"] / sites * (jnp.arange(size_J2) < used_J2)
        )
        finite = jnp.where(
            (finite == t)
            & jnp.all(jnp.isfinite(V_now))
            & jnp.all(jnp.isfinite(w_now))
            & jnp.all(jnp.isfinite(h1_now))
            & jnp.all(jnp.isfinite(phi1_now))
            & jnp.all(jnp.isfinite(J1_phi1_now))
            & jnp.all(jnp.isfinite(h2_now))
            & jnp.all(jnp.isfinite(phi2_now))
            & jnp.all(jnp.isfinite(J2_phi2_now))
            & jnp.all(jnp.isfinite(h3_now))
            & jnp.all(jnp.isfinite(phi3_now))
            & jnp.all(jnp.isfinite(pushed_now))
            & jnp.all(jnp.isfinite(g3_now))
            & jnp.all(jnp.isfinite(J2T_g3_now))
            & jnp.all(jnp.isfinite(z2_now))
            & jnp.all(jnp.isfinite(g2_now))
            & jnp.all(jnp.isfinite(J1T_g2_now))
            & jnp.all(jnp.isfinite(z1_now))
            & jnp.all(jnp.isfinite(g1_now))
            & jnp.all(jnp.isfinite(spike1_now))
            & jnp.all(jnp.isfinite(spike2_now))
            & jnp.all(jnp.isfinite(spike3_now)),
            t + 1,
            finite,
        )
        seen_loss = seen_loss.at[t].set(
            jnp.sum((1 / 2) * (-y[t] + (phi3_now * w_now[:, None]).mean(axis=0) / gamma) ** 2 / B)
        )
        seen_prediction = seen_prediction.at[t].set((phi3_now * w_now[:, None]).mean(axis=0) / gamma)
        seen_features1 = seen_features1.at[t].set(jnp.mean((phi1_now**2).mean(axis=0)))
        seen_features2 = seen_features2.at[t].set(jnp.mean((phi2_now**2).mean(axis=0)))
        seen_features3 = seen_features3.at[t].set(jnp.mean((phi3_now**2).mean(axis=0)))
        seen_gradients1 = seen_gradients1.at[t].set(jnp.mean((g1_now**2).mean(axis=0)))
        seen_gradients2 = seen_gradients2.at[t].set(jnp.mean((g2_now**2).mean(axis=0)))
        seen_gradients3 = seen_gradients3.at[t].set(jnp.mean((g3_now**2).mean(axis=0)))
        V_late1 = V_now
        pushed_late1 = pushed_now
        spike1_late1 = spike1_now
        w_late1 = w_now
        return (
            V_late1,
            pushed_late1,
            spike1_late1,
            w_late1,
            span_J1,
            used_J1,
            span_J2,
            used_J2,
            span_J2T,
            used_J2T,
            span_J1T,
            used_J1T,
            row_phi1,
            row_phi2,
            row_g3,
            row_g2,
            row_spike2,
            row_spike3,
            answer_g2_J1,
            answer_g3_J2,
            answer_phi1_J1T,
            answer_phi2_J2T,
            answer_spike2_J1,
            answer_spike3_J2,
            seen_loss,
            seen_prediction,
            seen_features1,
            seen_features2,
            seen_features3,
            seen_gradients1,
            seen_gradients2,
            seen_gradients3,
            lost,
            finite,
        )

    (
        V_late1,
        pushed_late1,
        spike1_late1,
        w_late1,
        span_J1,
        used_J1,
        span_J2,
        used_J2,
        span_J2T,
        used_J2T,
        span_J1T,
        used_J1T,
        row_phi1,
        row_phi2,
        row_g3,
        row_g2,
        row_spike2,
        row_spike3,
        answer_g2_J1,
        answer_g3_J2,
        answer_phi1_J1T,
        answer_phi2_J2T,
        answer_spike2_J1,
        answer_spike3_J2,
        seen_loss,
        seen_prediction,
        seen_features1,
        seen_features2,
        seen_features3,
        seen_gradients1,
        seen_gradients2,
        seen_gradients3,
        lost,
        finite,
    ) = jax.lax.fori_loop(
        0,
        times,
        step,
        (
            V_late1,
            pushed_late1,
            spike1_late1,
            w_late1,
            span_J1,
            used_J1,
            span_J2,
            used_J2,
            span_J2T,
            used_J2T,
            span_J1T,
            used_J1T,
            row_phi1,
            row_phi2,
            row_g3,
            row_g2,
            row_spike2,
            row_spike3,
            answer_g2_J1,
            answer_g3_J2,
            answer_phi1_J1T,
            answer_phi2_J2T,
            answer_spike2_J1,
            answer_spike3_J2,
            seen_loss,
            seen_prediction,
            seen_features1,
            seen_features2,
            seen_features3,
            seen_gradients1,
            seen_gradients2,
            seen_gradients3,
            lost,
            finite,
        ),
    )

    noise_J1 = (sigma) * row_phi1[:steps].reshape(-1, size_J1)  # each noise in terms of the normals
    noise_J2 = (sigma) * row_phi2[:steps].reshape(-1, size_J2)  # each noise in terms of the normals
    noise_J1T = (sigma) * row_g2[:steps].reshape(-1, size_J1T)  # each noise in terms of the normals
    noise_J2T = (sigma) * row_g3[:steps].reshape(-1, size_J2T)  # each noise in terms of the normals
    moments = {
        "C_g2_g2": row_g2[:steps].reshape(-1, size_J1T) @ row_g2[:steps].reshape(-1, size_J1T).T,
        "C_g2_spike2": row_g2[:steps].reshape(-1, size_J1T) @ row_spike2[:steps].reshape(-1, size_J1T).T,
        "C_g3_g3": row_g3[:steps].reshape(-1, size_J2T) @ row_g3[:steps].reshape(-1, size_J2T).T,
        "C_g3_spike3": row_g3[:steps].reshape(-1, size_J2T) @ row_spike3[:steps].reshape(-1, size_J2T).T,
        "C_phi1_phi1": row_phi1[:steps].reshape(-1, size_J1) @ row_phi1[:steps].reshape(-1, size_J1).T,
        "C_phi2_phi2": row_phi2[:steps].reshape(-1, size_J2) @ row_phi2[:steps].reshape(-1, size_J2).T,
        "C_spike2_spike2": row_spike2[:steps].reshape(-1, size_J1T)
        @ row_spike2[:steps].reshape(-1, size_J1T).T,
        "C_spike3_spike3": row_spike3[:steps].reshape(-1, size_J2T)
        @ row_spike3[:steps].reshape(-1, size_J2T).T,
        "G_J1": noise_J1 @ noise_J1.T,
        "G_J2": noise_J2 @ noise_J2.T,
        "G_J1T": noise_J1T @ noise_J1T.T,
        "G_J2T": noise_J2T @ noise_J2T.T,
        "K_g2_J1": answer_g2_J1[:steps].reshape(-1, size_J1) @ noise_J1.T,
        "K_g3_J2": answer_g3_J2[:steps].reshape(-1, size_J2) @ noise_J2.T,
        "K_phi1_J1T": answer_phi1_J1T[:steps].reshape(-1, size_J1T) @ noise_J1T.T,
        "K_phi2_J2T": answer_phi2_J2T[:steps].reshape(-1, size_J2T) @ noise_J2T.T,
        "K_spike2_J1": answer_spike2_J1[:steps].reshape(-1, size_J1) @ noise_J1.T,
        "K_spike3_J2": answer_spike3_J2[:steps].reshape(-1, size_J2) @ noise_J2.T,
    }
    observables = {
        "loss": seen_loss,
        "prediction": seen_prediction,
        "features1": seen_features1,
        "features2": seen_features2,
        "features3": seen_features3,
        "gradients1": seen_gradients1,
        "gradients2": seen_gradients2,
        "gradients3": seen_gradients3,
    }
    return (
        moments,
        observables,
        finite,
        {"lost": lost, "directions": {"J1": used_J1, "J2": used_J2, "J2T": used_J2T, "J1T": used_J1T}},
    )


def strides(gamma, eta, sigma, P, D, B, T, draw):
    """Entries a time step along each axis of the order parameters; 0 along an axis without time."""
    return {
        "C_g2_g2": (B, B),
        "C_g2_spike2": (B, B),
        "C_g3_g3": (B, B),
        "C_g3_spike3": (B, B),
        "C_phi1_phi1": (B, B),
        "C_phi2_phi2": (B, B),
        "C_spike2_spike2": (B, B),
        "C_spike3_spike3": (B, B),
        "R_g2_J1_phi1": (B, B),
        "R_g3_J2_phi2": (B, B),
        "R_phi1_J1T_g2": (B, B),
        "R_phi2_J2T_g3": (B, B),
        "R_spike2_J1_phi1": (B, B),
        "R_spike3_J2_phi2": (B, B),
    }


def shapes(gamma, eta, sigma, P, D, B, T, draw, rank=None):
    """Entries of standard normals that each kind of random number takes, one site of each kind."""
    steps, times = T, T + 1
    return {
        "J1": (room(times * B, rank),),
        "J2": (room(times * B, rank),),
        "J2T": (room(times * B, rank),),
        "J1T": (room(times * B, rank),),
        "V0": (D,),
        "w0": (),
    }


def order_parameters(moments, gamma, eta, sigma, P, D, B, T, draw, tolerance=1e-12):
    """Correlations and responses before the last update, times by times, from averaged moments."""
    steps, times = T, T + 1
    R_g2_J1 = response_matrix(
        moments["K_g2_J1"],
        moments["G_J1"],
        jnp.repeat(jnp.arange(steps), B),
        jnp.repeat(jnp.arange(steps), B),
        jnp.full(steps * B, 0),
        tolerance,
    )
    R_g3_J2 = response_matrix(
        moments["K_g3_J2"],
        moments["G_J2"],
        jnp.repeat(jnp.arange(steps), B),
        jnp.repeat(jnp.arange(steps), B),
        jnp.full(steps * B, 0),
        tolerance,
    )
    R_phi1_J1T = response_matrix(
        moments["K_phi1_J1T"],
        moments["G_J1T"],
        jnp.repeat(jnp.arange(steps), B),
        jnp.repeat(jnp.arange(steps), B),
        jnp.full(steps * B, 1),
        tolerance,
    )
    R_phi2_J2T = response_matrix(
        moments["K_phi2_J2T"],
        moments["G_J2T"],
        jnp.repeat(jnp.arange(steps), B),
        jnp.repeat(jnp.arange(steps), B),
        jnp.full(steps * B, 1),
        tolerance,
    )
    R_spike2_J1 = response_matrix(
        moments["K_spike2_J1"],
        moments["G_J1"],
        jnp.repeat(jnp.arange(steps), B),
        jnp.repeat(jnp.arange(steps), B),
        jnp.full(steps * B, 0),
        tolerance,
    )
    R_spike3_J2 = response_matrix(
        moments["K_spike3_J2"],
        moments["G_J2"],
        jnp.repeat(jnp.arange(steps), B),
        jnp.repeat(jnp.arange(steps), B),
        jnp.full(steps * B, 0),
        tolerance,
    )
    return {
        "C_g2_g2": moments["C_g2_g2"],
        "C_g2_spike2": moments["C_g2_spike2"],
        "C_g3_g3": moments["C_g3_g3"],
        "C_g3_spike3": moments["C_g3_spike3"],
        "C_phi1_phi1": moments["C_phi1_phi1"],
        "C_phi2_phi2": moments["C_phi2_phi2"],
        "C_spike2_spike2": moments["C_spike2_spike2"],
        "C_spike3_spike3": moments["C_spike3_spike3"],
        "R_g2_J1_phi1": R_g2_J1,
        "R_g3_J2_phi2": R_g3_J2,
        "R_phi1_J1T_g2": R_phi1_J1T,
        "R_phi2_J2T_g3": R_phi2_J2T,
        "R_spike2_J1_phi1": R_spike2_J1,
        "R_spike3_J2_phi2": R_spike3_J2,
    }


def footprint(gamma, eta, sigma, P, D, B, T, draw, rank=None):
    """How many numbers are kept for one site of each kind."""
    steps, times = T, T + 1
    size_J1 = room(times * B, rank)  # directions of phi1
    size_J2 = room(times * B, rank)  # directions of phi2
    size_J2T = room(times * B, rank)  # directions of g3
    size_J1T = room(times * B, rank)  # directions of g2
    return (
        (size_J1 + D + B + B + B + B + B + B)
        + (size_J2 + size_J1T + B + B + B + B + B + B + B)
        + (size_J2T + 1 + B + B + B + B + B + B)
    )


# normals that belong to the same sites
GROUPS = (
    (
        "J2",
        "w0",
    ),
    (
        "J1",
        "J2T",
    ),
    (
        "J1T",
        "V0",
    ),
)
RESPONSES = "stein"
