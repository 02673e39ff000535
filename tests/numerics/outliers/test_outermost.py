"""The ends of a spectrum without the rest: the same numbers, and nothing left out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse.linalg
from click.testing import CliRunner
from conftest import solver_and_values

import derive
from derive.cli import main
from derive.errors import DeriveError, NumericalError
from numerics.bulk.law import Panelled, SpectralLaw
from numerics.simulation import outermost as module
from numerics.simulation.compare import match
from numerics.simulation.outermost import RESIDUAL, at_ends, by_lanczos, outermost
from numerics.simulation.samples import simulate
from numerics.simulation.wanted import FEW, ends_to_compare
from numerics.solution import Layer

SIZE, COUNT = 240, 4


def wigner(seed: int = 0) -> np.ndarray:
    entries = np.random.default_rng(seed).standard_normal((SIZE, SIZE))
    return (entries + entries.T) / np.sqrt(2 * SIZE)


def with_spectrum(values: np.ndarray) -> np.ndarray:
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((len(values), len(values))))[0]
    matrix = (basis * values) @ basis.T
    return (matrix + matrix.T) / 2


def spectra() -> dict[str, np.ndarray]:
    bulk = np.linalg.eigvalsh(wigner())
    w = np.random.default_rng(2).standard_normal((2 * SIZE, SIZE)) / np.sqrt(SIZE)
    return {
        "semicircle": bulk,
        "outliers": np.sort(np.concatenate([bulk[:-3], [2.5, 3.0, -2.8]])),
        "equal outliers": np.sort(np.concatenate([bulk[:-4], [3.0, 3.0, 3.0, -3.0]])),
        "pairs": np.sort(np.repeat(bulk[::2], 2)),
        "away from zero": np.linalg.eigvalsh(w.T @ w),
    }


@pytest.mark.parametrize("kind", list(spectra()))
def test_ends_are_those_of_all_eigenvalues(kind: str):
    values = spectra()[kind]
    matrix = with_spectrum(values)
    found = by_lanczos(matrix, COUNT)
    assert found is not None
    assert np.allclose(found[0], at_ends(values, COUNT), rtol=0, atol=RESIDUAL * np.abs(values).max())
    again = by_lanczos(matrix, COUNT)
    assert again is not None and np.array_equal(found[0], again[0]) and np.array_equal(found[1], again[1])


def test_a_null_space_is_left_to_all_eigenvalues():
    values = np.linalg.eigvalsh(wigner()) ** 2
    values[:10] = 0
    assert by_lanczos(with_spectrum(np.sort(values)), COUNT) is None
    assert by_lanczos(np.eye(SIZE), COUNT) is None


def test_an_eigenvalue_that_was_missed_is_noticed(monkeypatch):
    """The outermost ones are left out of what the first run finds."""
    matrix, honest = wigner(), scipy.sparse.linalg.eigsh

    def forgetful(product, k, **kwargs):
        if k == 2:
            return honest(product, k=k, **kwargs)
        values, vectors = honest(product, k=k + 2, **kwargs)
        order = np.argsort(values)[1:-1]
        return values[order], vectors[:, order]

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", forgetful)
    assert by_lanczos(matrix, COUNT) is None


def test_vectors_that_are_none_are_noticed(monkeypatch):
    honest = scipy.sparse.linalg.eigsh

    def rough(product, k, tol, **kwargs):
        values, vectors = honest(product, k=k, tol=tol, **kwargs)
        return values, vectors + 1e-6

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", rough)
    assert by_lanczos(wigner(), COUNT) is None


@pytest.mark.parametrize("vectors", [True, False])
def test_of_large_matrices_ends_are_found_by_products(vectors: bool, monkeypatch):
    matrix = wigner()
    expected = at_ends(np.linalg.eigvalsh(matrix), COUNT)
    monkeypatch.setattr(module, "pays", lambda *_: True)
    monkeypatch.setattr(np.linalg, "eigvalsh" if not vectors else "eigh", None)
    values, found = outermost(matrix, COUNT, vectors)
    assert np.allclose(values, expected, rtol=0, atol=RESIDUAL * np.abs(expected).max())
    assert (found is not None) == vectors and (found is None or np.allclose(matrix @ found, found * values, atol=1e-7))


@pytest.mark.parametrize("vectors", [True, False])
def test_where_it_is_not_certain_all_eigenvalues_are_computed(vectors: bool, monkeypatch):
    monkeypatch.setattr(module, "pays", lambda *_: True)
    monkeypatch.setattr(module, "by_lanczos", lambda *_: None)
    matrix = wigner()
    values, found = outermost(matrix, COUNT, vectors)
    assert np.allclose(values, at_ends(np.linalg.eigvalsh(matrix), COUNT), rtol=0, atol=1e-13)
    assert (found is not None) == vectors
    if found is not None:
        assert np.allclose(matrix @ found, found * values)


# What a comparison reads off the ends


def layer(outliers: list[float], edges: list, **more) -> Layer:
    law = SpectralLaw(tuple(edges), more.pop("atoms", ()), Panelled((), ()), 0.0)
    return Layer("", law, np.array(outliers), None, {}, **more)


def test_the_theory_says_how_many_are_wanted():
    class Solved:
        def __init__(self, *layers):
            self.layers = layers

    many = [3.0 + k for k in range(30)]
    assert ends_to_compare(Solved(layer([3.0], [(-2.0, 2.0)]))) == {"": FEW}
    assert ends_to_compare(Solved(layer(many, [(-2.0, 2.0)]))) == {"": 31}
    assert ends_to_compare(Solved(layer([3.0], [(-2.0, 2.0)], outlier_path=[many, [3.0]]))) == {"": 31}
    for everything in (
        layer([], [(-2.0, 2.0)]),
        layer([0.0, 3.0], [(-2.0, -1.0), (1.0, 2.0)]),
        layer([3.0], [(1.0, 2.0)], atoms=((0.0, 0.5),)),
        layer([3.0], [(-2.0, 2.0)], outlier_path=[[0.5], [3.0]], shift_path=[-1.0, 0.0]),
    ):
        assert not ends_to_compare(Solved(everything))


def test_ends_give_the_matches_of_the_whole_or_say_that_they_do_not():
    values = np.sort(np.concatenate([np.linspace(1, 2, 50), [3.0, 4.0, 0.5]]))
    drawn = layer([4.0, 3.0, 0.5], [(1.0, 2.0)])
    whole, ends = match(drawn, [values]), match(drawn, [at_ends(values, 4)], whole=False)
    assert not ends.left_out
    assert [(o.quantity, *o.draws) for o in whole.outliers] == [(o.quantity, *o.draws) for o in ends.outliers]
    assert [(name, *draws) for name, _, draws in whole.edges] == [(n, *d) for n, _, d in ends.edges]
    assert match(drawn, [at_ends(values, 2)], whole=False).left_out == ("outliers above the bulk",)
    null = np.sort(np.concatenate([np.zeros(5), values]))
    assert match(drawn, [at_ends(null, 4)], whole=False).left_out == ("outliers below the bulk",)
    gap = layer([1.5], [(1.0, 1.4), (1.6, 2.0)])
    assert match(gap, [at_ends(values, 4)], whole=False).left_out == ("outliers in a gap",)


# The verbs


@pytest.fixture(scope="module")
def spike():
    return derive.load("spiked_wigner")


def test_ends_are_those_of_the_whole_and_compare_the_same(spike):
    kwargs = {"gamma0": 2.0, "size": 60, "seeds": 3}
    whole, ends = spike.simulate(**kwargs), spike.simulate(**kwargs, eigenvalues="ends")
    assert np.allclose(ends.eigenvalues, at_ends(whole.eigenvalues, FEW), rtol=0, atol=1e-13)
    assert ends.layer().size == 60 and not ends.layer().whole and whole.layer().whole
    with pytest.raises(NumericalError, match="all eigenvalues"):
        ends.plot()
    assert ends.as_dict().keys() == whole.as_dict().keys()
    for theory in (spike.solve(gamma0=2.0), spike.solve(gamma0=2.0, path=True)):
        one, other = derive.compare(theory, whole), derive.compare(theory, ends)
        assert [row.quantity for row in one.rows] == [row.quantity for row in other.rows]
        assert np.allclose([r.simulation for r in one.rows], [r.simulation for r in other.rows], rtol=0, atol=1e-12)


def test_a_comparison_without_outliers_computes_all(spike):
    found = spike.compare(gamma0=0.5, size=60, seeds=3, eigenvalues="ends")
    assert found.simulation.layer().whole and any("moment" in row.quantity for row in found.rows)


def test_comparisons_of_a_sweep_know_what_the_theory_needs(spike, tmp_path):
    kwargs = {"size": 60, "seeds": 2, "eigenvalues": "ends"}
    swept = spike.sweep(gamma0=[0.5, 2.0], of="compare", journal=tmp_path / "j", **kwargs)
    assert [point.simulation.layer().whole for point in swept] == [True, False]
    tree = swept.to_xarray()["simulation"]
    assert tree["eigenvalues"].dims == ("gamma0", "seed", "place_at_ends")
    for point, row in zip(swept, tree["eigenvalues"].values, strict=True):
        assert np.array_equal(row, at_ends(point.simulation.eigenvalues, FEW))
    for point in swept:
        alone = spike.compare(gamma0=point.parameters["gamma0"], **kwargs)
        assert [row.as_dict() for row in point.rows] == [row.as_dict() for row in alone.rows]
    with pytest.raises(DeriveError, match="eigenvalues is ends there and all here"):
        spike.sweep(gamma0=[0.5, 2.0], of="compare", journal=tmp_path / "j", size=60, seeds=2)


def test_commands_ask_for_what_they_show(monkeypatch):
    asked = []
    monkeypatch.setattr(derive.api.Theory, "simulate", lambda self, given, **options: asked.append(options) or 1 / 0)
    for more in ([], ["--plot", "x.png"], ["--out", "x.nc"], ["--out", "x.csv"], ["--eigenvalues", "all"]):
        CliRunner().invoke(main, ["simulate", "spiked_wigner", "--size", "2000", *more])
    CliRunner().invoke(main, ["simulate", "spiked_wigner"])
    assert [one["eigenvalues"] for one in asked] == ["ends", None, None, "ends", "all", None]
    told = CliRunner().invoke(main, ["simulate", "spiked_wigner", "--eigenvalues", "ends", "--plot", "x.png"])
    assert told.exit_code == 2 and "histogram" in told.stderr


def test_outliers_beside_a_bulk_that_is_one_point_are_compared():
    """What training has added is of finite rank: all other eigenvalues are zero, and there is no edge."""
    c, T = derive.parameter("c", default=1.0), derive.parameter("T", default=2, domain=derive.whole_positive)
    D, N = derive.sectors("D", N=1.5)
    t = derive.training_clock("t", steps=T)
    W0, v = derive.gaussian("W0", N, D, variance=1 / D), derive.normal("v", D)
    h, W = derive.field("h", N, t), derive.weights("W", N, D, t)
    model = derive.Model(
        parameters=(c, T),
        equations=[
            derive.Eq(h(t), W(t) @ v),
            derive.Eq(W(0), W0),
            derive.Eq(W(t + 1), W(t) + c / D * derive.outer(h(t), v)),
        ],
        observe={"along": derive.alignment(v)},
        probe=derive.spectrum((W(T) - W0).T @ (W(T) - W0)),
    )
    m = derive.load(model)
    rows = derive.compare(m.solve(), m.simulate(size=100, seeds=6)).rows
    told, simulated = ({row.quantity: getattr(row, kind) for row in rows} for kind in ("theory", "simulation"))
    assert told["outlier 1 above the bulk"] == pytest.approx(1.5 * (1 + 2) ** 2)
    assert told["along (right) of outlier 1 above the bulk"] == pytest.approx(1)
    assert not any("edge" in name for name in told)
    assert simulated["along (right) of outlier 1 above the bulk"] == pytest.approx(1)


def test_ends_at_earlier_times_are_those_of_the_whole():
    solver, values = solver_and_values("anti_hebbian", gamma0=4.0, dt=0.25, T=4)
    whole, ends = (simulate(solver, values, 60, 2, times=(1, 3), ends=wanted) for wanted in (None, {"": 3}))
    for one, other in zip(whole.layer("").ends, ends.layer("").ends, strict=True):
        for early, few in zip(one, other, strict=True):
            assert np.allclose(at_ends(np.asarray(early), 3), few, rtol=0, atol=1e-12)
    assert not np.allclose(ends.layer("").ends[0][0], ends.layer("").ends[0][1])
