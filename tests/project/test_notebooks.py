"""Every notebook runs afresh from top to bottom, at a reduced size, and its own assertions hold."""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path

import jax
import matplotlib
import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells_of(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code_cells(path: Path) -> list[dict]:
    return [cell for cell in cells_of(path) if cell["cell_type"] == "code"]


@pytest.fixture
def quick(monkeypatch, tmp_path):
    """What a notebook finds, wherever it was copied to: reduced sizes, no window, and a place to write to.

    Compiled code runs for moments only, so it is compiled quickly rather than well.
    """
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NOTEBOOK_QUICK", "1")
    monkeypatch.delitem(sys.modules, "numerics.plots.figures", raising=False)
    quickly, optimised = "jax_disable_most_optimizations", jax.config.values["jax_disable_most_optimizations"]
    backend, path = matplotlib.get_backend(), list(sys.path)
    matplotlib.use("agg")
    jax.config.update(quickly, True)
    with matplotlib.rc_context():
        yield
        plt.close("all")
    jax.config.update(quickly, optimised)
    matplotlib.use(backend)
    assert sys.path == path, "the notebook leaves something on the path"


def test_tutorials_are_numbered_without_a_gap():
    numbers = [int(path.stem[:2]) for path in NOTEBOOKS if path.stem[:2].isdigit()]
    assert numbers == list(range(1, len(numbers) + 1)) and len(numbers) >= 5


def test_readme_names_every_tutorial():
    text = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert not path.stem[:2].isdigit() or f"`{path.stem}`" in text or f"notebooks/{path.name}" in text


PUBLIC = {
    "derive",
    "derive.errors",
    "numerics.plots.figures",  # the look of figures, which all notebooks share
    "derive.claims.reading",  # says where the formulas are that were written by hand
}


@each_notebook
def test_notebook_uses_what_is_public(path):
    for cell in code_cells(path):
        for node in ast.walk(ast.parse("".join(cell["source"]))):
            named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            ours = {name for name in named if name.split(".")[0] in ("derive", "numerics", "generated")}
            assert ours <= PUBLIC, ast.unparse(node)


@pytest.mark.long_cases(
    "04_add_a_term",
    "05_your_own_solver",
    "beyond_the_paper",
    "digits_cnn",
    "errata",
    "fig_edge_collapse",
    "fig_edge_plateau",
    "fig_extensive_multilayer",
    "fig_learning_rate",
    "fig_minibatch",
    "fig_ntk_eigenvalue",
    "fig_ntk_gamma0",
    "fig_root_finding",
    "fig_tanh_network",
    "many_outputs",
)
@pytest.mark.slow
@each_notebook
def test_notebook_runs_and_agrees_with_itself(path, quick, capsys):
    names: dict = {"__name__": "notebook"}
    for number, cell in enumerate(code_cells(path), 1):
        exec(compile("".join(cell["source"]), f"{path.name}, code cell {number}", "exec"), names)
    assert "standard errors" in capsys.readouterr().out, "the notebook does not compare theory with simulation"


@each_notebook
def test_notebook_is_stored_with_its_outputs(path):
    cells = code_cells(path)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not [output for output in outputs if output["output_type"] == "error" or output.get("name") == "stderr"]
    assert "image/png" in {kind for output in outputs for kind in output.get("data", {})}


@each_notebook
def test_notebook_has_no_trace_of_the_machine_it_ran_on(path):
    stored = json.loads(path.read_text(encoding="utf-8"))
    for cell in stored["cells"]:
        texts = ["".join(cell["source"])]
        for output in cell.get("outputs", []):
            texts += [
                "".join(output.get("text", "")),
                *("".join(text) for kind, text in output.get("data", {}).items() if kind.startswith("text/")),
            ]
        for text in texts:
            assert not re.search(r"(?<![\w.}>/*)])/(?:home|tmp|root|usr|work|Users|var|opt|mnt)/", text), text
            assert not re.search(r"\b[A-Za-z]:\\\\?(?:Users|Windows)", text), text
    assert stored["metadata"]["kernelspec"]["name"] == "python3"
    assert set(stored["metadata"]) <= {"kernelspec", "language_info"}
    assert (stored["nbformat"], "version" in stored["metadata"].get("language_info", {})) == (4, False)
