"""From a declaration to everything that follows from it: one line a stage."""

from __future__ import annotations

from derive.language.model import Model
from derive.records.base import Record
from derive.stages.action import build_action
from derive.stages.average import average_disorder
from derive.stages.blocks import assemble_blocks
from derive.stages.bulk import find_bulk
from derive.stages.expand import expand_declaration
from derive.stages.order import order_in_time
from derive.stages.pencil import reduce_blocks
from derive.stages.probe import project_probe
from derive.stages.saddle import take_saddle_point
from derive.stages.single_site import read_single_site

STAGES = ("system", "action", "average", "saddle", "single-site", "order", "probe", "blocks", "pencil", "bulk")


def derive_each_probe(model: Model) -> dict[str, dict[str, Record]]:
    """All records for every probed matrix of a model, by its label; the training level is the same in all of them."""
    return {label: derive_model(model.probing(label)) for label, _ in model.probes} or {"": derive_model(model)}


def derive_model(model: Model) -> dict[str, Record]:
    """All records, by stage name. Without a probe the training level is all there is; of several the first is taken."""
    if len(model.probes) > 1:
        model = model.probing(model.probes[0][0])
    records: dict[str, Record] = {}
    records["system"] = system = expand_declaration(model)
    records["action"] = action = build_action(system)
    records["average"] = averaged = average_disorder(action)
    records["saddle"] = saddle = take_saddle_point(averaged)
    records["single-site"] = single_site = read_single_site(saddle)
    records["order"] = time_order = order_in_time(single_site)
    if not model.probes:
        return records
    records["probe"] = projected = project_probe(time_order)
    records["blocks"] = blocks = assemble_blocks(projected)
    records["pencil"] = pencil = reduce_blocks(blocks)
    records["bulk"] = find_bulk(pencil)
    return records
