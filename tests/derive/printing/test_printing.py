"""Records read like mathematics: exact lines, plain ASCII, LaTeX that compiles, the same bytes under any hash seed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import sympy as sp
from conftest import SHIPPED, derivation_of, model_named

from derive import (
    Eq,
    Model,
    axis,
    field,
    fields,
    gaussian,
    mean,
    normal,
    outer,
    parameter,
    positive,
    sectors,
    spectrum,
    training_clock,
    weights,
    whole_positive,
)
from derive.algebra.nodes import Correlation, Hat, Noise, Response, at
from derive.codegen import generate_files
from derive.pipeline import STAGES, derive_model
from derive.printing import latex, latex_of_record, markdown_of_derivation, sections_as_data, text, text_of_record
from derive.printing.documents import COLUMNS, break_text, text_of_matrix
from derive.printing.plain import TextPrinter

ROOT = Path(__file__).resolve().parents[3]


def told(probed) -> dict:
    """All records of a probed matrix by stage."""
    return {stage: probed.record(stage) for stage in probed.stages}


@cache
def shipped(name: str, **choices):
    derivation = derivation_of(name, **choices)
    return model_named(name, **choices), told(derivation.first if derivation.probes else derivation)


@cache
def two_wisharts():
    nu = parameter("nu", default=2.0, domain=positive)
    rho = parameter("rho", default=3.0, domain=positive)
    d, n, p = sectors("D", N=nu, P=rho)
    a, b = gaussian("A", n, d), gaussian("B", p, d)
    model = Model(parameters=(nu, rho), probe=spectrum(a.T @ a / n + b.T @ b / p), name="two_wisharts")
    return model, told(derive_model(model).first)


@cache
def momentum():
    """Weights with a momentum buffer, online data, class labels and a constant drive, on a clock named k."""
    mu = parameter("mu", default=0.9, domain=positive)
    eta = parameter("eta", default=0.1, domain=positive)
    steps = parameter("T", default=4, domain=whole_positive)
    classes = parameter("C", default=2, domain=whole_positive)
    d = sectors("D")
    k = training_clock("k", steps=steps)
    label = axis("label", classes)
    initial, data = gaussian("W0", d, d), gaussian("X", d, d, fresh=k)
    x = normal("x", d, axes=label)
    h, y = fields("h y", d, k, axes=label)
    w, buffer = weights("W", d, d, k), weights("V", d, d, k)
    model = Model(
        parameters=(mu, eta, steps, classes),
        equations=[
            Eq(h(k), w(k) @ y(k) / sp.sqrt(d)),
            Eq(y(k + 1), h(k) + data(k).T @ h(k) / sp.sqrt(d) + 1),
            Eq(y(0), x),
            Eq(w(0), initial),
            Eq(buffer(0), 0),
            Eq(buffer(k + 1), mu * buffer(k) + eta / sp.sqrt(d) * outer(h(k), y(k))),
            Eq(w(k + 1), w(k) + buffer(k + 1)),
        ],
        observe={"size": mean(h(k) ** 2)},
        probe=spectrum(w(steps).T @ w(steps) / d),
        name="momentum",
    )
    return model, told(derive_model(model).first)


@cache
def product_with_spike():
    """A product of two matrices, fields without a clock, and a field named j."""
    nu = parameter("nu", default=2.0, domain=positive)
    d, n = sectors("D", N=nu)
    a, b = gaussian("A", n, d), gaussian("B", n, n)
    x, j = normal("x", d), field("j", n)
    model = Model(
        parameters=(nu,),
        equations=[Eq(j, b @ (a @ x / sp.sqrt(d)) / sp.sqrt(n))],
        observe={"size": mean(j**2)},
        probe=spectrum(a.T @ b.T @ b @ a / n**2 + outer(x, x) / d),
        name="product_with_spike",
    )
    return model, told(derive_model(model).first)


def everything():
    return [
        *(shipped(name) for name in SHIPPED),
        (model_named("deep_linear"), told(derivation_of("deep_linear").probes["1"])),
        two_wisharts(),
        momentum(),
        product_with_spike(),
    ]


def lines(record) -> list[str]:
    return [line.strip() for line in text_of_record(record).splitlines()]


# -- exact lines of text


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("system", "xi(t) = (sqrt(N0)/N1) W0^T g(t)"),
        ("system", "g(t) = theta b(t) + kappa theta sum_{s<t} chi(s)"),
        ("system", "psi1(tau) = (W0 psi0)(tau) + sum_{s<S} C[psi0,phi](tau,s) g(s)"),
        ("action", "i hat phi(t) . [phi(t) - a(t) - kappa sum_{s<t} xi(s)]"),
        ("action", "X[W0] contains hat chi(t) phi(t)^T/sqrt(N0)"),
        ("average", "-(sigma^2/N1) (phi(t) . hat xi(s)) (hat chi(t) . g(s))"),
        ("saddle", "R[phi,xi](t,s) = <d phi(t)/d u[xi](s)>"),
        ("saddle", "C[psi0,psi0](tau,tau') = <psi0(tau) psi0(tau')>"),
        ("saddle", "u[xi](t) is joined by sigma^2 sum_{s<t} R[g,chi](t,s) phi(s)"),
        ("single-site", "chi(t) = u[chi](t) + (sigma^2/alpha) sum_{s<t} R[phi,xi](t,s) g(s)"),
        ("single-site", "<u[xi](t) u[xi](s)> = (sigma^2/alpha) C[g,g](t,s)"),
        ("order", "R[g,chi](t,s)   (nonzero only for s < t)"),
        ("probe", "L[psi0,psi0] = z - sigma^2 R[psi1, W0 psi0](z)"),
        ("blocks", "A[1,3] = -C[phi,phi] - (sigma^2/alpha) R[phi,xi]"),
        ("blocks", "A[2,3] = -R[phi,xi]^T"),
        ("blocks", "q0[1] = <j phi>"),
        ("pencil", "z = (sigma^2 + s) (alpha s + sigma^2)/(alpha s)   (its inverse)"),
        ("pencil", "K_1 = [ C[phi,phi] + (sigma^2/alpha) R[phi,xi]  sigma^2 C[phi,phi]  ]"),
        ("pencil", "[ R[g,chi]^T                 (sigma^2/alpha) R[g,chi]^T ]"),
    ],
)
def test_line_of_coupled_spikes(stage, line):
    assert line in lines(shipped("coupled_spikes")[1][stage])


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("system", "variance(M0) = 1/D   (D x D, symmetric, the diagonal with twice the variance)"),
        ("system", "(M0 v)(t) = M0 v(t)"),
        ("system", "v(0) = start"),
        ("system", "v(t) = v(t-1) - dt (M0 v)(t-1) - dt^2 gamma0 sum_{s<t-1} C[v,v](t-1,s) v(s)   (for t >= 1)"),
        ("single-site", "(M0 v)(t) = u[M0 v](t) + sum_{s<t} R[v, M0 v](t,s) v(s)"),
        ("blocks", "A[1,1] = (z - R[psi0, M0 psi0](z)) I - dt gamma0 C[v,v] - R[v, M0 v]"),
    ],
)
def test_line_of_anti_hebbian(stage, line):
    assert line in lines(shipped("anti_hebbian")[1][stage])


def test_momentum_coefficients_are_printed_as_a_recurrence_on_the_declared_clock():
    assert "history_W(k+1,s) = mu history_V(k,s) + history_W(k,s)   (coefficient of updated weights)" in lines(
        momentum()[1]["system"]
    )


def test_fresh_data_makes_noise_white_in_time():
    assert "<u[X^T h](k) u[X^T h](s)> = delta(k,s) C[h,h](k,s)" in lines(momentum()[1]["single-site"])


def test_block_matrix_is_drawn_as_a_grid():
    assert "A = [ A[1,1]  0       A[1,3]  A[1,4] ]" in lines(shipped("coupled_spikes")[1]["blocks"])


# -- exact LaTeX


def test_latex_of_a_single_site_equation():
    expected = r"\chi(t) = u_{\chi}(t) + \frac{\sigma^{2}}{\alpha}\, \sum_{s=0}^{t - 1} R_{\phi \xi}(t, s)\, g(s)"
    assert expected in latex_of_record(shipped("coupled_spikes")[1]["single-site"])


def test_latex_of_an_engine_made_field():
    assert r"(M_{0} v)(t) = u_{M_{0} v}(t)" in latex_of_record(shipped("anti_hebbian")[1]["single-site"])


def test_latex_shows_the_block_matrix_as_one():
    assert r"\begin{bmatrix}" in latex_of_record(shipped("coupled_spikes")[1]["blocks"])


def test_long_right_hand_sides_are_broken_over_lines():
    assert r"\begin{aligned}" in latex_of_record(two_wisharts()[1]["bulk"])


# -- single expressions


def example():
    d = sectors("D")
    steps = parameter("T", default=3, domain=whole_positive)
    t = training_clock("t", steps=steps)
    phi, xi = fields("phi xi", d, t)
    return d, t, phi, xi


def test_text_of_nodes():
    _, t, phi, xi = example()
    nodes = (Hat(phi(t)), Noise(xi, t), Correlation(phi, phi, t, 0), Response(phi, xi, t, t - 1))
    assert [text(node) for node in nodes] == ["hat phi(t)", "u[xi](t)", "C[phi,phi](t,0)", "R[phi,xi](t,t-1)"]


def test_latex_of_a_hat_sits_on_the_letter():
    d = sectors("D")
    assert latex(Hat(at(normal("psi0", d), 0))) == r"\hat{\psi}_{0}"


def test_two_numbers_do_not_run_together():
    n = sp.Symbol("n")
    assert text(2 * sp.Integer(3) ** n) == "2 * 3^n"


def test_a_sum_starts_with_a_positive_term():
    a, b = sp.symbols("a b")
    assert text(b - a) == "b - a"


def test_sums_in_products_keep_their_brackets():
    a, b, c = sp.symbols("a b c")
    assert text(-c * (a + b)) == "-c (a + b)"


def test_matrix_of_a_declaration():
    d, n = sectors("D", N=2)
    w = gaussian("W0", n, d)
    assert text(w.T @ w / n) == "(1/N) W0^T W0"


def test_long_lines_break_outside_of_brackets_first():
    assert break_text("value = first(a + b + c) + second(d + e + f) + g", 30) == [
        "value = first(a + b + c)",
        "+ second(d + e + f) + g",
    ]


# -- what holds for every record


@pytest.mark.slow
def test_text_is_ascii():
    assert all(text_of_record(r).isascii() for _, records in everything() for r in records.values())


@pytest.mark.slow
def test_text_fits_a_hundred_columns():
    wide = [
        line
        for _, records in everything()
        for r in records.values()
        for line in text_of_record(r).splitlines()
        if len(line) > 100
    ]
    assert wide == []


PYTHON_WORDS = re.compile(
    r"FieldAt|Apply\(|Dummy|Correlation\(|Response\(|Noise\(|Hat\(|Dot\(|Mean\(|Source\(|Sum\("
    r"|_root_|_opaque|\*\*|True|False"
)


@pytest.mark.slow
@pytest.mark.parametrize("printed", [text_of_record, latex_of_record])
def test_no_words_of_the_implementation(printed):
    found = [
        m.group() for _, records in everything() for r in records.values() for m in PYTHON_WORDS.finditer(printed(r))
    ]
    assert found == []


@pytest.mark.slow
def test_order_parameters_are_never_printed_by_their_plain_names():
    found = [
        m.group()
        for _, records in everything()
        for r in records.values()
        for m in re.finditer(r"\b[ACGLRX]_\w+", text_of_record(r))
    ]
    assert found == []


def test_a_field_named_j_renames_the_source():
    line = "d/dtau psi0(tau) = (A^T psi3)(tau) + C[psi0,x](tau) x + source(tau)"
    assert line in lines(product_with_spike()[1]["system"])


def balanced(source: str) -> bool:
    depth = 0
    for letter in re.sub(r"\\[{}]", "", source):
        depth += (letter == "{") - (letter == "}")
        if depth < 0:
            return False
    pairs = ((r"\\left\b", r"\\right\b"), (r"\\bigl\b", r"\\bigr\b"), (r"\\begin\b", r"\\end\b"), (r"\\\[", r"\\\]"))
    return depth == 0 and all(len(re.findall(a, source)) == len(re.findall(b, source)) for a, b in pairs)


@pytest.mark.slow
def test_latex_is_balanced():
    assert all(balanced(latex_of_record(r)) for _, records in everything() for r in records.values())


@pytest.mark.slow
def test_latex_uses_amsmath_only():
    known = set(
        "subsection paragraph frac sqrt sum int partial left right bigl bigr langle rangle hat widehat mathrm mathbf "
        "text top cdot ni quad begin end leftarrow tanh delta le ge alpha beta gamma chi xi phi psi sigma theta kappa "
        "tau mu nu rho eta epsilon pi det textasciicircum".split()
    )
    used = {
        word
        for _, records in everything()
        for r in records.values()
        for word in re.findall(r"\\([A-Za-z]+)", latex_of_record(r))
    }
    assert used <= known


@pytest.mark.slow
def test_latex_compiles(tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("pdflatex is not installed")
    body = "\n".join(latex_of_record(r) for _, records in everything() for r in records.values())
    source = "\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n" + body + "\n\\end{document}\n"
    (tmp_path / "records.tex").write_text(source)
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "records.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout[-2000:]


# -- documents


def test_markdown_lists_parameters():
    assert "| $\\gamma_{0}$ | `gamma0` | 4 | a number in (-inf, inf) | strength of the plastic term |" in (
        markdown_of_derivation(derivation_of("anti_hebbian"))
    )


def test_markdown_has_a_heading_for_each_stage():
    markdown = markdown_of_derivation(derivation_of("anti_hebbian"))
    assert re.findall(r"^## .*\(`(.*)`\)$", markdown, re.M) == list(STAGES)


def test_markdown_ends_with_every_assumption():
    derivation = derivation_of("anti_hebbian")
    listed = markdown_of_derivation(derivation).split("## Assumptions")[1]
    assert listed.count("\n- ") == len(derivation.first.bulk.assumptions)


@pytest.mark.slow
def test_markdown_tells_the_training_level_once_and_every_layer():
    model = model_named("deep_linear", L=1)
    told = re.findall(r"^## .*\(`(.*)`\)$", generate_files(model)["derivation.md"], re.M)
    assert told == [*STAGES, *STAGES[-4:]]
    headings = markdown_of_derivation(derive_model(model))
    assert headings.count(", layer 0 (`bulk`)") == headings.count(", layer ntk (`bulk`)") == 1
    assert r"W_{0}(T)^{\top}\, W_{0}(T) + \mathrm{readout\_norm} \, I" in headings


def test_sections_as_data_hold_text_and_latex():
    first = sections_as_data(shipped("spiked_wigner")[1]["bulk"])[0]["statements"][0]
    assert first["left"] == {"text": "G^2 - G z + 1", "latex": r"G^{2} - G\, z + 1"}


PRINT_ALL = """
import importlib
from derive.pipeline import derive_model
from derive.printing import latex_of_record, markdown_of_derivation, text_of_record
model = importlib.import_module("derive.models.coupled_spikes_tanh").MODEL
derivation = derive_model(model)
records = [derivation.first.record(stage) for stage in derivation.first.stages]
print(markdown_of_derivation(derivation), *(text_of_record(r) + latex_of_record(r) for r in records))
"""


@pytest.mark.long
@pytest.mark.slow
def test_same_bytes_under_two_hash_seeds():
    outputs = [
        subprocess.run(
            [sys.executable, "-c", PRINT_ALL],
            capture_output=True,
            check=True,
            timeout=120,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        ).stdout
        for seed in ("1", "77")
    ]
    assert outputs[0] == outputs[1]


def test_a_wide_matrix_of_blocks_is_named_and_listed():
    """Whole where it fits; else by names, each told below. A(z) has a section for its blocks."""
    wide = [[sp.MatrixSymbol(f"{'long' * 8}_{r}{c}", 2, 2) for c in range(3)] for r in range(2)]
    wide[1][0] = sp.ZeroMatrix(2, 2)
    told = text_of_matrix("K", sp.BlockMatrix(wide), TextPrinter())
    assert told[:2] == ["    K = [ K[1,1]  K[1,2]  K[1,3] ]", "        [ 0       K[2,2]  K[2,3] ]"]
    assert len(told) == 7 and told[2].startswith("    K[1,1] = ") and max(map(len, told)) <= COLUMNS
    assert len(text_of_matrix("A", sp.BlockMatrix(wide), TextPrinter())) == 2
    narrow = sp.BlockMatrix([[sp.Identity(2), wide[1][0]]])
    assert text_of_matrix("K", narrow, TextPrinter()) == ["    K = [ I  0 ]"]
