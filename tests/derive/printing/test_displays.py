"""What a notebook and a terminal show: mathematics and short text, in the symbols that the declaration asks for."""

from __future__ import annotations

import re
import shutil
import subprocess
import xml.etree.ElementTree
from functools import cache

import pytest
import sympy as sp
from conftest import derivation_of, model_named

from derive import (
    Eq,
    Model,
    axis,
    data,
    each,
    field,
    gaussian,
    goe,
    mean,
    normal,
    outer,
    parameter,
    past_sum,
    positive,
    sectors,
    spectrum,
    total,
    training_clock,
    weights,
    whole_positive,
)
from derive.codegen import declaration_digest, generate_files
from derive.errors import DeclarationError
from derive.inputs.loading import load_declaration
from derive.pipeline import derive_model
from derive.printing import latex_of_record, text_of_record
from derive.printing.mathml import mathml
from derive.report.html import html_of_report
from derive.report.latex import latex_of_report
from derive.report.writing import report_of
from derive.support.display import Displayed, DisplayedFormula

INTERNAL = re.compile(
    r"FieldAt|Atom\(|WeightsAt|DisorderAt|Dummy|Apply|rows=|EngineSymbol|operatorname\{|<derive|object at"
)
PLAIN = dict.fromkeys(("rate", "clock", "state", "weights", "start", "matrix", "labels"), "")
OWN = {
    "rate": r"\lambda",
    "clock": "k",
    "state": r"\mathbf{x}'",
    "weights": "W^{(1)}",
    "start": r"\xi_0",
    "matrix": r"J^{\star}",
    "labels": r"\vec{y}",
}
"""How a declaration may want its symbols written, with powers and primes that must not meet others."""


def by_hand(latex: dict[str, str]) -> Model:
    """A declaration with every kind of symbol."""
    lam = parameter("lam", default=0.1, domain=positive, doc="rate", latex=latex["rate"])
    nu = parameter("nu", default=2.0, domain=positive)
    T, P = (parameter(name, default=3, domain=whole_positive) for name in "TP")
    D, N = sectors("D", N=nu)
    t, p = training_clock("t", steps=T, latex=latex["clock"]), axis("p", P)
    y = data("y", p, clock=t, latex=latex["labels"])
    J = gaussian("J", N, D, latex=latex["matrix"])
    start = normal("start", D, axes=p, latex=latex["start"])
    x, h = field("x", D, t, axes=p, latex=latex["state"]), field("h", N, t, axes=p)
    W = weights("W", N, D, t, latex=latex["weights"])
    return Model(
        parameters=(lam, nu, T, P),
        equations=[
            Eq(x(0), start),
            Eq(x(t + 1), x(t) - lam * sp.sqrt(D) / N * W(t).T @ h(t) + lam * past_sum(lambda s: x(s), t)),
            Eq(h(t), W(t) @ x(t) / sp.sqrt(D)),
            Eq(W(0), J),
            Eq(W(t + 1), W(t) + lam / sp.sqrt(D) * y(t) * outer(h(t), x(t))),
        ],
        observe={"square_norm": mean(x(t) ** 2), "fit": total(y(t) * mean(h(t) ** 2)), "norms": each(mean(h(t) ** 2))},
        probe=spectrum(W(T).T @ W(T) / N),
        name="by_hand",
    )


@cache
def derived(name: str):
    if name == "by_hand":
        return derive_model(by_hand(OWN))
    return derivation_of(name, **({"L": 1} if name == "deep_linear" else {}))


def records(name: str) -> list:
    derivation = derived(name)
    found = [derivation.record(stage) for stage in derivation.stages]
    return found + [probed.record(stage) for probed in derivation.probes.values() for stage in probed.stages]


def shown_of(name: str) -> list:
    """Everything of one model that shows itself in many lines."""
    derivation = derived(name)
    return [derivation.model, derivation, *derivation.probes.values(), *records(name)]


def formulas_of(name: str) -> list:
    model = derived(name).model
    return [*model.equations, *(e.value for e in model.equations), *(probe for _, probe in model.probes)]


def braces_match(source: str) -> bool:
    depth = 0
    for letter in re.sub(r"\\[{}\\]", "", source):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if depth < 0:
            return False
    pairs = (r"\left", r"\right"), (r"\begin{", r"\end{"), (r"\langle", r"\rangle"), (r"\bigl", r"\bigr")
    return depth == 0 and all(len(re.findall(re.escape(a) + r"(?![a-z])", source)) ==
                              len(re.findall(re.escape(b) + r"(?![a-z])", source)) for a, b in pairs)  # fmt: skip


MODELS = ("anti_hebbian", "deep_linear", "by_hand")


@pytest.mark.long_cases("deep_linear")
@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_what_has_many_lines_shows_itself(name):
    for shown in shown_of(name):
        short, whole, tex, notebook = repr(shown), str(shown), shown.latex(), shown._repr_markdown_()
        assert short.startswith(type(shown).__name__) and len(short.splitlines()) < 6 and len(short) < 200
        assert whole == shown.text() and not INTERNAL.search(short + whole + tex + notebook)
        assert braces_match(tex)
        formulas = notebook.split("$$")
        assert len(formulas) % 2 == 1 and all(map(braces_match, formulas)) and len(formulas) > 2
        assert not re.search(r"\\\[|\\subsection|\n=+\n", notebook)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_record_prints_what_the_command_line_shows(name):
    for record in records(name):
        assert str(record) == text_of_record(record) and record.latex() == latex_of_record(record)


@pytest.mark.parametrize("name", MODELS)
def test_formulas_show_themselves(name):
    for formula in formulas_of(name):
        typed, tex = repr(formula), formula._repr_latex_()
        assert typed == str(formula) and len(typed.splitlines()) == 1 and not INTERNAL.search(typed + tex)
        assert tex.startswith("$") and tex.endswith("$") and braces_match(tex)


def test_families_show_their_choices_and_their_first_member():
    family = load_declaration("deep_linear")
    assert repr(family).startswith("Family deep_linear: ") and "data=full_batch" in repr(family)
    assert "| `L` | 2 |" in family._repr_markdown_() and r"\gamma_{0}" in family._repr_markdown_()
    assert "h2(t) = W1(t) h1(t)/sqrt(N1)" in str(family) and family.latex() == model_named("deep_linear").latex()


def test_no_class_that_shows_itself_dumps_its_attributes():
    """A dataclass writes a `repr` of its own unless told not to."""
    waiting, found = [Displayed, DisplayedFormula], []
    while waiting:
        found += (new := waiting.pop().__subclasses__())
        waiting += new
    assert {Model, Eq} < set(found) and len(found) > 20
    for kind in found:
        assert "__repr__" not in vars(kind), kind


def test_expressions_show_in_sympy_as_they_are_written():
    T = parameter("T", default=3, domain=whole_positive)
    D, t = sectors("D"), training_clock("t", steps=T)
    gamma0, M = parameter("gamma0", default=1.0), weights("M", D, D, t)
    v, x, start = field("v", D, t), field("x", D, t), normal("start", D)
    written = {
        "v(t)": (v(t), "v(t)"),
        "v(t) + 2*x(t)": (v(t) + 2 * x(t), "v(t) + 2 x(t)"),
        "v(t + 1)**2": (v(t + 1) ** 2, "v(t + 1)^{2}"),
        "mean(v(t)**2)": (mean(v(t) ** 2), r"\left\langle v(t)^{2} \right\rangle"),
        "gamma0*mean(start*x(t))": (
            gamma0 * mean(x(t) * start),
            r"\gamma_{0} \left\langle \mathrm{start}\, x(t) \right\rangle",
        ),
        "M(t).T @ v(t)": (M(t).T @ v(t), r"M(t)^{\top}\, v(t)"),
        "(M(t) @ v(t))**2": ((M(t) @ v(t)) ** 2, r"\left(M(t)\, v(t)\right)^{2}"),
        "outer(v(t), x(t)) @ start": (
            outer(v(t), x(t)) @ start,
            r"v(t)\, \bigl(x(t) \cdot \mathrm{start}\bigr)",
        ),
    }
    for typed, (expression, tex) in written.items():
        assert repr(expression) == str(expression) == typed
        assert sp.latex(expression) == tex and expression._repr_latex_() == rf"$\displaystyle {tex}$"
        assert "FieldAt" not in sp.pretty(expression)
    assert repr(M(t).T @ M(t) / D) == "1/D*M(t).T @ M(t)" and repr(M) == "M"
    assert (M(t) - 2 * goe("J", D)).latex() == r"M(t) - 2\, J"
    assert repr(M(t) - (1 + gamma0) * goe("J", D)) == "M(t) + (-gamma0 - 1)*J"
    assert repr(goe("J", D) - M(t)) == "J - M(t)"
    assert [s._repr_latex_() for s in (gamma0, D, t)] == [rf"$\displaystyle {n}$" for n in (r"\gamma_{0}", "D", "t")]


def test_records_display_a_of_z_as_one_matrix():
    for name in MODELS:
        notebook = derived(name).first.blocks._repr_markdown_()
        assert notebook.count(r"\begin{bmatrix}") == 1


def test_a_large_a_of_z_names_its_blocks(monkeypatch):
    monkeypatch.setattr("derive.printing.of_probe.LARGEST_WHOLE", 1)
    notebook = derived("anti_hebbian").first.blocks._repr_markdown_()
    whole = re.search(r"\\begin\{bmatrix\}(.*?)\\end\{bmatrix\}", notebook, re.S)[1]
    named = set(re.findall(r"A_\{\d,\d\}", whole))
    assert named and named == set(re.findall(r"(A_\{\d,\d\}) =", notebook))


# -- symbols of the declaration's own


@pytest.mark.slow
def test_latex_names_a_symbol_wherever_it_is_shown():
    derivation = derived("by_hand")
    told = generate_files(derivation.model)["derivation.md"]
    report = report_of(derivation, {}, (), {})
    pages = (told, derivation.model._repr_markdown_(), latex_of_report(report))
    for page in pages:
        for name in OWN.values():
            assert name in page, name
    for page in (*pages, derivation.latex(), html_of_report(report)):
        assert not re.search(r"\\mathrm\{(lam|start)\}", page)
    assert r"$k \ge 1$" in told and "t \\ge" not in told and "t + 1" not in told
    assert r"{W^{(1)}}(k)^{\top}" in told and r"{\mathbf{x}'}(k)^{2}" in told and r"\hat{\mathbf{x}'}" in told
    assert '<code class="raw">' not in html_of_report(report)


@pytest.mark.parametrize(
    "latex",
    [r"\boldsymbol{x}_0", r"\mathbf{\theta}", r"\mathcal{L}", r"\mathbb{R}", r"\mathsf{W}", r"x_\star", r"\hbar"],
)
def test_a_page_draws_the_usual_ways_to_write_a_symbol(latex):
    drawn = mathml(latex)
    assert "\\" not in drawn and xml.etree.ElementTree.fromstring(drawn).tag == "math"


@pytest.mark.slow
def test_latex_changes_no_number():
    plain, own = by_hand(PLAIN), by_hand(OWN)
    assert declaration_digest(plain) == declaration_digest(own)
    one, other = generate_files(plain), generate_files(own)
    assert {name for name in one if one[name] != other[name]} == {"derivation.md"}


def test_two_declarations_in_one_session_keep_their_symbols():
    """SymPy keeps what it has built and takes equal parts for each other."""
    texts = [by_hand(names)._repr_markdown_() for names in (OWN, PLAIN, OWN)]
    assert texts[0] == texts[2] and r"\lambda" not in texts[1] and r"\mathrm{lam}" not in texts[0]


def test_one_name_is_written_in_one_way():
    one, other = (parameter("lam", default=1.0, latex=latex) for latex in (r"\lambda", r"\ell"))
    D = sectors("D")
    with pytest.raises(DeclarationError, match="lam is used twice"):
        Model(parameters=(one, other), probe=spectrum((one + other) * goe("M", D)))


@pytest.mark.parametrize(
    "latex", [3, None, "{", "}{", r"\frac{1}{2", "$x$", "x_", "x^", "a__b", "λ", "a\nb", " ", "x % y", "x\\", r"a \\ b"]
)
def test_bad_latex_is_refused_in_one_sentence(latex):
    D = sectors("D")
    steps = parameter("T", default=3, domain=whole_positive)
    clock = training_clock("t", steps=steps)
    for declare in (
        lambda: parameter("lam", default=1.0, latex=latex),
        lambda: training_clock("t", steps=steps, latex=latex),
        lambda: field("x", D, latex=latex),
        lambda: normal("x", D, latex=latex),
        lambda: gaussian("J", D, D, latex=latex),
        lambda: goe("M", D, latex=latex),
        lambda: weights("W", D, D, clock, latex=latex),
        lambda: data("y", axis("p", steps), latex=latex),
    ):
        with pytest.raises(DeclarationError, match="latex=") as refusal:
            declare()
        assert "\n" not in str(refusal.value) and re.match(r"\w+ \w+: ", refusal.value.sentence)


@pytest.mark.parametrize("latex", [r"\lambda", r"\mathbf{x}_{0}", r"a\_b", r"\{x\}", r"W^{(1)}", r"\tilde\eta", ""])
def test_good_latex_is_taken(latex):
    assert parameter("lam", default=1.0, latex=latex).tex == latex


@pytest.mark.slow
def test_what_is_shown_compiles(tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    body = [shown.latex() for name in MODELS for shown in shown_of(name)]
    body += [formula._repr_latex_() + "\n" for name in MODELS for formula in formulas_of(name)]
    body += [rf"\[{part}\]" for name in MODELS for part in derived(name).model._repr_markdown_().split("$$")[1::2]]
    source = "\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n" + "\n".join(body)
    (tmp_path / "shown.tex").write_text(source + "\n\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "shown.tex"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout[-2000:]
