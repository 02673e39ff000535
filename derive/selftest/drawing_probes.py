"""Random symmetric matrices to probe."""

from __future__ import annotations

from derive.selftest.drafts import ONE, DraftMatrix, Node, at, call, mean, name, number, outer, root, weights_at
from derive.selftest.sketch import Sketch, rooted, symmetric_start, value_of, weight_scale

EARLY = ("a probe at the first step", "a probe before the last step")


def draw_probes(sketch: Sketch) -> list[Node]:
    """Return random symmetric matrices: weights after the last step, or fixed matrices with spikes."""
    probes = []
    for w in sketch.weights:
        if not rooted(sketch, w.name):
            continue
        last = weights_at(w.name, name("T"))
        size = ONE if weight_scale(sketch, w) == ONE else name(w.columns)
        sector = w.columns
        if w.name in sketch.skewed and sketch.chance(0.5):
            probe = last + last.T
        elif symmetric_start(sketch, w) and w.name not in sketch.skewed and sketch.chance(0.7):
            probe = _with_its_square(sketch, last) if sketch.chance(0.15) else last
        elif sketch.chance(0.7):
            half = _through_another(sketch, last, w.rows) if sketch.chance(0.15) else last
            probe = Node("matmul", (half.T, half)) / size
            if sketch.chance(0.1):
                probe = _less_its_start(sketch, probe, w.name, size)
            elif sketch.chance(0.2):
                probe = _with_shared(sketch, probe, last, size, (w.rows, w.columns))
        else:
            probe, sector = Node("matmul", (last, last.T)) / size, w.rows
        more = _with_another if sketch.chance(0.15) else _with_spike if sketch.chance(0.1, *EARLY) else _with_diagonal
        probes.append(more(sketch, probe, sector))
    if not probes or sketch.chance(0.15):
        probes += [m for m in map(lambda m: _fixed_probe(sketch, m), sketch.matrices) if m is not None][:1]
    return probes[: sketch.rng.choice((1, 1, 2))]


def _with_spike(sketch: Sketch, probe: Node, sector: str) -> Node:
    """Return the probe plus a spike: a field at an early time or at the last time."""
    fitting = [v for v in sketch.fields if v.sector == sector and v.kind == "timed" and not v.axes]
    if not fitting or sketch.clock is None:
        return probe
    last = name(sketch.clock.steps)
    times_of = {EARLY[0]: number(1), EARLY[1]: last + number(-1), "": last}
    if not sketch.clock.endpoint:
        times_of = {EARLY[0]: number(0), EARLY[1]: last + number(-1)}
    side = at(sketch.rng.choice(fitting).name, times_of[sketch.pick(tuple(times_of))])
    if sketch.linear and sketch.chance(0.2, "diag"):
        return probe + Node("diag", (call("tanh", side),))
    return probe + number(2) * sketch.coefficient() * (ONE / name(sector)) * outer(side, side)


def with_more(sketch: Sketch, probe: Node, observed: tuple[tuple[str, Node], ...]) -> Node:
    """Return a probe plus a multiple of the identity, or with further matrices between its resolvents."""
    fits = (sketch.clock is None or sketch.clock.endpoint) and not sketch.labelled()
    plain = [label for label, value in observed if value.op == "mean" and fits]
    plus = sketch.rng.choice(plain) if plain and sketch.chance(0.06, "spectrum(plus=)") else ""
    between: tuple[Node | str, ...] = ()
    if sketch.chance(0.06, "spectrum(between=)"):
        fitting = [m for m in sketch.matrices if m.kind == "goe" and m.rows == _sector(sketch, probe)]
        between = ("other", Node("matrix", (fitting[0].name,))) if fitting else ()
    return Node("probe", (probe, plus, *between)) if plus or between else probe


def draw_alignments(sketch: Sketch, probes: list[Node]) -> tuple[tuple[str, Node], ...]:
    """Return random directions over the sector of a probe, for alignments with outlier vectors."""
    if not probes or not sketch.chance(0.12, "alignment"):
        return ()
    sector = _sector(sketch, probes[0])
    fitting = [v for v in (*sketch.fields, *sketch.normals) if v.sector == sector and not v.axes]
    return tuple((f"a{k + 1}", Node("alignment", (value_of(v, 0),))) for k, v in enumerate(fitting[:1]))


def _sector(sketch: Sketch, probe: Node) -> str:
    """Return the sector of a probed matrix, read from its first part."""
    if probe.op in ("sum", "product"):
        return next(filter(None, (_sector(sketch, part) for part in probe.children)), "")
    if probe.op == "matmul":
        return _sector(sketch, probe.children[0].T)
    shapes = {m.name: (m.rows, m.columns) for m in sketch.matrices}
    shapes |= {w.name: (w.rows, w.columns) for w in sketch.weights}
    inner = probe.children[0] if probe.op == "turned" else probe
    return shapes.get(inner.leaf, ("", ""))[int(probe.op == "turned")]


def _with_another(sketch: Sketch, probe: Node, sector: str) -> Node:
    """Return the probe plus another symmetric matrix over its sector, if there is one."""
    others = [Node("matrix", (m.name,)) for m in sketch.matrices if m.kind == "goe" and m.rows == sector]
    others += [
        Node("matmul", (Node("matrix", (m.name,)).T, Node("matrix", (m.name,)))) / name(m.rows)
        for m in sketch.matrices
        if m.kind == "gaussian" and m.columns == sector
    ]
    return probe + sketch.rng.choice(others) if others else probe


def _with_diagonal(sketch: Sketch, probe: Node, sector: str) -> Node:
    """Return the probe plus a diagonal matrix of a bounded function of a vector, if there is one."""
    fitting = [v for v in (*sketch.normals, *sketch.fields) if v.sector == sector and v.kind == "static" and not v.axes]
    if not fitting or not sketch.linear or not sketch.chance(0.05, "diag"):
        return probe
    return probe + Node("diag", (call("tanh", at(sketch.rng.choice(fitting).name, None)),))


def _through_another(sketch: Sketch, half: Node, rows: str) -> Node:
    """Return B K for a matrix B that acts on the rows of K, if there is one, scaled to remain of order one."""
    fitting = [m for m in sketch.matrices if m.kind == "gaussian" and m.columns == rows]
    if not fitting:
        return half
    other = Node("matrix", (sketch.rng.choice(fitting).name,))
    return Node("matmul", (other / root(name(rows)), half))


def _less_its_start(sketch: Sketch, probe: Node, word: str, size: Node) -> Node:
    """Return the change due to training: K^T K minus its initial value, or a part of it."""
    start = next(e.value for e in sketch.equations if e.target == word and e.time == "0")
    share = sketch.rng.choice((number(-1), number(-1), sketch.coefficient()))
    return probe + share * (Node("matmul", (start.T, start)) / size)


def _with_its_square(sketch: Sketch, matrix: Node) -> Node:
    """Return M + c M^2 for symmetric M: its density diverges where 1 + 2 c M vanishes, away from zero."""
    return matrix + sketch.coefficient() * Node("matmul", (matrix, matrix))


def _with_shared(sketch: Sketch, probe: Node, half: Node, size: Node, shape: tuple[str, str]) -> Node:
    """Return K^T K plus terms that share K: K^T B + B^T K for a matrix B of its shape, or K + K^T if K is square.

    `size` is the normalisation of K^T K.
    """
    alike = [m for m in sketch.matrices if m.kind == "gaussian" and (m.rows, m.columns) == shape]
    if alike and sketch.chance(0.6):
        other, sizes = Node("matrix", (sketch.rng.choice(alike).name,)), root(size) * root(name(shape[1]))
        joined = Node("matmul", (half.T, other)) + Node("matmul", (other.T, half))
    elif shape[0] == shape[1]:
        joined, sizes = half + half.T, root(size)
    else:
        return probe
    return probe + sketch.coefficient() * (ONE / sizes) * joined


def _fixed_probe(sketch: Sketch, m: DraftMatrix) -> Node | None:
    if m.kind == "fresh":
        return None
    start = Node("matrix", (m.name,))
    sides = [
        [v for v in (*sketch.fields, *sketch.normals) if v.sector == s and v.kind == "static" and not v.axes]
        for s in (m.rows, m.columns)
    ]
    if all(sides):
        left, right = (value_of(sketch.rng.choice(side), 0) for side in sides)
        scale = ONE / name(m.columns) if m.kind == "goe" else ONE / root(name(m.columns))
        coefficient = number(sketch.rng.choice((2, 2, 4, 8))) * sketch.coefficient() * scale
        if sketch.chance(0.3):
            coefficient = coefficient * mean(left**2)
        if m.kind == "goe":
            spiked = start + coefficient * outer(left, left)
            return _with_its_square(sketch, spiked) if sketch.chance(0.2) else spiked
        start = start + coefficient * outer(left, right)
    if m.kind == "goe":
        return start
    probe, size = Node("matmul", (start.T, start)) / name(m.columns), name(m.columns)
    return _with_shared(sketch, probe, start, size, (m.rows, m.columns)) if sketch.chance(0.2) else probe
