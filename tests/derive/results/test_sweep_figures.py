"""Figures of sweeps: which quantity, which kind, what is hatched, and their numbers as a table."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from matplotlib.collections import QuadMesh

import derive
from derive.cli import main
from derive.errors import ParameterError
from numerics.plots.data import figure_rows
from numerics.plots.sweeps import SweepData, draw_sweep, shown_symbol

RATES = ["L=1", "nu=1,2", "eta=0.05:0.2:4", "T=6", "data=online", "layer=none"]


def test_the_loss_is_drawn_as_curves_with_declared_symbols(tmp_path: Path):
    plot = tmp_path / "transfer.svg"
    result = CliRunner().invoke(main, ["solve", "deep_linear", *RATES, "--plot", str(plot), "--plot-data", "--log"])
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader((tmp_path / "transfer.csv").open()))
    swept = derive.load("deep_linear").sweep(
        L=1, nu=[1, 2], eta=np.linspace(0.05, 0.2, 4).tolist(), T=6, data="online", layer="none"
    )
    assert [float(row["test_loss"]) for row in rows] == pytest.approx(swept["test_loss"][..., -1].ravel())
    assert [(float(row["nu"]), float(row["eta"])) for row in rows[::5]] == [(1.0, 0.05), (2.0, pytest.approx(0.1))]
    figure = swept.plot("test_loss at 2")
    assert [row["y"] for row in figure_rows(figure)] == pytest.approx(swept["test_loss"][..., 2].ravel())
    (panel,) = figure.axes
    assert panel.get_xlabel() == r"$\eta$" and "= 0.3" in panel.get_title()
    for wrong in ("alpha", "nothing", "test_loss at 99"):
        with pytest.raises(ParameterError, match="there is no"):
            swept.plot(wrong)


def test_a_map_hatches_what_diverged_and_leaves_it_out_of_the_scale():
    values = np.arange(1.0, 45.0).reshape(11, 4)
    values[3, 2], values[5, 1] = np.nan, 1e7
    axes = {"a": list(range(11)), "b": [0.1, 0.2, 0.3, 0.4]}
    figure = draw_sweep(SweepData("loss", axes, values), "")
    (mesh,) = (one for one in figure.axes[0].collections if isinstance(one, QuadMesh))
    assert mesh.get_clim() == (1.0, 44.0) and len(figure.axes[0].patches) == 2
    for one, word in ((np.nan, "diverged"), (1e7, "off scale")):
        values[3, 2] = values[5, 1] = one
        (legend,) = draw_sweep(SweepData("loss", axes, values), "").legends
        assert [text.get_text() for text in legend.get_texts()] == [word]


def test_points_below_threshold_are_blank_and_not_diverged():
    swept = derive.load("spiked_wigner").sweep(gamma0=[0.5, 1.5, 2])
    (panel,) = swept.plot("outlier_1").axes
    assert not panel.patches and panel.get_legend() is None
    axes = {"a": list(range(11)), "b": [1, 2]}
    values = np.arange(1.0, 23.0).reshape(11, 2)
    values[0, 0] = values[1, 1] = np.nan
    diverged = np.zeros((11, 2), bool)
    diverged[1, 1] = True
    figure = draw_sweep(SweepData("outlier_1", axes, values, diverged=diverged), "")
    assert len(figure.axes[0].patches) == 1
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["diverged", "no outlier 1"]


@pytest.mark.long
def test_a_quantity_of_the_only_layer_needs_no_label():
    swept = derive.load("deep_linear").sweep(L=1, T=4, gamma0=[4, 6], layer="0")
    (panel,) = swept.plot("outlier_1").axes
    assert panel.get_ylabel() == "outlier 1 of layer 0"


def test_symbols_that_cannot_be_drawn_are_names():
    assert shown_symbol("lam", r"\lambda") == r"$\lambda$" and shown_symbol("eta") == r"$\eta$"
    assert shown_symbol("x", r"\notacommand") == "x" and shown_symbol("batch_size") in ("batch size", "$batch_{size}$")


@pytest.mark.parametrize("extra", [["--quantity", "test_loss"], ["--log", "--plot", "f.png"], ["--plot-data"]])
def test_options_of_a_figure_need_one(extra: list[str]):
    assert CliRunner().invoke(main, ["solve", "spiked_wigner", *extra]).exit_code == 2


def test_the_numbers_of_a_figure_never_overwrite_the_results(tmp_path: Path):
    files = ["--out", str(tmp_path / "x.csv"), "--plot", str(tmp_path / "x.png"), "--plot-data"]
    result = CliRunner().invoke(main, ["solve", "spiked_wigner", "gamma0=1.5,2", *files])
    assert result.exit_code == 2 and "--plot-data" in result.output and not list(tmp_path.iterdir())
