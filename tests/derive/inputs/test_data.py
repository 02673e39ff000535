"""Data as arrays, labels and formulas that users type: what is taken, what is refused, and with which sentence."""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner
from conftest import model_named

from derive.cli import main
from derive.errors import DeclarationError, ParameterError
from derive.inputs.data_files import batches
from derive.inputs.loading import load_declaration
from derive.inputs.problems import load_grid, load_problem
from derive.language.formulas import read_formula
from derive.pipeline import derive_model
from derive.printing import latex_of_record, text_of_record

HEAD = """from derive import *
from sympy import tanh
a = parameter('a', default=0.5)
P = parameter('P', default=2, domain=whole_positive)
K = parameter('K', default=3, domain=whole_positive)
T = parameter('T', default=3, domain=whole_positive)
D = sectors('D')
t = training_clock('t', steps=T)
J = goe('J', D)
p, k = axis('p', P), axis('k', K)
y, x = data('y', p), data('x', p, k)
late, moving = data('late', p, clock=t), data('moving', p, k, clock=t)
n, many, parts = normal('n', D), normal('many', D, axes=p), normal('parts', D, axes=k)
v, u = field('v', D, t, axes=p), field('u', D, t)
M = weights('M', D, D, t)
"""
OBSERVED = "{'q': mean(v(t)**2)}"
STORED = "Eq(v(t), tanh(many)), Eq(M(0), J), "


def model_text(equations: str, observe: str = OBSERVED, more: str = "") -> str:
    return f"{HEAD}MODEL = Model(parameters=(a, P, K, T), equations=[{equations}], observe={observe}{more})\n"


# -- declarations

REFUSED = {
    "an axis that is no parameter": ("data('w', 3)", "data w: 3 is not an axis; make one"),
    "an axis that is no whole number": ("data('w', a)", "data w: a is not an axis; make one"),
    "no axis": ("data('w')", "data w: give one axis or two besides the clock"),
    "three axes": ("data('w', p, p, p)", "data w: give one axis or two besides the clock"),
    "a clock that is none": ("data('w', p, clock=T)", "data w: T is not a clock"),
    "axes that are none": ("field('w', D, t, axes=3)", "w: axes=3 is not an axis; make one with"),
    "an axis twice": ("field('w', D, t, axes=(p, p))", "w: it has the axis p twice"),
    "an axis of no whole number": ("axis('w', a)", "axis w: its size a is neither a whole-number parameter nor"),
    "an axis without labels": ("axis('w', 0)", "axis w: its size 0 is neither a whole-number parameter nor"),
    "a default out of the domain": (
        "parameter('B', default=a, domain=whole_positive)",
        "parameter B: its default a must be a whole number",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_words_refuse_what_cannot_be_meant(declared, case):
    line, sentence = REFUSED[case]
    with pytest.raises(DeclarationError) as caught:
        load_declaration(str(declared(f"{HEAD}{line}\n")))
    assert sentence in str(caught.value)
    assert "line 16" in str(caught.value)


EQUATIONS = {
    "a table as a factor": ("Eq(v(t), x * many)", "x is a table: it takes numbers as factors"),
    "a table as the other factor": ("Eq(v(t), many * x)", "x is a table: it takes numbers as factors"),
    "a table added": ("Eq(v(t), many + x)", "x is a table; apply it to a vector with @"),
    "a table inside a law": ("Eq(v(t), tanh(x))", "x is a table; apply it to a vector with labels: x @ v"),
    "a table times a table": ("Eq(v(t), x @ x.T @ many)", "x.T is a table; apply it to a vector with labels"),
    "a table of a vector without labels": (
        "Eq(v(t), x @ n)",
        "x takes vectors with the axis k, but its argument has none",
    ),
    "a table of the wrong labels": ("Eq(v(t), x @ many)", "x takes vectors with the axis k, but its argument has p"),
    "a table of a number": ("Eq(v(t), x @ a)", "x @ (a): the right-hand side is not a vector"),
    "data on a clock without a time": ("Eq(v(t), late * many)", "data late lives on clock t: write late(t)"),
    "a moving table without a time": ("Eq(v(t), moving @ parts)", "data moving lives on clock t: write moving(t)"),
    "its transpose": ("Eq(v(t), moving.T @ many)", "data moving lives on clock t: write moving(t)"),
    "a time for data without a clock": ("Eq(v(t), y(t) * many)", "data y has no clock: write y, not y(t)"),
    "a time given twice": ("Eq(v(t), late(t)(t) * many)", "late(t) is already a value; write late(time) once"),
    "data of the future": ("Eq(v(t), late(t + 1) * many)", "v at t uses late(t + 1), which comes later"),
    "data of the future at the start": (
        "Eq(v(0), late(1) * many), Eq(v(t + 1), v(t))",
        "v at 0 uses late(1), which comes later",
    ),
    "data at a fixed time": ("Eq(v(t), late(0) * many)", "v uses late(0); on the right side times are relative"),
    "labels that differ": ("Eq(v(t), tanh(parts))", "v has the axes k on its right-hand side, but v has p"),
    "two labels in one law": ("Eq(v(t), many * parts)", "v has the axes k, p on its right-hand side, but v has p"),
    "labels where there are none": ("Eq(u(t), tanh(many))", "u has the axes p on its right-hand side, but u has none"),
    "a sum over no labels": ("Eq(u(t), total(n))", "total(n) runs over labels"),
    "each in an equation": ("Eq(v(t), each(many))", "the equation of v: each(...) is for observe={...} only"),
    "data as the factor of a matrix": (
        STORED + "Eq(M(t + 1), y * a * M(t) + outer(v(t), v(t)) / D)",
        "the coefficients of a matrix are free of data and labels",
    ),
    "a mean with labels as the factor of a matrix": (
        STORED + "Eq(M(t + 1), mean(v(t)**2) * M(t) + outer(v(t), v(t)) / D)",
        "a matrix are free of data and labels",
    ),
    "a mean with labels as the factor of an outer product without": (
        STORED + "Eq(M(t + 1), M(t) + mean(v(t)**2) / D * outer(n, n))",
        "it has the axes p, over which this outer product has no sum; wrap it in total(...)",
    ),
    "labels of an outer product": (
        STORED + "Eq(M(t + 1), M(t) + outer(v(t), parts) / D)",
        "outer(v(t), parts): the axes of the first are p, those of the second k",
    ),
}


@pytest.mark.parametrize("case", EQUATIONS)
def test_equations_refuse_with_one_sentence(declared, case):
    equations, sentence = EQUATIONS[case]
    with pytest.raises(DeclarationError) as caught:
        load_declaration(str(declared(model_text(equations))))
    assert sentence in str(caught.value)


OBSERVABLES = {
    "data without a sum": ("{'q': mean(v(t)**2) * y}", "observable q has labels; wrap it in total(...)"),
    "each inside": ("{'q': 2 * each(mean(v(t)))}", "observable q: each(...) must enclose"),
    "each without labels": ("{'q': each(mean(n))}", "each(mean(n)) runs over labels"),
    "a table in a mean": ("{'q': mean(x @ parts)}", "give x @ parts a field of its own"),
    "data of the future": ("{'q': total(late(t + 1) * mean(v(t)))}", "observable q uses late(t + 1)"),
    "a softmax without each": ("{'q': softmax(mean(v(t) * n), p)}", "observable q has labels; wrap it in total(...)"),
    "a sum over one of two axes": ("{'q': total(mean(v(t) * parts), k)}", "observable q has labels; wrap it in"),
    "a sum over an axis that is not there": (
        "{'q': total(mean(v(t)), k)}",
        "is over k, but its argument has the axes p",
    ),
    "a softmax along an axis that is not there": ("{'q': each(softmax(mean(n), k))}", "its argument has no labels"),
    "a softmax of a vector": ("{'q': each(softmax(v(t), p))}", "softmax(v(t), p) acts on a vector; apply it to means"),
    "a softmax along a number": ("{'q': each(softmax(mean(v(t)), P))}", "softmax(..., P): that is not an axis"),
    "a name for an axis that is not there": ("{'q': each(mean(relabel(n, p, k)))}", "its argument has no labels"),
    "axes of different size": ("{'q': each(mean(relabel(v(t), p, k)))}", "give them the same size"),
    "entries of numbers": ("{'q': each(entries(y))}", "entries(y): give a table, such as data('onehot', p, c)"),
    "a root of a table with two axes": ("{'q': mean(root(x) @ parts)}", "the axes of x are p and k; give it one twice"),
}


@pytest.mark.parametrize("case", OBSERVABLES)
def test_observables_refuse_with_one_sentence(declared, case):
    observe, sentence = OBSERVABLES[case]
    with pytest.raises(DeclarationError) as caught:
        load_declaration(str(declared(model_text("Eq(v(t), tanh(many))", observe))))
    assert sentence in str(caught.value)


def test_a_number_of_each_label_is_not_added_to_a_diagonal(declared):
    more = ", probe=spectrum(J, plus='q')"
    with pytest.raises(DeclarationError, match="plus='q'.*that observable has labels"):
        load_declaration(str(declared(model_text("Eq(v(t), tanh(many))", "{'q': each(mean(v(t)))}", more))))


@pytest.mark.parametrize("inside", ["late(s) * v(s)", "y * v(s)", "moving(s) @ parts", "mean(v(s) * n) * v(s)"])
def test_sums_over_the_past_take_data_through_fields_only(declared, inside):
    equations = f"Eq(v(0), many), Eq(v(t + 1), past_sum(lambda s: {inside}, t))"
    model = load_declaration(str(declared(model_text(equations))))
    with pytest.raises(DeclarationError, match="the equation of v: .*a field of its own"):
        derive_model(model)


def test_labels_that_are_not_those_of_the_clock_are_solved_exactly_too(declared):
    linear = "Eq(v(0), many), Eq(v(t + 1), v(t) + a * J @ v(t))"
    assert derive_model(load_declaration(str(declared(model_text(linear))))).system.linear
    plain = model_text("Eq(u(0), n), Eq(u(t + 1), u(t) + a * J @ u(t))", "{'q': mean(u(t)**2)}")
    assert derive_model(load_declaration(str(declared(plain)))).system.linear


def test_a_parameter_follows_another_until_it_has_a_value_of_its_own(declared):
    more = "B = parameter('B', default=P, domain=whole_positive)\n"
    written = model_text("Eq(u(t), B * n)", "{'q': mean(u(t)**2)}").replace("MODEL", more + "MODEL", 1)
    path = str(declared(written.replace("(a, P,", "(a, B, P,")))
    assert load_problem(path, []).values["B"] == 2
    assert load_problem(path, ["P=5"]).values["B"] == 5
    assert load_problem(path, ["P=5", "B=3"]).values["B"] == 3
    with pytest.raises(DeclarationError, match="parameter P is used but not listed"):
        load_declaration(str(declared(written.replace("(a, P,", "(a, B,"))))


ARRAYS = {
    "{'y': [1.0, 2.0]}": "arrays=... must be a function of the parameter values",
    "lambda values: None": "its function arrays=... returns NoneType; return a dictionary of arrays",
    "lambda values: values['none']": "its function arrays=... fails with KeyError: 'none'",
}


@pytest.mark.parametrize("given", ARRAYS)
def test_the_function_that_makes_arrays_is_checked(declared, given):
    path = declared(model_text("Eq(v(t), tanh(many) * y)", more=f", arrays={given}"))
    with pytest.raises(DeclarationError) as caught:
        assert load_problem(str(path), []).inputs is None
    assert ARRAYS[given] in str(caught.value)


def test_a_model_without_arrays_asks_for_a_file(declared):
    path = declared(model_text("Eq(v(t), tanh(many) * y)"))
    with pytest.raises(ParameterError, match="mine needs data: give data=FILE.npz"):
        assert load_problem(str(path), []).inputs is None


# -- printing


def test_tables_and_sums_print_as_they_are_read():
    system = derive_model(model_named("frozen_features")).system
    plain, tex = text_of_record(system), latex_of_record(system)
    assert "h = x V/sqrt(D)" in plain and "w(t) = w(t-1) + (eta/P) total(pushed(t-1))" in plain
    assert r"\sum_{\mathrm{labels}} \mathrm{pushed}(t - 1)" in tex and r"\frac{1}{\sqrt{D}}\, x\, V" in tex
    assert "h, phi, pushed have one copy for each of P labels along p" in plain


def test_a_transposed_table_prints_its_transpose():
    system = derive_model(model_named("wide_network", L=1)).system
    assert "x(t-1)^T spike1(t-1)" in text_of_record(system)
    assert r"x(t - 1)^{\top}\, \mathrm{spike}_{1}(t - 1)" in latex_of_record(system)


# -- formulas

FORMULAS = {
    "tanh(x)": "tanh(x)",
    "x^2/2 + x": "x**2/2 + x",
    "max(x, 0)": "Max(0, x)",
    "max(x, min(1, tanh(x)))": "Max(x, Min(1, tanh(x)))",
    "-0.1*x": "-x/10",
    "x**0.5": "sqrt(x)",
    "pi*x + e": "pi*x + E",
    "1e3*x": "1000*x",
}


@pytest.mark.parametrize("typed", FORMULAS)
def test_formulas_become_expressions(typed):
    found = read_formula(typed, ("x",), typed)
    assert str(found) == FORMULAS[typed]
    assert all(s.is_real for s in found.free_symbols)


HOSTILE = {
    "__import__('os').system('true')": "not arithmetic",
    "x.__class__": "not arithmetic",
    "x.real": "not arithmetic",
    "(lambda: x)()": "not arithmetic",
    "[x for x in x]": "not arithmetic",
    "x[0]": "not arithmetic",
    "f'{x}'": "not arithmetic",
    "x if x > 0 else 0": "not arithmetic",
    "tanh(x=x)": "not arithmetic",
    "tanh(*x)": "not arithmetic",
    "1j*x": "not arithmetic",
    "True*x": "not arithmetic",
    "x @ x": "not arithmetic",
    "x // 2": "not arithmetic",
    "x; x": "is not a formula",
    "x +": "is not a formula",
    "": "is not a formula",
    "\0": "is not a formula",
    "(" * 200 + "x": "is not a formula",
    "x" * 501: "is longer than 500 characters",
    "y": "y is not known; its variables are x",
    "tanh": "tanh is not known",
    "softmax(x)": "softmax is not an elementwise function known here; did you mean max?",
    "mean(x)": "mean is not an elementwise function known here",
    "eval(x)": "eval is not an elementwise function known here",
    "tanh(x, x)": "tanh takes a different number of arguments",
    "sqrt(x, 0)": "sqrt takes a different number of arguments",
    "x**33": "powers must be numbers up to 32",
    "x**x": "powers must be numbers up to 32",
    "9**9**9": "powers must be numbers up to 32",
    "((((2**32)**32)**32)**32)**32*x": "not a real number between",
    "(((((1.000001**32)**32)**32)**32)**32)**32*x": "not a real number between",
    "x**exp(exp(exp(10)))": "not a real number between",
    "x**tanh(exp(exp(exp(9))))": "not a real number between",
    "1e400*x": "a number beyond 1e+100",
    "sqrt(-1)*x": "not a real number between",
    "max(x, log(0))": "not a real number between",
    "max()": "not a real number between",
    "(-x**2)**0.5": "is not a real number for real x",
    "x/(x - x)": "divides by zero",
    "0**-1*x": "divides by zero",
}


@pytest.mark.parametrize("typed", HOSTILE)
def test_hostile_formulas_are_refused(typed):
    with pytest.raises(ParameterError) as caught:
        read_formula(typed, ("x",), f"activation={typed}")
    assert HOSTILE[typed] in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_word_that_is_not_known_is_answered_with_those_that_are():
    with pytest.raises(ParameterError, match="rleu is not known; its variables are x, and by name there are tanh, erf"):
        load_problem("wide_network", ["activation=rleu"])


def test_nested_powers_are_not_multiplied_out():
    """The law is kept as typed: written out it would have 1025 terms a factor."""
    model = model_named("wide_network", L=1, activation="((x+1)**32+1)**32")
    law = next(f.rule.law for f in derive_model(model).system.training if f.field.name == "phi1")
    assert law.func is sp.Pow and law.exp == 32


def test_commas_inside_brackets_do_not_make_a_list():
    assert load_problem("wide_network", ["L=1", "activation=max(x,tanh(x))"]).values["activation"] == "max(x,tanh(x))"
    assert len(load_grid("wide_network", ["L=1", "activation=max(x,0),x"]).problems) == 2


def test_the_same_formula_has_the_same_name_however_it_is_spaced():
    names = {model_named("wide_network", L=1, activation=a).name for a in ("x+x**3", "x + x**3")}
    assert len(names) == 1
    assert model_named("wide_network", L=1, activation="x+x**5").name not in names


# -- files


@pytest.fixture
def points(tmp_path):
    """Write arrays to a file; six points in four dimensions unless others are given."""
    rng = np.random.default_rng(0)
    default = {"x": rng.standard_normal((6, 4)), "y": rng.standard_normal(6)}

    def write(name: str = "points.npz", **changes) -> str:
        arrays = {**default, **changes}
        np.savez(tmp_path / name, **{k: a for k, a in arrays.items() if a is not None})
        return f"data={tmp_path / name}"

    write.default = default
    return write


def taken(*pairs: str) -> dict:
    return load_problem("wide_network", ["L=1", *pairs]).inputs


def test_a_file_tells_its_sizes(points):
    found = taken(points(), "T=3")
    assert (found["P"], found["B"], found["D"]) == (6, 6, 4)
    assert found["x"].shape == (4, 6, 4)
    assert all(np.array_equal(found["y"][time], points.default["y"]) for time in range(4))
    assert taken(points(), "P=6.0")["P"] == 6


def test_batches_are_of_the_points_and_each_epoch_takes_all(points):
    found = taken(points(), "B=2", "T=5")
    assert found["x"].shape == (6, 2, 4)
    for epoch in (found["y"][:3], found["y"][3:]):
        assert sorted(epoch.ravel()) == sorted(points.default["y"])
    rows = {tuple(row): label for row, label in zip(points.default["x"], points.default["y"], strict=True)}
    assert all(rows[tuple(found["x"][s, b])] == found["y"][s, b] for s in range(6) for b in range(2))


def test_an_order_says_which_points_each_step_takes(points):
    order = np.array([[0, 5], [1, 1], [2, 3]])
    found = taken(points(order=order), "T=3")
    assert (found["P"], found["B"]) == (6, 2)
    assert np.array_equal(found["y"], points.default["y"][[[0, 5], [1, 1], [2, 3], [2, 3]]])


def test_a_stream_has_a_row_a_time(points):
    y = np.arange(18.0).reshape(3, 6)
    found = taken(points(x=np.ones((3, 6, 4)), y=y), "T=3")
    assert np.array_equal(found["y"], y[[0, 1, 2, 2]])


STREAM = {"x": np.ones((3, 6, 4)), "y": np.ones((3, 6))}
FILES = {
    "labels of the wrong shape": ({"y": np.ones((6, 1))}, [], "y of shape (6, 1) has 1 entries along B, but x has 6"),
    "too few labels": ({"y": np.ones(5)}, [], "y of shape (5,) has 5 entries along B, but x has 6"),
    "labels of too many axes": ({"y": np.ones((6, 1, 1))}, [], "y has shape (6, 1, 1); it must be B, or times by B"),
    "points without dimensions": ({"x": np.ones(6)}, [], "x has shape (6,); it must be B by D, or times by B by D"),
    "not a number": ({"y": np.array([1, 2, np.nan, 4, 5, 6])}, [], "y has an entry that is not a finite number"),
    "infinite": ({"x": np.full((6, 4), np.inf)}, [], "x has an entry that is not a finite number"),
    "no labels": ({"y": None}, [], "has no array y; it must contain x, y"),
    "objects": ({"x": np.array([[1, None]], dtype=object)}, [], "is not a NumPy archive of numbers"),
    "words": ({"x": np.full((6, 4), "a")}, [], "x does not consist of numbers"),
    "complex numbers": ({"x": np.full((6, 4), 1j)}, [], "x does not consist of numbers"),
    "nothing": ({"x": np.ones((0, 4)), "y": np.ones(0)}, [], "x is empty"),
    "an order out of range": ({"order": np.array([[0, 6]])}, ["T=1"], "order must be whole numbers from 0 to 5"),
    "a negative order": ({"order": np.array([[0, -1]])}, ["T=1"], "order must be whole numbers from 0 to 5"),
    "an order of fractions": ({"order": np.ones((2, 2))}, ["T=1"], "order must be whole numbers from 0 to 5"),
    "a flat order": ({"order": np.arange(3)}, ["T=1"], "order must be whole numbers from 0 to 5"),
    "an empty order": ({"order": np.zeros((0, 2), int)}, ["T=1"], "order must be whole numbers from 0 to 5"),
    "an order of a stream": (
        {**STREAM, "order": np.zeros((2, 2), int)},
        [],
        "order is given, but x already has one row per time",
    ),
    "a short order": (
        {"order": np.zeros((2, 2), int)},
        ["T=3"],
        "the data cover 2 steps, but T needs 3; take T=2",
    ),
    "a short stream": (STREAM, ["T=4"], "the data cover 3 steps, but T needs 4; take T=3 at most"),
    "labels that are no signs": (
        {"y": np.array([0, 1, 0, 1, 1, 0])},
        ["loss=cross_entropy"],
        "labels y of cross_entropy must be 1 or -1; for 0 and 1 take 2*y - 1",
    ),
    "classes as columns": ({"y": np.eye(10)[:6]}, [], "classifier.py"),
    "classes as numbers": ({"y": np.arange(6)}, ["loss=cross_entropy"], "classifier.py"),
    "a batch too large": ({}, ["B=7"], "7 points per batch are too many; take at most 6"),
    "a size that contradicts": ({}, ["P=5"], "P=5, but data="),
    "a batch that contradicts": ({"order": np.zeros((2, 2), int)}, ["B=3"], "B=3, but data="),
}


@pytest.mark.parametrize("case", FILES)
def test_files_are_refused_with_one_sentence(points, case):
    changes, pairs, sentence = FILES[case]
    with pytest.raises(ParameterError) as caught:
        taken(points(**changes), *pairs)
    assert sentence in str(caught.value)


def _broken(path: Path, what: str) -> None:
    np.savez_compressed(path, x=np.ones((6, 4)), y=np.ones(6))
    whole = path.read_bytes()
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (10000000000000, 4), }"
    if what == "an archive of something else" or what == "an array beyond all memory":
        array = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117) + b"\n"
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("x.npy", "y.npy"):
                archive.writestr(name, b"abc" if what == "an archive of something else" else array)
        return
    contents = {
        "empty": b"",
        "cut in half": whole[: len(whole) // 2],
        "damaged": whole[:70] + bytes(60) + whole[130:],
        "a text": b"x y\n1 2\n",
        "a pickle": pickle.dumps({"x": [1.0], "y": [1.0]}),
    }
    path.write_bytes(contents[what])


@pytest.mark.parametrize(
    "what",
    [
        "empty",
        "cut in half",
        "damaged",
        "a text",
        "a pickle",
        "an archive of something else",
        "an array beyond all memory",
    ],
)
def test_files_that_are_no_archives(tmp_path, what):
    path = tmp_path / "broken.npz"
    _broken(path, what)
    with pytest.raises(ParameterError, match="is not a NumPy archive of numbers; save x, y with numpy.savez"):
        taken(f"data={path}")


def test_other_ways_to_name_no_archive(tmp_path):
    np.save(tmp_path / "one.npy", np.ones(3))
    with pytest.raises(ParameterError, match="holds one array without a name"):
        taken(f"data={tmp_path / 'one.npy'}")
    with pytest.raises(ParameterError, match="is a directory"):
        taken(f"data={tmp_path}")
    with pytest.raises(ParameterError, match="there is no such file"):
        taken(f"data={tmp_path / 'none.npz'}")
    with pytest.raises(ParameterError, match="data= names no file"):
        taken("data=")


def test_batches_take_every_point_once_an_epoch():
    order = batches(7, 3, 5, np.random.default_rng(1))
    assert order.shape == (5, 3)
    assert len(set(order[:2].ravel())) == 6 and len(set(order[2:4].ravel())) == 6
    assert np.array_equal(batches(3, 3, 2, np.random.default_rng(1)), [[0, 1, 2], [0, 1, 2]])


# -- the command line

BAD = {
    "labels of the wrong shape": ({"y": np.ones((6, 1))}, (), "y of shape (6, 1)"),
    "not a number in the data": ({"y": np.full(6, np.nan)}, (), "y has an entry that is not a finite number"),
    "an activation that is not elementwise": ({}, ("activation=softmax(x)",), "softmax is not an elementwise function"),
    "an activation that jumps": ({}, ("activation=sign(x)",), "activation=sign(x) jumps"),
    "a constant activation": ({}, ("activation=3",), "activation=3 does not depend on x"),
    "a loss without derivative": ({}, ("loss=sign(f-y)",), "loss=sign(f - y) has no usable derivative"),
    "a loss free of the output": ({}, ("loss=y**2",), "loss=y**2 has no usable derivative"),
    "code": ({}, ("activation=__import__('os').system('x')",), "not arithmetic"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("command", ["solve", "simulate", "compare"])
def test_bad_input_ends_with_one_sentence_and_nothing_written(points, tmp_path, command, case):
    changes, pairs, sentence = BAD[case]
    out = tmp_path / ("out.csv" if command == "solve" else "out.png")
    written = {
        "solve": ("eta=0.1,0.2", "--out", str(out)),
        "simulate": ("--size", "20", "--seeds", "1"),
        "compare": ("--size", "20", "--plot", str(out)),
    }
    arguments = [command, "wide_network", "L=1", "T=1", points(**changes), *pairs, *written[command]]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ") and result.stderr.count("\n") == 1
    assert sentence in result.stderr
    assert not out.exists()
