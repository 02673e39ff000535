"""Where linear training comes to rest, as a program: order parameters at any z, and observables made of them."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from derive.printing import text
from derive.program.at_sites import AtSites
from derive.program.nodes import Definition, Record, Symbol
from derive.records.limit import Limit


def limit_record(limit: Limit) -> Record:
    r, c, m = Symbol("r"), Symbol("c"), Symbol("m")
    responses, correlations = ([one.symbol for one in some] for some in (limit.responses, limit.correlations))
    work = AtSites(limit.traits, {r: responses, c: correlations, m: [symbol for symbol, _ in limit.mean_symbols]})

    def function(
        name: str, given: tuple[Symbol, ...], doc: str, told: Iterable[str], results: Iterable[sp.Expr]
    ) -> Definition:
        return work.function(name, given, "\n".join((doc, *told)), work.numbers(results))

    named = {
        "responses": tuple(s.name for s in responses),
        "correlations": tuple(s.name for s in correlations),
        "observables": tuple(name for name, _ in limit.observables),
        "sites": work.site_laws(),
        "equations": function(
            "equations",
            (work.z, r, work.laws),
            "Each is zero at the responses r at z, which are what is answered at once as z grows:",
            (f"0 = {text(e)}" for e in limit.response_equations),
            limit.response_equations,
        ),
        "correlating": function(
            "correlating",
            (work.z, r, c, work.laws),
            "Each is linear in the correlations c and zero at them:",
            (f"0 = {text(e)}" for e in limit.correlation_equations),
            limit.correlation_equations,
        ),
        "means": function(
            "means",
            (work.z, r, c, work.laws),
            "The transform, with both times at the same z, of:",
            (text(mean) for _, mean in limit.mean_symbols),
            limit.means,
        ),
        "observing": function(
            "observing",
            (m,),
            "The observables from the means at rest:",
            (f"{name} = {text(e)}" for name, e in limit.observables),
            [value for _, value in limit.observables],
        ),
        "settles": any(not trait.discrete for trait in limit.traits),
        "forgotten": limit.forgotten,
    }
    return Record("LimitOf", (), named)
