"""A(z) and the bulk as JAX modules."""

from __future__ import annotations

from collections.abc import Iterable

from derive.program.limit import LimitProgram
from derive.program.nodes import Definition
from derive.program.probe import AlignedProgram, BulkProgram, ProbeProgram, SpreadProgram
from derive.program.text import IN_COEFFICIENTS, PARAMETERS, Names, Text

IN_MATRICES = ("by_time", "diagonal", "taken_at")
IN_TRAITS = ("density", "discrete", "over_sites", "standard_normal")


def probe_text(program: ProbeProgram, runtime: str) -> str:
    """The text of a module with A(z)."""
    functions = [
        *([program.sites] if program.sites is not None else []),
        program.a_matrix,
        *(f for _, f in program.sides),
        *(f for one in program.alignments for f in one.functions if f is not None),
        *(f for ring in program.rings for f in ring.functions),
        *([program.measure] if program.measure is not None else []),
    ]
    parts = [(r.pencil, r.scalar_map, r.relation, r.inverse) for r in program.rings]
    rings = [f"Ring({', '.join('None' if f is None else f.name for f in ring)})" for ring in parts]
    sides = [f"Side({side!r}, {f.name}{', sited=True' if len(f.parameters) > 2 else ''})" for side, f in program.sides]
    asked = [_direction(one) for one in program.alignments]
    given = ["    sites=sites,"] if program.sites is not None else []
    end = [
        "PROBE = Probe(",
        f"    unknowns={program.unknowns!r},",
        "    a_matrix=a_matrix,",
        f"    rings=({_joined(rings)}),",
        f"    sides=({_joined(sides)}),",
        f"    reduced={program.reduced!r},",
        f"    steady={program.steady!r},",
        *(["    directions=(", *(f"        {one}," for one in asked), "    ),"] if asked else []),
        *given,
        *([f"    measured={program.measured!r},", "    measure=measure,"] if program.measure is not None else []),
        ")",
    ]
    optional = {"Direction": asked, "Ring": rings, "Side": sides}
    interface = sorted(["Probe", *(word for word, some in optional.items() if some)])
    doc = "A(z), whose zeros are the outliers, and its reduction to matrices that do not depend on z."
    return _module(doc, functions, interface, end, runtime)


def _direction(program: AlignedProgram) -> str:
    aligned, field = program.aligned, program.aligned.direction.field
    told = [aligned.name, aligned.side, field.name, field.timed, tuple(str(axis.size) for axis in field.axes)]
    sited = ["sited=True"] if len(program.source.parameters) > 2 else []
    functions = ("None" if f is None else f.name for f in program.functions)
    return f"Direction({', '.join([*map(repr, told), *functions, *sited])})"


def bulk_text(program: BulkProgram, runtime: str) -> str:
    """The text of a module with the bulk."""
    optional = [f for f in (program.curve, program.edge_polynomials, program.sources, program.slopes) if f is not None]
    end = [
        "BULK = BulkLaw(",
        f"    responses={program.responses!r},",
        f"    resolvent={program.resolvent},",
        "    equations=equations,",
        *([f"    curve_text={program.curve_text!r},", "    curve=curve,"] if program.curve is not None else []),
        *(["    edge_polynomials=edge_polynomials,"] if program.edge_polynomials is not None else []),
        *(["    sites=sites,", f"    settles={program.settles!r},"] if program.sites is not None else []),
        *([f"    images={program.images!r},", "    sources=sources,"] if program.sources is not None else []),
        *(
            ["    spreads=(", *(f"        {_spread(one)}," for one in program.spreads), "    ),"]
            if program.spreads
            else []
        ),
        *([f"    vanishing={program.vanishing!r},", "    slopes=slopes,"] if program.slopes is not None else []),
        ")",
    ]
    curve = ", the curve of the resolvent G, and where its edges may lie" if program.curve is not None else ""
    doc = f"The bulk: self-consistent responses{curve}."
    sites = [program.sites] if program.sites is not None else []
    functions = [*sites, *(one.covariances for one in program.spreads), program.equations, *optional]
    return _module(doc, functions, ["BulkLaw", *(["Spread"] if program.spreads else [])], end, runtime)


def _spread(program: SpreadProgram) -> str:
    lower, inverse = (
        tuple(tuple(number.name for number in row) for row in rows)
        for rows in (program.spread.lower, program.spread.inverse)
    )
    return f"Spread({lower!r}, {inverse!r}, {program.covariances.name}, {program.steady!r})"


def limit_text(program: LimitProgram, runtime: str) -> str:
    """The text of a module with the limit of long training."""
    end = [
        "LIMIT = LimitOf(",
        f"    responses={program.responses!r},",
        f"    correlations={program.correlations!r},",
        f"    observables={program.observables!r},",
        "    sites=sites,",
        "    equations=equations,",
        "    correlating=correlating,",
        "    means=means,",
        "    observing=observing,",
        f"    settles={program.settles!r},",
        f"    forgotten={program.forgotten!r},",
        ")",
    ]
    doc = "Where training comes to rest: order parameters in z, whose last values are those at z = 0."
    return _module(doc, program.functions, ["LimitOf"], end, runtime)


def _joined(parts: list[str]) -> str:
    return f"{parts[0]}," if len(parts) == 1 else ", ".join(parts)


def _module(doc: str, functions: Iterable[Definition], interface: list[str], end: list[str], runtime: str) -> str:
    functions = list(functions)
    names = Names(
        (
            *IN_COEFFICIENTS,
            *IN_MATRICES,
            *IN_TRAITS,
            *interface,
            "PROBE",
            "BULK",
            "LIMIT",
            "jnp",
            "jsp",
            "arange",
            "eye",
        )
    )
    for made in functions:
        names.taken.add(made.name)
    text = Text(names)
    names.of(PARAMETERS)
    for made in functions:
        for symbol in made.parameters:
            names.of(symbol)
    body = [line for made in functions for line in text.function(made)]
    imports = [
        f"from {runtime}.{module} import {', '.join(sorted(set(text.called) & set(known)))}"
        for module, known in (("coefficients", IN_COEFFICIENTS), ("matrices", IN_MATRICES), ("traits", IN_TRAITS))
        if set(text.called) & set(known)
    ]
    imports = sorted([*imports, f"from {runtime}.interface import {', '.join(interface)}"])
    head = [f'"""{doc}"""', "", "import jax.numpy as jnp", "import jax.scipy.special as jsp", "", *imports, "", ""]
    return "\n".join([*head, *body, *end]) + "\n"
