"""Finding declarations and reading parameters."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from derive.errors import DeclarationError, ParameterError
from derive.inputs.loading import load_model, setting_names, settings
from derive.inputs.problems import load_problem

SMALL = '''"""A GOE matrix."""
from derive import Model, Domain, goe, parameter, positive, real, sectors, spectrum, whole_positive
scale = parameter("scale", default=1.0, domain=positive)
shift = parameter("shift", default=0.5, domain=real)
count = parameter("count", default=3, domain=whole_positive)
D = sectors("D")
MODEL = Model(parameters=(scale, shift, count), probe=spectrum(scale * goe("M0", D)))
'''


@pytest.fixture
def small(tmp_path: Path) -> str:
    path = tmp_path / "small.py"
    path.write_text(SMALL)
    return str(path)


def write(directory: Path, text: str, name: str = "mine.py") -> str:
    path = directory / name
    path.write_text(text)
    return str(path)


def test_shipped_settings_are_found_with_a_summary():
    assert {"spiked_wigner", "anti_hebbian", "coupled_spikes"} <= set(setting_names())
    assert all(summary for _, summary in settings())


def test_listing_settings_imports_no_sympy():
    code = "import sys; from derive.inputs.loading import settings; settings(); sys.exit('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", setting_names())
def test_a_shipped_setting_is_named_after_its_file(name: str):
    model = load_model(name)
    assert model.name == name and model.doc


def test_a_file_gives_name_and_docstring(small: str):
    model = load_model(small)
    assert (model.name, model.doc) == ("small", "A GOE matrix.")


def test_a_name_with_dashes_becomes_an_identifier(tmp_path: Path):
    assert load_model(write(tmp_path, SMALL, "my-goe 2.py")).name == "my_goe_2"


def test_neighbours_can_be_imported_and_leave_no_trace(tmp_path: Path):
    write(tmp_path, "WIDTH = 2", "neighbour_of_mine.py")
    target = write(tmp_path, "from neighbour_of_mine import WIDTH\n" + SMALL)
    before = list(sys.path)
    load_model(target)
    assert sys.path == before
    assert not [name for name in sys.modules if name == "neighbour_of_mine" or name.startswith("_declaration_")]
    assert not (tmp_path / "__pycache__").exists()


def test_two_directories_may_hold_neighbours_of_one_name(tmp_path: Path):
    for width in (1, 2):
        directory = tmp_path / str(width)
        directory.mkdir()
        write(directory, f"WIDTH = {width}.0", "neighbour_of_mine.py")
        text = "from neighbour_of_mine import WIDTH\n" + SMALL.replace("default=0.5", "default=WIDTH")
        assert load_problem(write(directory, text), ()).values["shift"] == width


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("x = (\n", 1, "SyntaxError"),
        ("\nimport a_module_that_is_not_there\n", 2, "there is no module a_module_that_is_not_there"),
        ("from derive import gausian\n", 1, "did you mean gaussian"),
        ("from derive import Model\nD = sectors('D')\n", 2, "add sectors"),
        ("y = 1\nx = 1 / 0\n", 2, "ZeroDivisionError"),
        ("raise SystemExit(4)\n", 1, "SystemExit"),
        (SMALL.replace("default=1.0", "default=-1.0"), 3, "its default"),
    ],
)
def test_a_file_that_does_not_load_is_named_with_its_line(tmp_path: Path, text: str, line: int, word: str):
    target = write(tmp_path, text)
    with pytest.raises(DeclarationError) as caught:
        load_model(target)
    assert f"{target}, line {line}" in str(caught.value) and word in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "word"), [("x = 1\n", "declares no MODEL"), ("MODEL = 3\n", "not a Model")])
def test_a_file_without_a_model_is_refused(tmp_path: Path, text: str, word: str):
    with pytest.raises(DeclarationError, match=word):
        load_model(write(tmp_path, text))


@pytest.mark.parametrize(
    ("target", "word"),
    [
        ("spiked_wigners", "did you mean spiked_wigner"),
        ("not_there.py", "there is no file"),
        (".", "there is no setting"),
    ],
)
def test_an_unknown_target_says_what_to_try(target: str, word: str):
    with pytest.raises(DeclarationError, match=word):
        load_model(target)


def test_defaults_are_filled_in_and_keep_their_order(small: str):
    values = load_problem(small, ("count=7",)).values
    assert list(values.items()) == [("scale", 1.0), ("shift", 0.5), ("count", 7)]
    assert isinstance(values["count"], int)


@pytest.mark.parametrize(("text", "value"), [("-2", -2.0), ("1e-3", 1e-3), ("1/4", 0.25), (" .5 ", 0.5)])
def test_numbers_are_read(small: str, text: str, value: float):
    assert load_problem(small, (f"shift={text}",)).values["shift"] == value


@pytest.mark.parametrize(
    ("pair", "word"),
    [
        ("scales=1", "did you mean scale"),
        ("scale=-1", "out of range"),
        ("scale=0", "out of range"),
        ("count=2.5", "whole number"),
        ("scale=two", "not a number"),
        ("scale=", "not a number"),
        ("scale=1/0", "not a number"),
        ("scale=nan", "not finite"),
        ("count=inf", "not finite"),
        ("scale=1e999", "not finite"),
        ("scale", "write scale=VALUE"),
    ],
)
def test_bad_parameters_are_refused_in_one_sentence(small: str, pair: str, word: str):
    with pytest.raises(ParameterError, match=word) as caught:
        load_problem(small, (pair,))
    assert "\n" not in str(caught.value)


def test_a_parameter_given_twice_is_refused(small: str):
    with pytest.raises(ParameterError, match="twice"):
        load_problem(small, ("scale=1", "scale=2"))
