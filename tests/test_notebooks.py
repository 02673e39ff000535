"""Every notebook runs afresh from top to bottom, at a reduced size, and its own assertions hold."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))


def code_cells(path: Path) -> list[dict]:
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs_and_agrees_with_itself(path, monkeypatch, tmp_path, capsys):
    import matplotlib

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTEBOOK_SIZE", "300")
    previous = matplotlib.get_backend()
    matplotlib.use("agg")
    try:
        names: dict = {"__name__": "notebook"}
        for number, cell in enumerate(code_cells(path), 1):
            exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)
    finally:
        import matplotlib.pyplot

        matplotlib.pyplot.close("all")
        matplotlib.use(previous)
    assert "above the bulk" in capsys.readouterr().out


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_its_outputs(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error"]
    kinds = {kind for output in outputs for kind in output.get("data", {})}
    assert {"text/markdown", "image/png"} <= kinds
