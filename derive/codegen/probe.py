"""Writes probe.py: A(z), and the matrices of its reduction that do not depend on z."""

from __future__ import annotations

import sympy as sp

from derive.algebra.nodes import Z
from derive.algebra.words import Combination, Diagonal, Letter
from derive.codegen.pieces import past_code, recurrence_lines
from derive.codegen.printer import jax_code
from derive.errors import DeclarationError
from derive.language.vectors import Field, Mean
from derive.printing import text
from derive.records.probe import MAP, BlockMatrix, Cycle, Directions, Pencil, Unknown
from derive.records.system import quadratic_pairs


def letters_needed(blocks: BlockMatrix) -> tuple[Letter, ...]:
    """The matrices over training times that A(z) is made of, each once and untransposed."""
    found: dict[Letter, None] = {}
    sides = blocks.projected.directions
    combinations = [
        *(block.combination for _, block in blocks.blocks),
        *(combination for side in sides for _, combination in side.drive),
        *(((sp.S.One, (Letter.correlation(a, b),)),) for side in sides for a in side.fields for b in side.fields),
    ]
    for combination in combinations:
        for _, word in combination:
            for letter in word:
                if isinstance(letter, Letter):
                    found[Letter(letter.kind, letter.a, letter.b)] = None
                else:
                    for average in sorted(letter.weight.atoms(Mean), key=sp.default_sort_key):
                        for _, a, b in _pairs(average):
                            found[Letter("C", *sorted((a.field, b.field), key=lambda f: f.name))] = None
    return tuple(sorted(found, key=lambda letter: letter.name))


def _pairs(average: Mean):
    pairs = quadratic_pairs(average)
    if pairs is None:
        raise DeclarationError(
            f"{average} weighs an update of the probed matrix; only means of products of two fields can"
        )
    return pairs


def write_probe(pencil: Pencil, signature: str) -> str:
    """The text of probe.py."""
    blocks = pencil.blocks
    responses = [r.symbol.name for r in blocks.projected.responses]
    lines = [
        '"""A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."""',
        "",
        "import jax",
        "import jax.numpy as jnp",
        "",
        "",
        f"LABELS = {blocks.labels!r}",
        f"CYCLES = {len(pencil.cycles)}",
        f"REDUCED = {not pencil.rest!r}",
        "# whether the number of steps enters through shapes alone: earlier outliers are then those of earlier spikes",
        f"STEADY = {_steady(blocks)!r}",
        f"SIDES = {tuple(side.side for side in blocks.projected.directions)!r}",
        "",
    ]
    lines += [
        "",
        f"def a_matrix(z, r, order, {signature}):",
        '    """A(z); `r` holds the bulk responses at z (see bulk.py), `order` what training.py returns."""',
    ]
    lines += _body(blocks, responses)
    for side in blocks.projected.directions:
        lines += ["", "", *_direction_lines(blocks, side, signature)]
    for number, cycle in enumerate(pencil.cycles):
        lines += ["", "", *_cycle_lines(blocks, number, cycle, signature)]
    return "\n".join(lines) + "\n"


def _steady(blocks: BlockMatrix) -> bool:
    """Whether neither A(z) nor the bulk depends on the number of steps otherwise than through their shapes."""
    projected = blocks.projected
    clock = next((u.field.clock for u in projected.unknowns if u.field.clock is not None), None)
    if clock is None:
        return True
    expressions = [*projected.bulk_equations, *(block.scalar for _, block in blocks.blocks)]
    for _, block in blocks.blocks:
        for scale, word in block.combination:
            expressions += [scale, *(letter.weight for letter in word if isinstance(letter, Diagonal))]
    return not any(sp.sympify(e).has(clock.steps) for e in expressions)


def _setup(blocks: BlockMatrix, mentioned: str) -> list[str]:
    """Times, identity matrices and update coefficients that a body mentions."""
    lines = []
    clock = next((u.field.clock for u in blocks.projected.unknowns if u.field.clock is not None), None)
    steps = str(clock.steps) if clock is not None else "1"
    if "when" in mentioned or "history" in mentioned or "initial_" in mentioned:
        lines += [f"steps = {steps}", "when = jnp.arange(steps)"]
    for r in blocks.projected.system.recurrences:
        if any(name in mentioned for name in r.names):
            lines += recurrence_lines(r, str(clock))
    return lines


def _letter(letter: Letter | Diagonal) -> str:
    if isinstance(letter, Letter):
        return f'order["{letter.name}"]' + (".T" if letter.transposed else "")
    names = {}
    for average in sorted(letter.weight.atoms(Mean), key=sp.default_sort_key):
        parts = []
        for scale, a, b in _pairs(average):
            key = Letter("C", *sorted((a.field, b.field), key=lambda f: f.name)).name
            parts.append(f'({jax_code(scale)}) * jnp.diag(order["{key}"])')
        names[average] = "(" + " + ".join(parts) + ")"
    weight = past_code(letter.weight, names)
    copies = f"jnp.repeat({weight}, {letter.field.labels})" if letter.field.labelled else f"({weight})"
    return f"jnp.diag({copies} * jnp.ones({_size(letter.field)}))"


def _size(field: Field) -> str:
    parts = [str(field.clock.steps)] if field.timed else []
    parts += [str(field.labels)] if field.labelled else []
    return " * ".join(parts) or "1"


def _combination(combination: Combination) -> str:
    parts = []
    for scale, word in combination:
        product = " @ ".join(map(_letter, word))
        code = jax_code(scale)
        parts.append(
            product if code == "1" else f"({code}) * ({product})" if len(word) > 1 else f"({code}) * {product}"
        )
    return " + ".join(parts)


def _body(blocks: BlockMatrix, responses: list[str]) -> list[str]:
    unknowns = blocks.projected.unknowns
    if not unknowns:
        return ["    return jnp.zeros((0, 0))"]
    code = []
    for i, u in enumerate(unknowns):
        row = []
        for j, v in enumerate(unknowns):
            block = blocks.block(i, j)
            parts = [f"({jax_code(block.scalar)}) * jnp.eye({_size(u.field)})"] if block.scalar != 0 else []
            inner = _combination(block.combination)
            entry = (parts[0] if parts else "") + (f" - ({inner})" if inner else "")
            row.append(entry or f"jnp.zeros(({_size(u.field)}, {_size(v.field)}))")
        code += [f"# equation of {text_label(u)}", f"row_{i} = [{', '.join(row)}]"]
    used = [name for name in responses if any(name in line for line in code)]
    lines = [f'{name} = r["{name}"]' for name in used]
    lines = [
        *lines,
        *_setup(blocks, "\n".join(code)),
        *code,
        f"return jnp.block([{', '.join(f'row_{i}' for i in range(len(unknowns)))}])",
    ]
    return [f"    {line}" for line in lines]


def _direction_lines(blocks: BlockMatrix, side: Directions, signature: str) -> list[str]:
    """The right-hand side for sources along the spikes, the rows that see them, and their Gram matrix."""
    unknowns, drive = blocks.projected.unknowns, dict(side.drive)

    def block(rows: list[list[str]]) -> str:
        return "jnp.block([" + ", ".join("[" + ", ".join(row) + "]" for row in rows) + "])"

    zeros = "jnp.zeros(({}, {}))".format
    rhs = [
        [
            _combination(drive[r, c]) if (r, c) in drive else zeros(_size(u.field), _size(f))
            for c, f in enumerate(side.fields)
        ]
        for r, u in enumerate(unknowns)
    ]
    seen = [
        [
            f"jnp.eye({_size(f)})" if u == Unknown("C", side.probe, f) else zeros(_size(f), _size(u.field))
            for u in unknowns
        ]
        for f in side.fields
    ]
    gram = [[_letter(Letter.correlation(a, b)) for b in side.fields] for a in side.fields]
    code = [f"driven = {block(rhs)}", f"seen = {block(seen)}", f"gram = {block(gram)}", "return driven, seen, gram"]
    names = ", ".join(text(f) for f in side.fields)
    return [
        f"def {side.side}_spikes(order, {signature}):",
        f'    """For sources along {names}: the right-hand side of A(z) q = b, the rows of q that are its overlaps',
        '    with them, and their Gram matrix."""',
        *[f"    {line}" for line in (*_setup(blocks, "\n".join(code)), *code)],
    ]


def text_label(unknown) -> str:
    return f"{unknown.kind}[{text(unknown.probe)}, {text(unknown.field)}]"


def _cycle_lines(blocks: BlockMatrix, number: int, cycle: Cycle, signature: str) -> list[str]:
    unknowns = blocks.projected.unknowns
    code = []
    for i, (group, following) in enumerate(zip(cycle.groups, (*cycle.groups[1:], cycle.groups[0]), strict=True)):
        rows = []
        for r in group:
            entries = []
            for c in following:
                inner = _combination(blocks.block(r, c).combination)
                entries.append(inner or f"jnp.zeros(({_size(unknowns[r].field)}, {_size(unknowns[c].field)}))")
            rows.append(f"[{', '.join(entries)}]")
        code.append(f"coupling_{i} = jnp.block([{', '.join(rows)}])")
    product = " @ ".join(f"coupling_{i}" for i in range(len(cycle.groups)))
    lines = [
        f"def pencil_{number}(order, {signature}):",
        '    """The constant matrix: its eigenvalues are the values of the scalar map at the outliers."""',
        *[f"    {line}" for line in (*_setup(blocks, "\n".join(code)), *code, f"return {product}")],
    ]
    used = [r.symbol.name for r in blocks.projected.responses if cycle.scalar_map.has(r.symbol)]
    map_code = [*(f'{name} = r["{name}"]' for name in used)]
    value = jax_code(cycle.scalar_map)
    lines += [
        "",
        "",
        f"def scalar_map_{number}(z, r, {signature}):",
        f'    """s(z) = {text(cycle.scalar_map)}"""',
        *[f"    {line}" for line in (*map_code, *_setup(blocks, value), f"return {value}")],
    ]
    if cycle.inverse is not None:
        inverse = jax_code(cycle.inverse.xreplace({MAP: sp.Symbol("s")}))
        lines += [
            "",
            "",
            f"def inverse_map_{number}(s, {signature}):",
            f'    """z(s) = {text(cycle.inverse)}"""',
            *[f"    {line}" for line in (*_setup(blocks, inverse), f"return {inverse}")],
        ]
    relation = sp.Poly(cycle.relation, Z)
    table = [jax_code(c.xreplace({MAP: sp.Symbol("s")})) for c in relation.all_coeffs()]
    lines += [
        "",
        "",
        f"def relation_{number}(s, {signature}):",
        '    """Coefficients in z, highest power first, of the polynomial relation between z and the map."""',
        *[f"    {line}" for line in (*_setup(blocks, " ".join(table)), f"return jnp.array([{', '.join(table)}])")],
    ]
    return lines
