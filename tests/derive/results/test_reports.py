"""How a result was computed: every number has a field with a type, which files keep and the help names."""

from __future__ import annotations

import json
import typing
from dataclasses import asdict, fields

import numpy as np
import pytest

from derive.cli.solve import HELP
from derive.results.files import KINDS, decoded
from derive.results.saving import Pool
from derive.results.typed import _hints, built
from numerics.support.reports import (
    RECORDS,
    BiasCorrection,
    BulkMethod,
    ExpectedMemory,
    LayerDiagnostics,
    MissingOverlaps,
    OmittedPath,
    PathErrors,
    QuadratureReport,
    ReplicateMethod,
    SamplingReport,
    SpikeSpan,
    TrainingMethod,
    UndecidedOutlier,
)

FREE = {"parameters", "inputs", "options", "given", "traces"}
"""Mappings whose names a declaration or a caller chooses."""

SAMPLING = SamplingReport(
    samples=4000,
    replicates=10,
    seed=3,
    draws="sobol",
    responses="stein",
    rank=12,
    truncated_variance=0.25,
    resolution=1e-3,
    bias=BiasCorrection(0.75, 0.25),
    rank_effect=0.125,
    memory=ExpectedMemory(1e9, 3e9, 2e9),
)
METHODS = (
    TrainingMethod(),
    TrainingMethod("quadrature", QuadratureReport("Gaussian fields", 96, 64, 1e-12)),
    TrainingMethod("exact", QuadratureReport("trait", 64, 32, 1e-12)),
    TrainingMethod("sampled", sampling=SAMPLING),
)
DIAGNOSTICS = LayerDiagnostics(
    residual=1e-14,
    condition=2.5,
    bulk=BulkMethod("site averages", 2, 32, 1e-11),
    outlier_errors=ReplicateMethod("solved", reason="a replica disagrees"),
    undecided=UndecidedOutlier(2.0, 0.1),
    spike_directions={"right": SpikeSpan(13.25, 16)},
    overlaps=MissingOverlaps("large", 2500),
    path=OmittedPath(2000),
    path_errors=PathErrors(30, 2, 1),
)


def test_no_result_holds_a_loose_dictionary():
    """A dictionary of anything under names that the project chooses drops an error bar at the first typo."""
    loose = [
        f"{kind.__name__}.{name}"
        for kind in KINDS
        for name, hint in _hints(kind).items()
        if name not in FREE
        for inner in [typing.get_args(hint)]
        if len(inner) == 2 and inner[1] is typing.Any
    ]
    assert not loose


@pytest.mark.parametrize("record", [*METHODS, DIAGNOSTICS])
def test_files_keep_records_and_plain_data_is_json(record):
    pool = Pool()
    encoded = json.loads(json.dumps(pool.encoded(record)))
    assert decoded(encoded, pool.numbers()) == record
    assert json.loads(json.dumps(asdict(record))) == asdict(record)


def test_a_word_that_is_none_of_those_declared_is_refused():
    with pytest.raises(ValueError, match="closure"):
        built(TrainingMethod, {"closure": "guessed"})
    with pytest.raises(ValueError, match="residual"):
        built(LayerDiagnostics, {"residual": "13.2 of 16"})


def test_the_help_names_every_field():
    words = set("".join(c if c.isalnum() or c == "_" else " " for c in HELP).split())
    assert not {one.name for record in RECORDS for one in fields(record)} - words


def test_a_quadrature_that_moves_by_more_than_the_tolerance_has_not_converged():
    moved = np.array([1e-12, 1e-6, 1.1e-6])
    assert [QuadratureReport("trait", 64, 32, float(x)).converged for x in moved] == [True, True, False]


def test_sentences_say_the_numbers():
    assert METHODS[0].sentence == "exact: nothing was sampled"
    assert METHODS[3].sentence == "sampled: 4000 sites, seed 3"
    assert METHODS[2].sentence == "exact forward pass for each of 64 values of a trait, relative change 1.0e-12 from 32"
    assert SAMPLING.memory.sentence == "about 3.0 GB at most, for order parameters"
    assert DIAGNOSTICS.spike_directions["right"].sentence == "13.2 of 16"
    path_errors = DIAGNOSTICS.path_errors.sentence
    assert "at 2 of 30 times" in path_errors and "not available at 1 of 30 times" in path_errors
