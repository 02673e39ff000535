"""The limit of long training, as it is printed."""

from __future__ import annotations

from derive.printing.statements import Section, Statement
from derive.records.limit import Limit

RESPONSES = (
    "Laws that are linear and the same at all times become by $x(z) = \\frac{z}{1+z} \\sum_t x(t) (1+z)^{-t}$ into one "
    "linear equation per field, which each site inverts; the last value of $x(t)$ is $x(z)$ at $z = 0$."
)
CORRELATIONS = "Noises have the covariances of the saddle point, both times at the same $z$."


def limit_sections(record: Limit) -> tuple[Section, ...]:
    """Responses, correlations and means in z, and the observables."""
    responses = zip(record.responses, record.response_equations, strict=True)
    correlations = zip(record.correlations, record.correlation_equations, strict=True)
    means = zip(record.mean_symbols, record.means, strict=True)
    found = (
        Section("responses", tuple(Statement(s.symbol, s.symbol - e) for s, e in responses), RESPONSES),
        Section("correlations", tuple(Statement(s.symbol, s.symbol - e) for s, e in correlations), CORRELATIONS),
        Section("means", tuple(Statement(symbol, value, remark=str(mean)) for (symbol, mean), value in means)),
        Section("observables", tuple(Statement(value, remark=name) for name, value in record.observables)),
    )
    return tuple(section for section in found if section.statements)
