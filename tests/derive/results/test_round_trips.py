"""A saved result equals itself after it is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import derive

RESULTS: dict[str, Callable[[], Any]] = {
    "exact": lambda: derive.load("spiked_wigner").solve(gamma0=1.5),
    "path": lambda: derive.load("anti_hebbian").solve(T=4, path=True, kernels=["C[v,v]"]),
    "sampled": lambda: derive.load("coupled_spikes_tanh").solve(samples=2000, S=1),
    "limit": lambda: derive.load("structured_regression").limit(alpha=0.5, ridge=0.1, eta=0.05),
    "sweep": lambda: derive.load("spiked_wigner").sweep(gamma0=[0.5, 2.0]),
    "diverged": lambda: derive.load("deep_linear").sweep(L=1, data="online", eta=[0.05, 50.0], T=8, layer="none"),
    "comparison": lambda: derive.load("spiked_wigner").compare(size=20, seeds=3),
}


LONG = ("path", "sampled", "diverged")
KINDS = [pytest.param(kind, marks=pytest.mark.long if kind in LONG else ()) for kind in RESULTS]


@pytest.mark.parametrize("kind", KINDS)
def test_an_opened_result_equals_the_saved_one(kind: str, tmp_path: Path):
    result = RESULTS[kind]()
    opened = derive.open(result.save(tmp_path / "result.nc"))
    assert opened == result and result == opened and opened != 1 and opened != derive.load("spiked_wigner").solve()
    tree = result.to_xarray()
    for data in [node.to_dataset() for node in tree.subtree] if hasattr(tree, "subtree") else [tree]:
        assert set(data.dims) <= set(data.coords)


def test_axes_of_a_compared_sweep_have_coordinates():
    tree = derive.load("spiked_wigner").sweep(of="compare", gamma0=[1.5, 2.0], size=20, seeds=3).to_xarray()
    assert all(list(node.coords["gamma0"].values) == [1.5, 2.0] for node in tree.subtree)
