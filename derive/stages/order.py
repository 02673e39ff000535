"""SingleSite -> TimeOrder: which field at t needs which at s < t and which at s <= t."""

from __future__ import annotations

from derive.algebra.causality import equal_time_order, response_lags
from derive.records.saddle import SingleSite, TimeOrder
from derive.records.system import DisorderRule


def order_in_time(single_site: SingleSite) -> TimeOrder:
    """Sort the fields of one time by need, and compute the reach of every response; a cycle is an error."""
    system = single_site.system
    order = equal_time_order(system)
    kicked = [f.field for f in system.training if isinstance(f.rule, DisorderRule)]
    lags = response_lags(system)
    reach = tuple(
        (a, j, lags[a, j]) for a in order for j in kicked if a.sector == j.sector and (a, j) in lags and a.timed
    )
    return TimeOrder(single_site, order, reach, (*single_site.assumptions, "no field depends on its own future"))
