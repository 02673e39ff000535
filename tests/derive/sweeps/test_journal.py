"""What a sweep has computed is kept: resumed, extended, sharded and merged it is the same bytes as done at once."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray
from click.testing import CliRunner

import derive
import derive.sweeps.units
import derive.sweeps.workers
from derive.api.cutting import CHUNK
from derive.api.sweeping import Interrupted
from derive.cli import main
from derive.errors import DeriveError, ParameterError
from derive.results.trees import _Table
from derive.sweeps.journal import merged, opened, write_merged

ABOUT = {"declaration": "d", "parameters": {"nu": [1, 2]}, "options": {"seed": 0}, "versions": {"jax": "1"}}
GRID = [round(0.25 * k, 2) for k in range(2, 2 + 2 * CHUNK + 1)]


@pytest.fixture(scope="module")
def spike() -> derive.Theory:
    return derive.load("spiked_wigner")


@pytest.fixture
def computed(monkeypatch) -> list[str]:
    """The units that are computed from now on, by name."""
    names, original = [], derive.sweeps.units.results_of

    def counted(unit, tell=None):
        names.append(unit.name)
        return original(unit, tell)

    monkeypatch.setattr(derive.sweeps.workers, "results_of", counted)
    return names


def journal_of(path: Path, about=ABOUT, **units: str) -> Path:
    journal = opened(path, about)
    for name, line in units.items():
        journal.add(name, line)
    journal.close()
    return path


def in_order(path: Path) -> list[bytes]:
    return sorted(path.read_bytes().splitlines(keepends=True))


# The file


def test_what_was_added_is_there_again(tmp_path: Path):
    path = journal_of(tmp_path / "j", a='{"x":1}', b='{"y":[0.1,null]}')
    again = opened(path, ABOUT)
    assert again.done == {"a": '{"x":1}', "b": '{"y":[0.1,null]}'}
    again.add("c", "[]")
    again.close()
    assert list(opened(path, ABOUT, write=False).done) == ["a", "b", "c"]
    assert [json.loads(line)["unit"] for line in path.read_text().splitlines()[1:]] == ["a", "b", "c"]


def test_a_line_that_was_cut_off_anywhere_is_computed_again(tmp_path: Path):
    whole = journal_of(tmp_path / "j", a='{"x":1}', b='{"y":2}').read_bytes()
    starts = [0, *(k + 1 for k, byte in enumerate(whole) if byte == 10)]
    for length in range(len(whole)):
        cut = tmp_path / f"cut{length}"
        cut.write_bytes(whole[:length])
        journal = opened(cut, ABOUT)
        assert list(journal.done) == ["a", "b"][: max(0, sum(start <= length for start in starts) - 2)]
        for name, line in (("a", '{"x":1}'), ("b", '{"y":2}')):
            if name not in journal.done:
                journal.add(name, line)
        journal.close()
        assert cut.read_bytes() == whole
        cut.unlink()


@pytest.mark.parametrize(
    ("other", "word"),
    [
        ({"declaration": "e"}, "declaration is different"),
        ({"parameters": {"nu": [1, 3]}}, "nu is 1,2 there and 1,3 here"),
        ({"parameters": {"nu": [1, 2], "eta": [0.1]}}, "eta is not given there"),
        ({"options": {"seed": 1}}, "seed is 0 there and 1 here"),
        ({"versions": {"jax": "2"}}, "jax is 1 there and 2 here"),
    ],
)
def test_a_foreign_journal_is_refused_in_one_sentence(other: dict, word: str, tmp_path: Path):
    path = journal_of(tmp_path / "j", a="{}")
    before = path.read_bytes()
    with pytest.raises(DeriveError, match=word) as caught:
        opened(path, {**ABOUT, **other})
    assert "\n" not in str(caught.value) and path.read_bytes() == before


@pytest.mark.parametrize("content", [b"a,b\n1,2\n", b"{}\n", b"\xff\xfe", b'{"sweep":"x"}\n', b'{"journal":99}\n'])
def test_another_file_is_refused_and_left_alone(content: bytes, tmp_path: Path):
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(DeriveError, match="journal"):
        opened(path, ABOUT)
    assert path.read_bytes() == content


def test_a_line_that_was_changed_is_named(tmp_path: Path):
    path = journal_of(tmp_path / "j", a="{}", b="{}")
    head, a, b = path.read_bytes().splitlines(keepends=True)
    for wrong in (a[:-5] + b"\n", a.replace(b'"sweep":"', b'"sweep":"0')):
        path.write_bytes(head + wrong + b)
        with pytest.raises(DeriveError, match="line 2, is damaged"):
            opened(path, ABOUT)


def test_two_processes_do_not_write_one_journal(tmp_path: Path):
    first = opened(tmp_path / "j", ABOUT)
    with pytest.raises(DeriveError, match="another process"):
        opened(tmp_path / "j", ABOUT)
    first.close()
    opened(tmp_path / "j", ABOUT).close()


def test_journals_are_joined_and_checked(tmp_path: Path):
    one, two = journal_of(tmp_path / "1", b="2", c="3"), journal_of(tmp_path / "2", a="1", b="2")
    about, units = merged([one, two])
    write_merged(tmp_path / "all", about, units)
    assert opened(tmp_path / "all", ABOUT).done == {"a": "1", "b": "2", "c": "3"}
    assert list(units) != sorted(units) and in_order(tmp_path / "all") == sorted({*in_order(one), *in_order(two)}), (
        "one line for each unit"
    )
    with pytest.raises(DeriveError, match="different numbers for b"):
        merged([one, journal_of(tmp_path / "3", b="5")])
    with pytest.raises(DeriveError, match="different sweeps: seed"):
        merged([one, journal_of(tmp_path / "4", {**ABOUT, "options": {"seed": 2}}, b="2")])
    with pytest.raises(DeriveError, match="no file"):
        merged([one, tmp_path / "nowhere"])


# Sweeps


@pytest.mark.slow
def test_an_interrupted_sweep_goes_on_where_it_was(spike, computed, monkeypatch, tmp_path: Path):
    whole, path = tmp_path / "whole", tmp_path / "j"
    at_once = spike.sweep(gamma0=GRID, journal=whole)
    names = list(computed)
    assert names == ["solve 000000", f"solve {CHUNK:06d}", f"solve {2 * CHUNK:06d}"]
    counted = derive.sweeps.workers.results_of

    def interrupted(unit, tell=None):
        if len(computed) == 1:
            raise KeyboardInterrupt
        return counted(unit, tell)

    computed.clear()
    monkeypatch.setattr(derive.sweeps.workers, "results_of", interrupted)
    with pytest.raises(Interrupted, match=f"1 of 3 parts done, kept in .*{path.name}; run the same command"):
        spike.sweep(gamma0=GRID, journal=path)
    monkeypatch.setattr(derive.sweeps.workers, "results_of", counted)
    path.write_bytes(path.read_bytes() + whole.read_bytes().splitlines()[2][:100])  # and a line that was cut off
    resumed = spike.sweep(gamma0=GRID, journal=path)
    assert computed == names
    assert in_order(path) == in_order(whole)
    assert resumed.to_frame().equals(at_once.to_frame()) and resumed.rows() == at_once.rows()
    spike.sweep(gamma0=GRID, journal=path)
    assert computed == names, "nothing is computed twice"


def test_the_command_says_how_to_go_on(spike, monkeypatch, tmp_path: Path):
    def interrupted(unit, tell=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(derive.sweeps.workers, "results_of", interrupted)
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(main, ["solve", "spiked_wigner", "gamma0=1,2", "--out", "o.csv"])
    assert told.exit_code == 130 and "kept in o.csv.journal; run the same command" in told.stderr
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(main, ["solve", "spiked_wigner", "gamma0=1,2", "--out", "o.csv"])
    assert told.exit_code == 0 and [path.name for path in tmp_path.iterdir()] == ["o.csv"]


def test_points_of_a_sweep_are_those_one_by_one(spike):
    for point in spike.sweep(gamma0=GRID[: CHUNK + 1]):
        alone = spike.solve(gamma0=point.parameters["gamma0"])
        assert point.outliers == pytest.approx(alone.outliers, rel=1e-12) and point.trouble == alone.trouble
        assert np.array_equal(point.bulk_edges, alone.bulk_edges)


def test_points_keep_what_can_be_asked_of_them(spike):
    (point, _) = spike.sweep(gamma0=[2.0, 3.0])
    with pytest.raises(ParameterError, match="solve this point alone"):
        point.a_matrix([3.0])
    assert point.made == spike.solve(gamma0=2.0).made and point.made.command == spike.solve(gamma0=2.0).made.command


def test_what_compiles_is_told():
    import jax

    from numerics.support.compiling import tell_while_compiling

    told: list[bool] = []
    with tell_while_compiling(told.append):
        jax.jit(lambda x: x * 3.25 + len(told))(1.0)
    seen = len(told)
    assert told[0] is True and told[-1] is False
    jax.jit(lambda x: x * 4.25)(1.0)
    assert len(told) == seen


def test_more_seeds_extend_fewer(spike, computed, tmp_path: Path):
    kwargs = {"of": "simulate", "gamma0": [1.5, 2.0], "size": 30, "seed": 3}
    spike.sweep(**kwargs, seeds=2, journal=tmp_path / "j")
    assert len(computed) == 4
    more = spike.sweep(**kwargs, seeds=3, journal=tmp_path / "j")
    assert len(computed) == 6
    fresh = spike.sweep(**kwargs, seeds=3, journal=tmp_path / "fresh")
    assert in_order(tmp_path / "j") == in_order(tmp_path / "fresh")
    for point in (*more, *fresh):
        alone = spike.simulate(gamma0=point.parameters["gamma0"], size=30, seeds=3, seed=3)
        assert np.array_equal(point.eigenvalues, alone.eigenvalues)
        assert np.array_equal(point["spike_norm"], alone["spike_norm"])


def test_shards_that_are_merged_are_the_whole(spike, tmp_path: Path):
    whole = spike.sweep(gamma0=[1.0, 2.0], of="compare", size=40, seeds=3, journal=tmp_path / "whole")
    parts = [tmp_path / f"part{k}" for k in (1, 2, 3)]
    for k, part in enumerate(parts, start=1):
        piece = spike.sweep(gamma0=[1.0, 2.0], of="compare", size=40, seeds=3, shard=f"{k}/3", journal=part)
        assert piece.missing and "another shard" in piece.trouble[0]
    told = CliRunner().invoke(main, ["merge", str(tmp_path / "all"), *map(str, parts)])
    assert told.exit_code == 0, told.output
    found = spike.sweep(gamma0=[1.0, 2.0], of="compare", size=40, seeds=3, journal=tmp_path / "all")
    assert in_order(tmp_path / "all") == in_order(tmp_path / "whole") and found.rows() == whole.rows()
    for point in whole:
        alone = spike.compare(gamma0=point.parameters["gamma0"], size=40, seeds=3)
        assert [row.as_dict() for row in point.rows] == [row.as_dict() for row in alone.rows]


def test_a_plan_counts_and_measures(spike, computed, tmp_path: Path):
    plan = spike.plan(gamma0=GRID, journal=tmp_path / "j")
    assert (plan.points, plan.units, plan.done, plan.measured) == (len(GRID), 3, 0, ()) and not computed
    plan = spike.plan(gamma0=GRID, journal=tmp_path / "j", measured=True)
    assert plan.done == 1 and plan.expected(1) > plan.expected(2) > 0
    told = CliRunner().invoke(main, ["simulate", "spiked_wigner", "--size", "20", "--seeds", "4", "--dry-run"])
    assert told.exit_code == 0 and told.stdout.startswith("1 points, 4 samples in 4 parts")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"of": "guess"}, "solve, simulate or compare"),
        ({"jobs": 0}, "at least one"),
        ({"jobs": 1, "on": "dask:x"}, "exclude each other"),
        ({"shard": "3/2", "journal": "j"}, "K from 1 to N"),
        ({"shard": "half", "journal": "j"}, "write K/N"),
        ({"shard": "1/2"}, "journal"),
        ({"on": "slurm:x"}, "dask:tcp://HOST:PORT"),
        ({"on": "dask:nowhere.json"}, "no file"),
        ({"of": "compare", "seeds": 1}, "at least 2"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_sentence(spike, options: dict, word: str, monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((DeriveError, ParameterError), match=word) as caught:
        spike.sweep(gamma0=[1.0, 2.0], **options)
    assert "\n" not in str(caught.value) and not list(tmp_path.iterdir())


def test_sweeps_of_simulations_and_comparisons_are_saved_and_labelled(spike, tmp_path: Path):
    for of in ("simulate", "compare"):
        swept = spike.sweep(gamma0=[0.5, 2.0], of=of, size=40, seeds=3)
        again = derive.open(swept.save(tmp_path / f"{of}.nc"))
        assert again.rows() == swept.rows() and again.made == swept.made
        tree = swept.to_xarray()
        drawn = tree["simulation"] if of == "compare" else tree
        assert drawn["eigenvalues"].dims == ("gamma0", "seed", "index") and drawn["eigenvalues"].shape == (2, 3, 40)
        assert swept.plot().axes and len(swept.to_frame()) == 2 and str(swept)
    assert tree["agrees"].dims == ("gamma0",) and tree["theory"]["outliers"].sel(gamma0=2).values == [2.5]


def test_layers_with_different_numbers_of_outliers_are_one_table():
    table = _Table(("a",), (2,))
    table.add("outliers_0", [np.array([3.0]), None], ("rank",))
    table.add("outliers_1", [np.array([3.0, 2.0]), np.array([5.0])], ("rank",))
    found = xarray.Dataset(table.aligned())
    assert found.sizes == {"a": 2, "rank": 2}
    assert np.array_equal(found["outliers_0"].values, [[3, np.nan], [np.nan, np.nan]], equal_nan=True)


@pytest.mark.slow
def test_bulks_do_not_depend_on_parameters_that_they_do_not_read():
    """What is kept for all points that share some parameters is what each of them has."""
    from conftest import solver_of, values_of

    from numerics.bulk.branch import Branch
    from numerics.bulk.support import law_of
    from numerics.runtime.point import replaced

    shared = 0
    for name in ("spiked_wigner", "anti_hebbian", "coupled_spikes", "deep_linear", "extensive_two_layer"):
        solver = solver_of(name)
        for matrix in solver.matrices:
            p = solver.numbers(values_of(name))
            branch = Branch(matrix.bulk, p)
            unread = {
                key: 1.37 * x for key, x in vars(p).items() if key not in vars(branch.own) and isinstance(x, float)
            }
            moved = Branch(matrix.bulk, replaced(p, **unread))
            z = np.array([0.3 + 1j, -2.0 + 0.2j, 9.0])
            r = np.ones((3, len(matrix.bulk.responses))) * (0.2 - 0.1j)
            for one, other in zip(z, r, strict=True):
                assert np.array_equal(matrix.bulk.residual(p, one, other), matrix.bulk.residual(moved.p, one, other))
            assert law_of(branch) is law_of(moved)
            shared += bool(unread)
    assert shared >= 3


def test_the_journal_of_another_model_is_named_by_its_model(tmp_path):
    """Its code and its parameters differ too, but only because the model does."""
    path = tmp_path / "j"
    first, other = (
        {"code": {name: "0" * 32}, "parameters": {name: [1.0]}, "sweep": {"of": "solve", "setting": name}}
        for name in ("anti_hebbian", "spiked_wigner")
    )
    opened(path, first).close()
    with pytest.raises(DeriveError, match="setting is anti_hebbian there and spiked_wigner here"):
        opened(path, other)
