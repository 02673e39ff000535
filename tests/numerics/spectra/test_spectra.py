"""Checkpoints that somebody already has: what is read, what is refused, and whether bulk and outliers are right."""

from __future__ import annotations

import io
import json
import math
import pickle
import re
import struct
import sys
import zipfile
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner, Result

from derive.cli import main
from derive.errors import CheckpointError
from derive.inputs.checkpoints import from_bfloat16, load, read_checkpoint
from derive.support.guarded import with_digest
from numerics.spectra import fitting as spectra
from numerics.spectra.extensive import fit_extensive
from numerics.spectra.fitting import EXTENSIVE, FITS, NEARLY, NOT, SPATIAL_FIRST, STANDARD, NoSpectrum, analyse
from numerics.spectra.kinds import by_kind, kind_and_depth

ROOT = Path(__file__).parents[3]


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["spectrum", *map(str, arguments)])


def answer(*arguments: object) -> dict:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: object) -> str:
    """The sentence with which a file is refused; nothing may reach stdout or the disk."""
    before = sorted(Path.cwd().iterdir())
    result = run(*arguments, "--plot", "never.png")
    assert result.exit_code == 2, result.output
    assert result.stdout == "" and result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert sorted(Path.cwd().iterdir()) == before
    return result.stderr


@pytest.fixture(autouse=True)
def in_a_directory_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def noise(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, columns))


def spiked(rows: int, columns: int, strengths: tuple[float, ...], seed: int) -> np.ndarray:
    """Unit noise plus spikes of these strengths in units of sqrt(longer side), in independent directions."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((rows, columns))
    left = np.linalg.qr(rng.standard_normal((rows, len(strengths))))[0]
    right = np.linalg.qr(rng.standard_normal((columns, len(strengths))))[0]
    return matrix + math.sqrt(max(rows, columns)) * (left * np.array(strengths)) @ right.T


def bbp_position(strength: float, ratio: float) -> float:
    """Where a spike above the transition shows, in units of sqrt(longer side), for unit noise and a ratio below 1."""
    return math.sqrt((1.0 + strength**2) * (ratio + strength**2)) / strength


def write_safetensors(path: str, tensors: dict[str, tuple[str, tuple[int, ...], bytes]], **changes: object) -> None:
    """A file as the format is documented; `changes` replace parts of it to damage it."""
    header, buffer = {"__metadata__": {"format": "pt"}}, b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": list(shape), "data_offsets": [len(buffer), len(buffer) + len(raw)]}
        buffer += raw
    for name, change in changes.items():
        header[name] = {**header[name], **change}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + buffer)


def bfloat16_bytes(matrix: np.ndarray) -> bytes:
    return (matrix.astype(np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()


# The two laws


@pytest.mark.long
@pytest.mark.slow
def test_tracy_widom_law_has_the_tabulated_moments_and_quantiles():
    grid = np.linspace(-9.0, 7.0, 801)
    tail = np.array([spectra.tracy_widom_survival(float(value)) for value in grid])
    mean = grid[0] + np.trapezoid(tail, grid)
    variance = grid[0] ** 2 + 2 * np.trapezoid(grid * tail, grid) - mean**2
    assert mean == pytest.approx(-1.2065335746, abs=1e-4)
    assert variance == pytest.approx(1.6077810345, abs=2e-4)
    assert spectra.tracy_widom_threshold(0.05) == pytest.approx(0.9793, abs=1e-4)
    assert spectra.tracy_widom_threshold(0.01) == pytest.approx(2.0234, abs=1e-4)
    near, far = spectra.tracy_widom_survival(9.9999), spectra.tracy_widom_survival(10.0001)
    assert far < near and near / far == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize("ratio", [1.0, 0.999, 0.5, 0.02])
def test_marchenko_pastur_law_has_its_moments_and_its_density(ratio):
    law, fraction = spectra.marchenko_pastur(ratio)
    middle = 0.5 * (law[1:] + law[:-1])
    assert np.sum(np.diff(fraction) * middle**2) == pytest.approx(1.0, abs=1e-5)
    assert np.sum(np.diff(fraction) * middle**4) == pytest.approx(1.0 + ratio, abs=1e-5)
    inner = slice(200, 7800)
    slope = np.diff(fraction)[inner] / np.diff(law)[inner]
    assert slope == pytest.approx(spectra.marchenko_pastur_density(middle[inner], ratio), rel=2e-3)


# Noise


@pytest.mark.long_cases("40-40-2000", "60-120-2000")
@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns", "seeds"), [(40, 40, 2000), (60, 120, 2000), (300, 200, 150)])
def test_pure_noise_has_outliers_no_more_often_than_the_level_says(rows, columns, seeds):
    """Both edges are tested at 0.1%: among n matrices 0.002 n are expected, and Poisson's law bounds them."""
    found = wrong_law = 0
    for seed in range(seeds):
        one = analyse("W", noise(rows, columns, seed))
        found += bool(one.outliers)
        wrong_law += one.verdict != FITS
    expected = 0.002 * seeds
    assert found <= expected + 4.0 * math.sqrt(expected) + 1.0
    assert wrong_law <= 0.001 * seeds + 4.0 * math.sqrt(0.001 * seeds) + 1.0


@pytest.mark.long
@pytest.mark.slow
def test_a_loose_level_is_reached_and_not_undercut():
    """At 5% on noise the rate must be near 5%: neither a test that never fires nor one that fires at random."""
    seeds = 1500
    hits = sum(
        any(o.side == "above" for o in analyse("W", noise(60, 90, s), level=0.05).outliers) for s in range(seeds)
    )
    assert abs(hits / seeds - 0.05) < 4.0 * math.sqrt(0.05 * 0.95 / seeds) + 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(150, 100), (100, 150), (120, 120)])
def test_scale_and_edges_of_noise(rows, columns):
    fits = [analyse("W", 0.03 * noise(rows, columns, seed)) for seed in range(20)]
    scales = np.array([one.scale for one in fits])
    assert abs(scales.mean() - 0.03) < 4.0 * scales.std(ddof=1) / math.sqrt(20) + 0.03 * 0.3 / 100
    one, phi = fits[0], rows / columns
    assert one.aspect_ratio == phi
    assert one.singular_edges[0] == pytest.approx(one.scale * abs(1 - math.sqrt(phi)))
    assert one.singular_edges[1] == pytest.approx(one.scale * (1 + math.sqrt(phi)))
    root = math.sqrt(columns / rows)
    assert one.eigenvalue_edges == pytest.approx((one.scale**2 * (1 - root) ** 2, one.scale**2 * (1 + root) ** 2))
    exact = np.linalg.svd(0.03 * noise(rows, columns, 0), compute_uv=False) / math.sqrt(columns)
    assert one.singular_values == pytest.approx(exact, abs=1e-9)
    assert one.eigenvalues == pytest.approx(exact**2 * columns / rows, abs=1e-11)


# Spikes


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "columns"), [(200, 200), (100, 250), (250, 100)])
def test_spikes_are_found_where_the_transition_puts_them_with_the_error_stated(rows, columns):
    longer, shorter = max(rows, columns), min(rows, columns)
    ratio = shorter / longer
    strengths = tuple(factor * ratio**0.25 for factor in (4.0, 2.0))
    places, errors, spikes = [], [], []
    for seed in range(60):
        one = analyse("W", 0.1 * spiked(rows, columns, strengths, seed))
        above = [outlier for outlier in one.outliers if outlier.side == "above"]
        assert len(above) == 2 and one.verdict == FITS
        unit = 0.1 * math.sqrt(longer / columns)
        places.append([outlier.singular_value / unit for outlier in above])
        errors.append([outlier.error / unit for outlier in above])
        spikes.append([outlier.spike / unit for outlier in above])
    for k, strength in enumerate(strengths):
        draws, stated = np.array(places)[:, k], np.array(errors)[:, k].mean()
        assert abs(draws.mean() - bbp_position(strength, ratio)) < 4 * draws.std(ddof=1) / math.sqrt(60) + 1.0 / longer
        assert 0.7 < draws.std(ddof=1) / stated < 1.3
        assert np.mean(np.array(spikes)[:, k]) == pytest.approx(strength, rel=0.03)


def test_a_spike_below_the_transition_is_not_seen():
    seen = sum(bool(analyse("W", spiked(100, 150, (0.6 * (2 / 3) ** 0.25,), seed)).outliers) for seed in range(200))
    assert seen <= 3


@pytest.mark.slow
def test_power_grows_from_nothing_to_certainty_across_the_transition():
    def power(factor: float) -> float:
        return float(np.mean([bool(analyse("W", spiked(100, 100, (factor,), s)).outliers) for s in range(100)]))

    weak, middle, strong = power(1.05), power(1.5), power(2.2)
    assert weak < 0.15 and 0.4 < middle < 0.95 and strong == 1.0


def test_many_outliers_leave_the_scale_alone():
    """Two in five singular values are spikes: the median of the whole spectrum would be off by half."""
    one = analyse("W", spiked(200, 300, tuple(np.linspace(3.0, 8.0, 80)), 5))
    assert len(one.outliers) == 80 and one.verdict == FITS
    assert one.scale == pytest.approx(1.0, abs=0.03)


def test_weak_rows_lie_below_the_bulk():
    matrix = noise(100, 300, 1)
    matrix[:7] *= 0.05
    one = analyse("W", matrix)
    assert [outlier.side for outlier in one.outliers] == ["below"] * 7
    assert all(outlier.edge_ratio < 1.0 and outlier.error is None for outlier in one.outliers)


def test_the_kind_of_noise_does_not_matter_but_heavy_tails_are_named():
    rng = np.random.default_rng(4)
    for matrix in (rng.uniform(-1, 1, (150, 200)), rng.choice([-1, 1], (150, 200)).astype(np.int8)):
        one = analyse("W", matrix)
        assert one.verdict == FITS and not one.outliers and one.scale == pytest.approx(matrix.std(), rel=0.01)
    matrix = rng.standard_normal((150, 200))
    matrix[3, 4] = 40.0
    one = analyse("W", matrix)
    assert len(one.outliers) == 1 and one.largest_entry > one.entry_threshold


def test_a_bulk_of_another_law_is_said_to_be_one():
    rng = np.random.default_rng(6)
    orthogonal = np.linalg.qr(rng.standard_normal((300, 200)))[0]
    power_law = np.diag(np.arange(1, 201) ** -0.7) @ rng.standard_normal((200, 300))
    product = rng.standard_normal((200, 300)) @ rng.standard_normal((300, 300))
    triangle = np.tril(rng.standard_normal((200, 200)))
    for matrix in (orthogonal, power_law, product, triangle):
        one = analyse("W", matrix)
        assert one.verdict == NOT and one.distance > one.distance_allowed
        assert all(outlier.p_value is None for outlier in one.outliers)


def test_a_bulk_that_is_nearly_right_must_clear_its_own_misfit():
    rng = np.random.default_rng(8)
    rows = np.exp(0.12 * rng.standard_normal((500, 1)))
    one = analyse("W", rows * rng.standard_normal((500, 500)))
    assert one.verdict == NEARLY and one.misfit > 0.0
    assert one.threshold == pytest.approx(spectra.tracy_widom_threshold(1e-3) + one.misfit)
    assert all(outlier.p_value is None for outlier in one.outliers)


def test_large_and_small_units_keep_the_shape_and_absurd_ones_get_a_word():
    plain = analyse("W", spiked(60, 80, (3.0,), 2))
    for unit in (1e100, 1e-100):
        one = analyse("W", unit * spiked(60, 80, (3.0,), 2))
        assert one.scale == pytest.approx(unit * plain.scale, rel=1e-9)
        assert one.outliers[0].tracy_widom == pytest.approx(plain.outliers[0].tracy_widom, rel=1e-6)
    with pytest.raises(NoSpectrum, match="cannot be squared"):
        analyse("W", 1e200 * noise(30, 30, 0))
    with pytest.raises(NoSpectrum, match="rank 1"):
        analyse("W", np.full((30, 30), -128, dtype=np.int8))


def test_a_fitted_spectrum_shows_itself_in_a_few_lines():
    text = repr(analyse("W", spiked(60, 80, (3.0, 4.0), 2)))
    assert text.startswith("FittedSpectrum of W\n") and "60 x 80" in text and len(text.splitlines()) == 8


# Convolution kernels


def test_kernels_are_unfolded_as_the_paper_does():
    rng = np.random.default_rng(0)
    kernel = rng.standard_normal((5, 7, 2, 3))  # C_out, C_in, k1, k2
    matrix = spectra.unfold(kernel, STANDARD)
    assert matrix.shape == (2 * 5, 3 * 7)
    for o, i, a, b in ((4, 6, 1, 2), (0, 3, 1, 0), (2, 0, 0, 1)):
        assert matrix[a * 5 + o, b * 7 + i] == kernel[o, i, a, b]
    assert np.array_equal(spectra.unfold(kernel.transpose(2, 3, 1, 0), SPATIAL_FIRST), matrix)


def test_both_layouts_of_a_checkpoint_give_the_same_spectrum():
    rng = np.random.default_rng(1)
    kernel = 0.02 * rng.standard_normal((32, 48, 3, 3))
    np.savez("conv.npz", torch=kernel, flax=kernel.transpose(2, 3, 1, 0))
    one, other = answer("conv.npz")["matrices"]
    assert (one["rows"], one["columns"], one["aspect_ratio"]) == (96, 144, 96 / 144)
    assert one["layout"] == STANDARD and other["layout"] == SPATIAL_FIRST
    assert one["scale"] == pytest.approx(other["scale"], rel=1e-12) and one["scale"] == pytest.approx(0.02, rel=0.02)
    forced = answer("conv.npz", "--include", "torch", "--layout", "hwio")
    assert (forced["matrices"][0]["rows"], forced["matrices"][0]["columns"]) == (32 * 3, 48 * 3)
    assert forced["matrices"][0]["layout"] == SPATIAL_FIRST


# Files


def test_safetensors_of_every_type():
    matrix = np.round(40 * noise(30, 50, 3)).clip(-120, 120)
    floats = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"}
    tensors = {kind: (kind, (30, 50), matrix.astype(code).tobytes()) for kind, code in floats.items()}
    tensors["BF16"] = ("BF16", (30, 50), bfloat16_bytes(matrix))
    tensors["BOOL"] = ("BOOL", (30, 50), bytes(1500))
    tensors["F8_E4M3"] = ("F8_E4M3", (30, 50), bytes(1500))
    write_safetensors("all.safetensors", tensors)
    for entry in read_checkpoint(Path("all.safetensors")):
        if entry.kind in floats:
            assert np.array_equal(load(Path("all.safetensors"), entry), matrix)
        elif entry.kind == "BF16":  # eight bits of mantissa hold whole numbers up to 256
            assert np.array_equal(load(Path("all.safetensors"), entry), matrix)
    result = answer("all.safetensors")
    assert [one["name"] for one in result["matrices"]] == [*floats, "BF16"]
    assert {part["name"]: part["reason"].split(";")[0] for part in result["left_out"]} == {
        "BOOL": "Boolean values, not weights",
        "F8_E4M3": "type F8_E4M3 is not supported",
    }


def test_bfloat16_bits():
    bits = np.array([0x3F80, 0xC000, 0x0000, 0x7F80, 0x3E20], dtype=np.uint16)
    assert from_bfloat16(bits).tolist() == [1.0, -2.0, 0.0, math.inf, 0.15625]


def test_bfloat16_weights_keep_their_outliers():
    matrix = 0.02 * spiked(150, 200, (3.0,), 7)
    write_safetensors("w.safetensors", {"w": ("BF16", (150, 200), bfloat16_bytes(matrix))})
    (one,) = answer("w.safetensors")["matrices"]
    exact = analyse("w", matrix)
    assert one["bulk"] == FITS and len(one["outliers"]) == 1
    assert one["outliers"][0]["edge_ratio"] == pytest.approx(exact.outliers[0].edge_ratio, rel=2e-3)


def test_npz_compressed_in_half_precision_and_in_fortran_order():
    matrix = noise(60, 80, 1)
    np.savez_compressed(
        "w.npz", half=matrix.astype(np.float16), fortran=np.asfortranarray(matrix), big=matrix.astype(">f8")
    )
    half, fortran, big = answer("w.npz")["matrices"]
    assert fortran["scale"] == big["scale"] and half["scale"] == pytest.approx(big["scale"], rel=1e-3)


def test_what_is_no_matrix_is_left_out_with_a_word():
    np.savez(
        "w.npz",
        weight=noise(60, 80, 0),
        bias=np.ones(80),
        step=np.array(3),
        heads=np.ones((4, 30, 30)),
        readout=noise(10, 80, 0),
        mask=np.ones((60, 60), dtype=bool),
        phases=np.ones((60, 60), dtype=complex),
        blank=np.zeros((60, 60)),
        constant=np.full((60, 60), 0.5),
    )
    result = answer("w.npz")
    assert [one["name"] for one in result["matrices"]] == ["weight"]
    words = {part["name"]: part["reason"] for part in result["left_out"]}
    assert words["bias"].startswith("one axis") and words["step"].startswith("a single number")
    assert words["heads"].startswith("3 axes") and "too small" in words["readout"]
    assert "Boolean" in words["mask"] and "complex" in words["phases"]
    assert words["blank"] == "all entries are zero" and words["constant"].startswith("rank 1 of 60")
    text = run("w.npz").stdout
    assert "left out bias: one axis" in text and "no outliers" in text


def test_zero_rows_are_left_out_and_counted():
    matrix = noise(100, 120, 0)
    matrix[10:30] = 0.0
    np.savez("w.npz", pruned=matrix, whole=np.delete(matrix, np.s_[10:30], axis=0))
    pruned, whole = answer("w.npz")["matrices"]
    assert pruned["zero_rows_and_columns"] == 20 and pruned["rows"] == 80
    assert pruned["scale"] == pytest.approx(whole["scale"], rel=1e-12)
    assert any("zeros omitted" in note for note in pruned["notes"])


def test_matrices_are_chosen_by_name_by_wildcard_or_by_part():
    np.savez("w.npz", **{f"layers.{i}.weight": noise(30, 30, i) for i in range(12)}, head=noise(30, 30, 99))

    def names(*patterns: str) -> list[str]:
        return [one["name"] for one in answer("w.npz", *(w for p in patterns for w in ("--include", p)))["matrices"]]

    assert names("layers.1.weight") == ["layers.1.weight"]
    assert names("layers.?.weight") == [f"layers.{i}.weight" for i in range(10)]
    assert names("layers.1") == ["layers.1.weight", "layers.10.weight", "layers.11.weight"]
    assert names("head", "layers.3.*") == ["layers.3.weight", "head"]
    assert "no such array; it has " in refused("w.npz", "--include", "nothing like it")
    assert " and 10 more" in refused("w.npz", "--include", "nothing like it")


# Bad files


class Explosive:
    """Unpickling this would leave a file behind."""

    def __reduce__(self):
        return (open, ("exploded", "w"))


def test_pickled_objects_are_never_loaded():
    np.savez("w.npz", weight=noise(30, 40, 0), config=np.array([Explosive()], dtype=object))
    found = answer("w.npz")
    assert [one["name"] for one in found["matrices"]] == ["weight"]
    assert [(one["name"], "never loaded" in one["reason"]) for one in found["left_out"]] == [("config", True)]
    assert not Path("exploded").exists()
    Path("w.npz").write_bytes(pickle.dumps(Explosive()))
    assert "not an .npz file" in refused("w.npz")
    assert not Path("exploded").exists()


@pytest.mark.parametrize("kept", [0, 1, 100, 4000, -30])
def test_truncated_npz(kept):
    np.savez("whole.npz", weight=noise(30, 40, 0))
    Path("w.npz").write_bytes(Path("whole.npz").read_bytes()[:kept])
    assert "w.npz" in refused("w.npz")


def test_npz_that_promises_more_than_it_holds():
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**7, 10**7)})
    with zipfile.ZipFile("w.npz", "w") as archive:
        archive.writestr("w.npy", header.getvalue() + bytes(80))
    assert "truncated or damaged" in refused("w.npz")


def test_npz_with_flipped_bytes():
    np.savez_compressed("w.npz", weight=noise(60, 80, 0))
    raw = bytearray(Path("w.npz").read_bytes())
    raw[5000:5100] = bytes(100)
    Path("w.npz").write_bytes(raw)
    assert "w.npz" in refused("w.npz")


@pytest.mark.parametrize("kept", [0, 5, 8, 40, 300, -1])
def test_truncated_safetensors(kept):
    write_safetensors("whole.safetensors", {"w": ("F32", (30, 40), bytes(4800))})
    Path("w.safetensors").write_bytes(Path("whole.safetensors").read_bytes()[:kept])
    sentence = refused("w.safetensors")
    assert "truncated" in sentence or "empty" in sentence


@pytest.mark.parametrize(
    ("raw", "word"),
    [
        (struct.pack("<Q", 2**63) + b"{}", "allows 100000000"),
        (struct.pack("<Q", 100_000_001) + b"{}", "allows 100000000"),
        (struct.pack("<Q", 50_000_000) + b"{}", "truncated"),
        (struct.pack("<Q", 4) + b"[42]", "brace"),
        (struct.pack("<Q", 4) + b"{a:}", "invalid safetensors header"),
        (struct.pack("<Q", 4) + b'{"\xff}', "invalid safetensors header"),
        (struct.pack("<Q", 13) + b'{"a":1,"a":2}', "twice"),
        (struct.pack("<Q", 2) + b"{}", "no arrays"),
        (struct.pack("<Q", 7) + b'{"a":1}', "dtype, shape and data_offsets"),
        (struct.pack("<Q", 60000) + b'{"a":' * 12000, "invalid safetensors header"),
    ],
)
def test_bad_safetensors_headers(raw, word):
    Path("w.safetensors").write_bytes(raw)
    assert word in refused("w.safetensors")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"data_offsets": [0, 4800]}, "overlap"),
        ({"data_offsets": [9600, 14400]}, "overlap with"),
        ({"data_offsets": [14408, 19208]}, "truncated"),
        ({"data_offsets": [4800, 96000]}, "do not fill"),
        ({"data_offsets": [9600, 4800]}, "do not fill"),
        ({"data_offsets": [-4800, 0]}, "whole numbers"),
        ({"data_offsets": [4800.0, 9600.0]}, "whole numbers"),
        ({"shape": [30, -40]}, "whole numbers"),
        ({"shape": [2**70, 2**70]}, "do not fill"),
        ({"shape": "wide"}, "whole numbers"),
        ({"dtype": "F128"}, "is unknown"),
        ({"dtype": ["F32"]}, "is unknown"),
        ({"dtype": "F64"}, "do not fill"),
    ],
)
def test_bad_safetensors_tensors(change, word):
    """Each is listed with what is wrong with it, and the rest goes on; alone it is refused."""
    good, bad = noise(30, 40, 0).astype("<f4"), noise(30, 40, 1).astype("<f4")
    tensors = {name: ("F32", (30, 40), m.tobytes()) for name, m in (("a", good), ("b", bad), ("c", good + bad))}
    write_safetensors("w.safetensors", tensors, b=change)
    found = answer("w.safetensors")
    damaged = {one["name"]: one["reason"] for one in found["left_out"] if one["damaged"]}
    assert word in damaged["b"]
    beside = {"a"} if word == "overlap" else {"c"} if word == "overlap with" else set()
    assert set(damaged) == {"b"} | beside
    entries = {e.name: e for e in read_checkpoint(Path("w.safetensors"))}
    for name, matrix in (("a", good), ("c", good + bad)):
        if name not in damaged:
            assert np.array_equal(load(Path("w.safetensors"), entries[name]), matrix)
        else:
            with pytest.raises(CheckpointError, match="overlap"):
                load(Path("w.safetensors"), entries[name])
    assert word in refused("w.safetensors", "--include", "b")
    assert f"DAMAGED b: {damaged['b']}" in " ".join(run("w.safetensors").stdout.split())


def test_a_truncated_safetensors_file_gives_what_it_still_has():
    matrices = {name: noise(30, 40, seed).astype("<f4") for seed, name in enumerate("abc")}
    write_safetensors("whole.safetensors", {name: ("F32", (30, 40), m.tobytes()) for name, m in matrices.items()})
    Path("w.safetensors").write_bytes(Path("whole.safetensors").read_bytes()[:-4804])
    found = answer("w.safetensors")
    assert [one["name"] for one in found["matrices"]] == ["a"]
    assert [(one["name"], one["damaged"]) for one in found["left_out"]] == [("b", True), ("c", True)]
    whole = answer("whole.safetensors")
    assert found["matrices"][0] == whole["matrices"][0]


def test_holes_and_leftovers_of_the_buffer_are_refused():
    tensors = {"a": ("F32", (30, 40), bytes(4800)), "b": ("U8", (8,), bytes(8)), "c": ("F32", (30, 40), bytes(4800))}
    write_safetensors("hole.safetensors", tensors, b={"shape": [4], "data_offsets": [4804, 4808]})
    assert "hole" in refused("hole.safetensors")
    write_safetensors("more.safetensors", {"a": ("F32", (30, 40), bytes(4800))})
    with Path("more.safetensors").open("ab") as stream:
        stream.write(b"\0" * 9)
    assert "9 bytes at the end" in refused("more.safetensors")


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_are_none(bad):
    matrix = noise(30, 40, 0)
    matrix[2, 3] = bad
    np.savez("w.npz", good=noise(30, 40, 1), bad=matrix)
    found = answer("w.npz")
    assert [one["name"] for one in found["matrices"]] == ["good"]
    assert [(one["name"], one["damaged"]) for one in found["left_out"]] == [("bad", True)]
    assert "1 entries are NaN or infinite" in refused("w.npz", "--include", "bad")
    assert "DAMAGED bad: 1 entries" in run("w.npz").stdout


def test_files_that_are_none():
    Path("w.csv").write_text("1,2,3")
    Path("empty.npz").write_bytes(b"")
    Path("folder.npz").mkdir()
    np.savez("small.npz", bias=np.ones(5), other=np.ones((3, 3)))
    np.savez("nothing.npz")
    assert "not one of .npz" in refused("w.csv")
    assert "is empty" in refused("empty.npz")
    assert "directory" in refused("folder.npz")
    assert "no matrix with a bulk" in refused("small.npz")
    assert "no arrays" in refused("nothing.npz")
    assert "there is no file" in refused("missing.npz")


# PyTorch


class FakeTensor:
    def __init__(self, array: np.ndarray, kind: str = "torch.float32"):
        self.array, self.dtype, self.shape = array, kind, array.shape

    def is_floating_point(self) -> bool:
        return "float" in self.dtype

    def detach(self) -> FakeTensor:
        return self

    def cpu(self) -> FakeTensor:
        return self

    def float(self) -> FakeTensor:
        return FakeTensor(self.array.astype(np.float32))

    def double(self) -> FakeTensor:
        return FakeTensor(self.array.astype(np.float64))

    def numpy(self) -> np.ndarray:
        return self.array


def stand_in_for_torch(monkeypatch, content: object, version: str = "2.8.0+cpu") -> list[dict]:
    calls: list[dict] = []

    def torch_load(path, **options):
        calls.append(options)
        if isinstance(content, Exception):
            raise content
        return content

    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__=version, load=torch_load, Tensor=FakeTensor))
    return calls


def test_without_torch_its_files_get_a_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    Path("w.pt").write_bytes(pickle.dumps(Explosive()))
    assert "torch is not installed" in refused("w.pt")
    assert not Path("exploded").exists()


def test_torch_loads_weights_only_and_nested_names_are_joined(monkeypatch):
    state = {"model": {"fc.weight": FakeTensor(noise(30, 40, 0), "torch.bfloat16")}, "epoch": 3}
    calls = stand_in_for_torch(monkeypatch, state)
    Path("w.pth").write_bytes(b"PK")
    assert [one["name"] for one in answer("w.pth")["matrices"]] == ["model.fc.weight"]
    assert calls == [{"map_location": "cpu", "weights_only": True}]


def test_torch_that_is_too_old_or_refuses(monkeypatch):
    Path("w.pt").write_bytes(b"PK")
    calls = stand_in_for_torch(monkeypatch, {}, version="2.5.1")
    assert "update torch" in refused("w.pt") and calls == []
    stand_in_for_torch(monkeypatch, RuntimeError("Weights only load failed.\nMany lines follow"))
    assert "Weights only load failed." in refused("w.pt")


# Theory


def solution(**changes: object) -> dict:
    """What `derive solve --json` prints, for a square matrix with one spike of twice the critical strength."""
    solved = {"setting": "square", "parameters": {}, "bulk_edges": [[0.0, 4.0]], "outliers": [6.25]}
    return with_digest({**solved, "outlier_errors": None, "observables": {}, "diagnostics": {}, **changes})


def test_theory_and_matrix_agree_where_they_should():
    np.savez("w.npz", W=0.01 * spiked(300, 300, (2.0,), 0))
    Path("t.json").write_text(json.dumps(solution()))
    theory = answer("w.npz", "--theory", "t.json")["matrices"][0]["theory"]
    assert theory["agrees"] and theory["name"] == "square"
    assert theory["factor"] == pytest.approx(1e4, rel=0.02)
    (pair,) = theory["pairs"]
    assert abs(pair["difference"]) < 3 and pair["matrix"] == pytest.approx(6.25, abs=4 * pair["matrix_error"])


@pytest.mark.parametrize(
    ("outliers", "remarks"),
    [
        ([9.0], ["differs"]),
        ([], ["not in the theory"]),
        ([9.0, 6.25], ["differs", "not in the matrix"]),
        ([6.25, 4.02], ["agrees", "too close to the edge to be resolved at this size"]),
    ],
)
def test_theory_and_matrix_differ_where_they_should(outliers, remarks):
    np.savez("w.npz", W=spiked(300, 300, (2.0,), 0))
    Path("t.json").write_text(json.dumps(solution(outliers=outliers)))
    theory = answer("w.npz", "--theory", "t.json")["matrices"][0]["theory"]
    assert [pair["remark"] for pair in theory["pairs"]] == remarks
    assert theory["agrees"] is (remarks[0] == "agrees")


def test_theory_of_another_shape_is_said_to_be_one():
    np.savez("w.npz", W=noise(200, 400, 0))
    Path("t.json").write_text(json.dumps(solution(outliers=[])))
    theory = answer("w.npz", "--theory", "t.json")["matrices"][0]["theory"]
    assert not theory["agrees"] and "ratio of sides of 1," in theory["verdict"] and "0.5" in theory["verdict"]


def test_a_layer_of_a_theory_file_is_chosen():
    np.savez("w.npz", W=spiked(200, 200, (2.0,), 1))
    layers = {"first": solution(outliers=[]), "second": solution()}
    Path("t.json").write_text(json.dumps({"layers": layers}))
    chosen = answer("w.npz", "--theory", "t.json", "--layer", "second")["matrices"][0]["theory"]
    assert chosen["agrees"] and chosen["name"] == "second"
    Path("t.json").write_text(json.dumps(list(layers.values())))
    assert not answer("w.npz", "--theory", "t.json", "--layer", "1")["matrices"][0]["theory"]["agrees"]
    assert "choose with --layer one of 1, 2" in refused("w.npz", "--theory", "t.json")
    assert "no layer '3'" in refused("w.npz", "--theory", "t.json", "--layer", "3")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("{", "not JSON"),
        ("[]", "no bulk_edges"),
        ('{"bulk_edges": [[0, 4, 5]], "outliers": []}', "list of [low, high]"),
        ('{"bulk_edges": [], "outliers": []}', "no bulk"),
        ('{"bulk_edges": [[-2, 2]], "outliers": []}', "negative eigenvalues"),
        ('{"bulk_edges": [[0, 4]], "outliers": [NaN]}', "NaN is not a JSON number"),
        ('{"bulk_edges": [[0, 4]], "outliers": [1e400]}', "too large"),
        ('{"bulk_edges": [[0, 4]], "outliers": [' + "9" * 400 + "]}", "400 digits"),
        ("[" * 500 + "]" * 500, "nested"),
        ('{"bulk_edges": [[0, 4]], "outliers": ["a"]}', "finite"),
        ('{"bulk_edges": [[0, 4]], "outliers": [5], "outlier_errors": [1, 2]}', "same length"),
        ('{"bulk_edges": [[0, 4]], "outliers": 5}', "list of numbers"),
    ],
)
def test_bad_theory_files(text, word):
    np.savez("w.npz", W=noise(30, 30, 0))
    with suppress(ValueError, TypeError):
        text = json.dumps(with_digest(json.loads(text)))
    Path("t.json").write_text(text)
    assert word in refused("w.npz", "--theory", "t.json")


def test_a_theory_file_that_was_changed_is_refused():
    np.savez("w.npz", W=noise(30, 30, 0))
    text = json.dumps(solution())
    Path("t.json").write_text(text.replace("6.25", "9.25"))
    assert "t.json was modified after it was printed" in refused("w.npz", "--theory", "t.json")
    Path("t.json").write_text(text.replace("digest", "digits"))
    assert "has no digest" in refused("w.npz", "--theory", "t.json")


@pytest.mark.slow
def test_a_trained_network_meets_the_solved_theory(monkeypatch):
    """A linear network trained by hand, saved, and compared with what the engine derives for it: spikes learned from
    the noise they sit in, at three seeds."""
    size, steps, nu, alpha, gamma0, eta, sigma = 500, 10, 1.0, 2.0, 4.0, 0.1, 0.3
    declaration = ROOT / "tests" / "declarations" / "linear_network.py"
    solved = CliRunner().invoke(main, ["solve", str(declaration), "C=1", f"T={steps}", "--json"])
    assert solved.exit_code == 0, solved.output
    Path("theory.json").write_text(solved.stdout)
    assert json.loads(solved.stdout)["outliers"], "the case must have an outlier, or nothing is compared"
    weights = {}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        width, points = int(nu * size), int(alpha * size)
        x, w, readout = (
            rng.standard_normal((points, size)),
            rng.standard_normal((width, size)),
            rng.standard_normal(width),
        )
        teacher, label_noise = rng.standard_normal(size), rng.standard_normal(points)
        for _ in range(steps):
            error = teacher - math.sqrt(size) / (width * gamma0) * w.T @ readout
            residual = x @ error / math.sqrt(size) + sigma * label_noise
            gradient = math.sqrt(size) / points * x.T @ residual
            hidden = w @ gradient / math.sqrt(size)
            w = w + eta * gamma0 / math.sqrt(size) * np.outer(readout, gradient)
            readout = readout + eta * gamma0 * hidden
        weights[f"seed{seed}"] = w / math.sqrt(size)  # as a library stores it: the factor must find this again
    np.savez("trained.npz", **weights)
    for one in answer("trained.npz", "--theory", "theory.json")["matrices"]:
        assert one["theory"]["factor"] == pytest.approx(size, rel=0.02)
        assert one["theory"]["agrees"], one["theory"]["verdict"]
        assert any(pair["remark"] == "agrees" for pair in one["theory"]["pairs"])


# What is printed and drawn


@pytest.mark.slow
def test_text_says_what_the_numbers_mean():
    np.savez(
        "w.npz", W1=0.02 * spiked(200, 300, (3.0,), 0), tail=np.diag(np.arange(1, 101) ** -0.8) @ noise(100, 150, 1)
    )
    result = run("w.npz")
    assert result.exit_code == 0
    for word in (
        "200 x 300",
        "Tracy-Widom units",
        "p-value",
        "not Marchenko-Pastur",
        "eigenvalues of W^T W / rows",
        "more",
    ):
        assert word in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_plots_are_written(ending):
    np.savez("w.npz", W1=spiked(60, 80, (3.0,), 0), far=spiked(60, 60, (90.0,), 1), plain=noise(40, 40, 2))
    Path("t.json").write_text(json.dumps(solution()))
    result = run("w.npz", "--theory", "t.json", "--plot", f"out.{ending}")
    assert result.exit_code == 0 and f"wrote out.{ending}" in result.stdout
    assert Path(f"out.{ending}").stat().st_size > 3000


def test_the_picture_shows_each_matrix_with_its_law_and_its_outliers():
    from numerics.plots.spectra import draw_spectra

    one, other = analyse("W1", spiked(60, 80, (3.0,), 0)), analyse("W2", noise(50, 50, 1))
    figure = draw_spectra([one, other], (), "two matrices")
    titles = [axes.get_title() for panel in figure.subfigs for axes in panel.axes]
    assert any("W1" in title and "1 beyond" in title for title in titles)
    assert any("W2" in title and "0 beyond" in title for title in titles)
    curve = figure.subfigs[1].axes[0].lines[0]
    area = np.trapezoid(curve.get_ydata(), curve.get_xdata())
    assert area == pytest.approx(1.0, abs=0.01)


def test_bad_options_are_refused_before_the_work():
    np.savez("w.npz", W=noise(20, 20, 0))
    assert run("w.npz", "--plot", "out.txt").exit_code == 2
    assert run("w.npz", "--layer", "1").exit_code == 2
    assert run("w.npz", "--level", "0").exit_code == 2


# Large checkpoints


def transformer(blocks: int, width: int, seed: int, spikes: bool) -> dict[str, np.ndarray]:
    """Arrays as a small language model has them: blocks, biases, an embedding that is also the head."""
    arrays = {"wte.weight": noise(4 * width, width, seed)}
    for i in range(blocks):
        strengths = (1.5 + 0.2 * i,) if spikes else ()
        arrays[f"h.{i}.attn.weight"] = 0.02 * spiked(width, 3 * width, strengths, seed + 10 * i + 1)
        arrays[f"h.{i}.mlp.weight"] = 0.02 * noise(width, 4 * width, seed + 10 * i + 2)
        arrays[f"h.{i}.mlp.bias"] = np.zeros(4 * width)
    return {**arrays, "lm_head.weight": arrays["wte.weight"]}


def extensive(rows: int, columns: int, chi: float, gamma: float, seed: int) -> np.ndarray:
    """Unit noise plus one step with chi columns outputs."""
    rng, outputs = np.random.default_rng(seed), int(chi * columns)
    step = rng.standard_normal((rows, outputs)) @ rng.standard_normal((outputs, columns))
    return rng.standard_normal((rows, columns)) + gamma / math.sqrt(outputs) * step


def test_names_are_taken_apart_into_kind_and_depth():
    assert kind_and_depth("transformer.h.11.mlp.fc1.weight") == ("transformer.h.*.mlp.fc1.weight", 11)
    assert kind_and_depth("params/layers_2/kernel") == ("params/layers_*/kernel", 2)
    assert kind_and_depth("W1") == ("W*", 1) and kind_and_depth("head.weight") == ("head.weight", None)
    names = ["h.10.w", "h.9.w", "head", "h.2.w", "W1"]
    assert by_kind(names) == {"h.*.w": ["h.2.w", "h.9.w", "h.10.w"], "head": ["head"], "W1": ["W1"]}


def test_a_transformer_fits_into_80_columns_with_a_row_for_each_matrix_and_trends():
    np.savez("gpt.npz", **transformer(12, 24, 5, spikes=True))
    text = run("gpt.npz").stdout
    assert max(map(len, text.splitlines())) <= 80
    assert len(text.splitlines()) < 25 + 12 + 15
    assert text.count("24 x 72 ") == 12 and text.count("24 x 96 ") == 12 and "\nh.*.attn.weight\n" in text
    (trend,) = re.findall(r"h.\*.attn.weight: .*\n.* top (\S+) -> (\S+)", text)
    assert float(trend[1]) > 1.5 * float(trend[0])
    assert "tied: lm_head.weight equals wte.weight, shown once" in text
    assert "left out h.0.mlp.bias, h.1.mlp.bias, h.2.mlp.bias and 9 more: one axis" in text


def test_arrays_with_the_same_numbers_are_shown_once_and_others_of_their_shape_are_not_tied():
    one = noise(60, 40, 0)
    np.savez("w.npz", a=one, b=one, c=-one, d=one.T)
    found = answer("w.npz")
    assert [m["name"] for m in found["matrices"]] == ["a", "c", "d"]
    assert found["tied"] == [{"name": "b", "same_as": "a"}]


def test_arrays_are_left_out_by_name():
    np.savez("w.npz", **{f"h.{i}.{part}": noise(30, 30, i) for i in range(3) for part in ("in", "out")})
    names = [one["name"] for one in answer("w.npz", "--exclude", "*.out", "--exclude", "h.1")["matrices"]]
    assert names == ["h.0.in", "h.2.in"]
    assert "no such array" in refused("w.npz", "--exclude", "nothing like it")
    assert "exclude fewer" in refused("w.npz", "--exclude", "h.*")


def test_a_damaged_array_is_listed_and_the_rest_goes_on():
    np.savez("whole.npz", good=noise(60, 80, 0), bad=noise(60, 80, 1), short=noise(60, 80, 2), text=np.ones(3))
    with zipfile.ZipFile("whole.npz") as whole, zipfile.ZipFile("w.npz", "w") as archive:
        for name in ("good.npy", "bad.npy", "short.npy", "text.npy"):
            raw = whole.read(name)
            archive.writestr(name, {"short.npy": raw[:-400], "text.npy": b"not an array"}.get(name, raw))
        place = archive.getinfo("bad.npy").header_offset + 5000
    raw = bytearray(Path("w.npz").read_bytes())
    raw[place : place + 8] = b"\xff" * 8
    Path("w.npz").write_bytes(raw)
    found = answer("w.npz")
    assert [one["name"] for one in found["matrices"]] == ["good"]
    assert {one["name"] for one in found["left_out"] if one["damaged"]} == {"bad", "short", "text"}
    assert found["matrices"][0]["scale"] == answer("whole.npz", "--include", "good")["matrices"][0]["scale"]


def test_small_singular_values_keep_their_digits():
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((rows, 60)))[0] for rows in (5000, 60))
    for smallest in (-7, -4):
        exact = np.logspace(0, smallest, 60)
        matrix = (left * exact) @ right.T
        squares = spectra.squared_singular_values(matrix, spectra.gram_of(matrix))
        assert np.sqrt(squares) == pytest.approx(exact, rel=1e-6)


# The law of an extensive step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "columns", "chi", "gamma"), [(200, 300, 0.3, 2.0), (400, 200, 1.0, 1.0), (300, 300, 0.1, 3.0)]
)
def test_an_extensive_step_is_recognised_with_its_parameters(rows, columns, chi, gamma):
    np.savez("w.npz", W=0.05 * extensive(rows, columns, chi, gamma, 1))
    (one,) = answer("w.npz")["matrices"]
    fit = one["extensive"]
    assert one["picture"] == EXTENSIVE and fit["ks_distance"] <= fit["ks_allowed"] and fit["beyond"] == 0
    assert fit["scale"] == pytest.approx(0.05, rel=0.05)
    assert (fit["chi"], fit["gamma"]) == pytest.approx((chi, gamma), rel=0.12)


@pytest.mark.slow
def test_the_fitted_law_is_the_one_that_is_solved():
    """Fitted to a resolvent, measured on the law: both are what the setting solves to at these parameters."""
    import derive

    one = analyse("W", extensive(200, 300, 0.4, 1.5, 3))
    fit = fit_extensive(one)
    solved = derive.load("extensive_two_layer").solve(nu=200 / 300, chi=fit.chi, gamma=fit.gamma)
    assert fit.edges[1] ** 2 / fit.scale**2 * 300 / 200 == pytest.approx(solved.bulk_edges[-1][1], rel=1e-9)
    x = np.linspace(1e-6, 1.01 * fit.edges[1], 20001)
    assert np.trapezoid(fit.density(x), x) == pytest.approx(1.0, abs=1e-3)


@pytest.mark.slow
def test_noise_needs_no_other_law_and_other_laws_are_neither():
    rng = np.random.default_rng(6)
    np.savez(
        "w.npz",
        noise=noise(150, 200, 0),
        spiked=spiked(150, 200, (3.0, 2.0), 1),
        orthogonal=np.linalg.qr(rng.standard_normal((300, 200)))[0],
    )
    plain, few, other = answer("w.npz")["matrices"]
    assert plain["picture"] == few["picture"] == FITS and plain["extensive"] is few["extensive"] is None
    assert other["picture"] == NOT and other["extensive"]["fits"] is False


@pytest.mark.slow
def test_an_extensive_step_and_one_more_direction():
    matrix = extensive(150, 200, 0.3, 1.5, 2)
    left, right = (np.linalg.qr(noise(rows, 1, rows))[0] for rows in (150, 200))
    fit = fit_extensive(analyse("W", matrix + 150.0 * left @ right.T))
    assert fit.beyond == 1 and fit.fits and fit.chi == pytest.approx(0.3, rel=0.15)


# Before and after


@pytest.mark.slow
def test_two_checkpoints_show_what_was_learned():
    before = transformer(2, 40, 5, spikes=False)
    spike = math.sqrt(120) * 0.02 * 4.0 * np.linalg.qr(noise(40, 1, 8))[0] @ np.linalg.qr(noise(120, 1, 9))[0].T
    after = {**before, "h.1.attn.weight": before["h.1.attn.weight"] + spike, "new.weight": noise(30, 30, 4)}
    np.savez("before.npz", **before, old=noise(30, 30, 3))
    np.savez("after.npz", **after)
    found = answer("before.npz", "after.npz")
    assert found["file"] == "after.npz" and found["before"] == "before.npz"
    changes = {one["name"]: one for one in found["changes"]}
    still, moved = changes["h.0.attn.weight"], changes["h.1.attn.weight"]
    assert still["moved"] == 0.0 and still["stable_rank"] is None and still["ks_distance"] == 0.0
    assert moved["moved"] == pytest.approx(np.linalg.norm(spike) / np.linalg.norm(before["h.1.attn.weight"]))
    assert moved["stable_rank"] == pytest.approx(1.0) and moved["beyond"] == [0, 1]
    assert moved["top"][0] < 1.1 and moved["top"][1] > 2.0
    reasons = {one["name"]: one["reason"] for one in found["left_out"]}
    assert reasons["old"] == "only in before.npz" and reasons["new.weight"].startswith("not in before.npz")
    text = run("before.npz", "after.npz", "--plot", "out.png").stdout
    assert "0 -> 1" in text and max(map(len, text.splitlines())) <= 80 and Path("out.png").exists()


# From Python


def test_the_verb_gives_a_frozen_result_with_a_row_for_each_matrix():
    import derive

    np.savez("w.npz", **transformer(3, 24, 1, spikes=True))
    found = derive.spectra("w.npz", include="h.*")
    assert isinstance(found, derive.Spectra) and len(found) == 6
    frame = found.to_frame()
    assert list(frame.index) == [one.name for one in found] and set(frame["kind"]) == set(found.kinds)
    assert frame.loc["h.2.attn.weight", "top"] == found["h.2.attn.weight"].top
    with pytest.raises(AttributeError):
        found.level = 0.1
    with pytest.raises(derive.errors.DeriveError, match="no matrix 'x'"):
        found["x"]
    with pytest.raises(derive.errors.DeriveError, match="layout is auto or oihw"):
        derive.spectra("w.npz", layout="strange")


@pytest.mark.slow
def test_two_hundred_matrices_are_drawn_over_depth():
    import derive

    np.savez("w.npz", **transformer(100, 20, 1, spikes=True))
    figure = derive.spectra("w.npz").plot()
    titles = [axes.get_title() for part in figure.subfigs for axes in part.axes]
    assert titles == ["h.*.attn.weight", "h.*.mlp.weight", ""]
    attention = figure.subfigs[0].axes[0]
    assert len(attention.patches) == 100 and attention.get_xlim()[1] > 99
    assert max(figure.get_size_inches()) < 12
