"""Derived objects in the letters of a source: names, scales, refusals, and claims typed in them."""

from __future__ import annotations

import pytest

from derive import (
    Eq,
    Model,
    field,
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
from derive.claims import check_claims, load_claims
from derive.errors import DeclarationError, ParameterError
from derive.inputs.loading import load_model
from derive.pipeline import derive_model
from derive.printing import equations_of, lettered, letters_of, text_of_record
from derive.printing.lettering import hatted, plain_letter

SHIPPED = (
    *("deep_linear", "coupled_spikes", "wide_network", "spiked_wigner", "anti_hebbian"),
    *("extensive_two_layer", "extensive_multilayer"),
)


def small(**notation):
    """A network with one layer that learns from its own output, with the backward field scaled by theta."""
    theta = parameter("theta", default=2.0, domain=positive)
    T = parameter("T", default=3, domain=whole_positive)
    D, N = sectors("D", N=2)
    t = training_clock("t", steps=T)
    J = gaussian("J", N, D)
    h, g, start = field("h", D, t), field("g", N, t), normal("start", D)
    W = weights("W", N, D, t)
    equations = [
        Eq(h(0), start),
        Eq(h(t + 1), h(t) - theta * W(t).T @ g(t) / D**0.5),
        Eq(g(t), W(t) @ h(t) / D**0.5),
        Eq(W(0), J),
        Eq(W(t + 1), W(t) + outer(g(t), h(t)) / D**0.5),
    ]
    named = {"J^T g": (theta, r"\xi"), "u[J^T g]": "r", "R[h,J^T g]": "R_{hr}"} | notation.pop("more", {})
    return Model(
        parameters=(theta, T),
        equations=equations,
        observe={"size": mean(h(t) ** 2)},
        probe=spectrum(W(T).T @ W(T) / N),
        notation=named | notation,
    )


@pytest.fixture(scope="module")
def first_layer():
    model = load_model("deep_linear")
    derivation = derive_model(model)
    return derivation.probes["0"], letters_of(model, "paper")


def printed(record, letters):
    with lettered(letters):
        return [line.strip() for line in record.text().splitlines()]


@pytest.mark.parametrize(
    ("stage", "line"),
    [
        ("system", "v(t) = w_* - xi^0(t) - eta sum_{s<t} C_g^1(t,s) h^0(s)"),
        ("action", "X[W^0(0)] contains (sqrt(D)/(gamma0 N)) g^1(t) hat xi^0(t)^T"),
        ("saddle", "<r^0(t) r^0(s)> = C_g^1(t,s)/(gamma0^2 nu)"),
        ("saddle", "<r^0(t) u_{zeta_2}(tau)> = C^{g^1 psi_1}(t,tau)/(gamma0 nu)"),
        ("single-site", "xi^0(t) = r^0(t) + (1/gamma0) sum_{s<t} R_gu^1(t,s) h^0(s)"),
        ("blocks", "A[1,3] = -eta gamma0 C_h^0 - (1/(gamma0 nu)) R_hr^0"),
        ("blocks", "A[2,3] = -eta gamma0 (R_hr^0)^T"),
        ("blocks", "A[3,2] = -(1/(gamma0 nu)) C_g^1"),
    ],
)
def test_a_scale_rescales_the_printed_coefficients(first_layer, stage, line):
    """The appendix on deep linear networks, first layer; J0^T g1 is gamma0 xi^0."""
    probed, letters = first_layer
    assert line in printed(probed.record(stage), letters)


def test_letters_are_off_outside(first_layer):
    probed, letters = first_layer
    before = probed.blocks.text()
    assert probed.blocks.text(notation="paper") != before == probed.blocks.text()
    with pytest.raises(ParameterError, match="model or paper"):
        probed.blocks.text(notation="book")


def test_one_equation_has_the_letters(first_layer):
    model = load_model("deep_linear")
    with lettered(first_layer[1]):
        one = equations_of(derive_model(model), ("probe",))["A2.0"]
    assert "R_{hr}^0" in one.latex and r"\gamma_{0}\, \left({R_{hr}^0}\right)" in one.latex


def test_conjugates_of_responses_with_one_letter_add_up():
    """hat R_22 of the paper is the sum over the two random matrices that feed v^2."""
    lines = derive_model(load_model("extensive_two_layer")).first.record("conjugates").text(notation="paper")
    assert "hat R_22(tau,tau') = chi gamma R_13(tau',tau)/nu + R_04(tau',tau)/nu" in lines
    assert "hat R_04(tau,tau') = gamma R_31(tau',tau) + R_22(tau',tau)" in lines


def test_an_equation_is_divided_by_the_scale_of_its_field():
    """J^T g = u + 2 sum R h is theta xi = theta r + 2 sum R h."""
    model = small()
    lines = derive_model(model).first.record("single-site").text(notation="paper")
    assert "xi(t) = r(t) + (2/theta) sum_{s<=t} R[g, J h](t,s) h(s)" in lines


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"J h ": r"\chi", "hh": "x"}, "names nothing in model; did you mean 'h'"),
        ({"h": "x", "g": "x"}, "same letter x"),
        ({"h": r"\theta"}, r"same letter \\theta"),
        ({"J h": r"\chi", "J_h": r"\eta"}, "name the same"),
        ({"u[h]": "u"}, "has no noise of its own"),
        ({"C[h,g]": "C"}, "is not an order parameter"),
    ],
)
def test_letters_that_do_not_fit_are_refused(more, message):
    with pytest.raises(DeclarationError, match=message):
        letters_of(small(more=more), "paper")


@pytest.mark.parametrize(
    ("value", "message"),
    [((0, "x"), "scale is 0"), (("theta", "x"), "text"), ("", "not a letter"), ("a$b", "characters that end")],
)
def test_a_letter_is_latex_perhaps_with_a_scale(value, message):
    with pytest.raises(DeclarationError, match=message):
        small(more={"h": value})


def test_a_model_without_notation_says_so():
    with pytest.raises(DeclarationError, match="declares no notation"):
        letters_of(load_model("structured_regression"), "paper")


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_notations_fit_their_models(name):
    letters = letters_of(load_model(name), "paper")
    assert len(letters.rows) >= 7


OPTIONS = [{"L": 1}, {"L": 3}, {"data": "online"}, {"param": "ntk"}, {"spectrum": "power_law"}, {"teachers": "given"}]


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [*OPTIONS, {"kernel": "sample", "spectrum": "two_groups"}], ids=str)
def test_the_notation_fits_every_option(chosen):
    assert letters_of(load_model("deep_linear", chosen), "paper").rows


@pytest.mark.parametrize(
    ("latex", "plain"),
    [
        (r"\chi^1", "chi^1"),
        ("R_{hr}^0", "R_hr^0"),
        (r"C^{h^0\psi_0}", "C^{h^0 psi_0}"),
        (r"\mathcal{H}", "H"),
        (r"w_\star", "w_*"),
        (r"\hat{h}^0", "hat h^0"),
    ],
)
def test_plain_letters(latex, plain):
    assert plain_letter(latex) == plain and hatted(r"\chi^1") == r"\hat{\chi}^1"


CLAIMS = {
    'kind = "kernel"\ntarget = "xi^0"': ("R_gu^1*h^0/gamma0", "R_gu^1*h^0"),
    'kind = "covariance"\nnoises = ["r^0", "r^0"]': ("C_g^1/(gamma0**2*nu)", "C_g^1/nu"),
    'kind = "order_parameter"\nof = "R_hr^0"': ("-i/D*dot(h^0,hat(xi^0))", "-i/(D*gamma0)*dot(h^0,hat(xi^0))"),
    'kind = "conjugate"\nof = "R_gu^1"': ("R_hr^0.T/(gamma0*nu)", "R_hr^0.T/nu"),
    'kind = "law"\ntarget = "v"': ("w_* - xi^0 - eta*past(C_g^1*h^0)", "w_* - xi^0/gamma0 - eta*C_g^1*h^0"),
    'kind = "block"\nrow = "R^{psi_0 r^0}"\ncolumn = "C^{g^1 psi_1}"': ("-eta*gamma0*R_hr^0.T", "-eta*R_hr^0.T"),
    'kind = "block"\nrow = "C[g1,psi1]"\ncolumn = "R[psi0, J0^T g1]"': ("-C_g^1/nu", "-C_g^1/(gamma0*nu)"),
    'kind = "projected"\nunknown = "R^{psi_0 r^0}"': (
        "R^{psi_0 r^0}/H - R_hr^0.T*(eta*gamma0*C^{g^1 psi_1} + R^{psi_1 u^1})",
        "R^{psi_0 r^0}/H - R_hr^0.T*(eta*C^{g^1 psi_1} + R^{psi_1 u^1})",
    ),
    'kind = "observable"\nof = "test_loss"': ("C_v + sigma**2", "C_v + sigma"),
    'kind = "symmetry"\nof = "c"': ("signed permutations", "permutations"),
}


@pytest.mark.slow
def test_claims_in_the_letters_of_the_paper(tmp_path):
    """Each holds as the paper has it, and a twin with a wrong power of gamma0, eta or sigma does not."""
    path = tmp_path / "paper.toml"
    lines = ['model = "deep_linear"', "layer = 0", 'notation = "paper"']
    for number, (keys, values) in enumerate(CLAIMS.items()):
        for kind, value in zip(("right", "wrong"), values, strict=True):
            lines += ["[[claim]]", f'name = "{kind} {number}"', keys, f'value = "{value}"']
    path.write_text("\n".join(lines))
    verdicts = {v.name: v for v in check_claims(load_claims(path))}
    for name, verdict in verdicts.items():
        assert verdict.status == ("proved" if name.startswith("right") else "refuted"), (name, verdict.detail)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "right", "wrong"),
    [
        ('kind = "conjugate"\nof = "R_22"', "R_04.T/nu + gamma*chi/nu*R_13.T", "R_04.T/nu + chi/nu*R_13.T"),
        ('kind = "conjugate"\nof = "R_31"', "gamma/chi*R_04.T", "gamma*R_04.T"),
        ('kind = "kernel"\ntarget = "v^3"', "gamma*R_22*v^1", "R_22*v^1"),
        ('kind = "covariance"\nnoises = ["u_3", "u_3"]', "chi/nu*C_22", "nu/chi*C_22"),
    ],
)
def test_fields_with_one_letter_are_one_in_claims(tmp_path, keys, right, wrong):
    """psi3 = gamma (A^T psi1) is v^3 at two scales, and R_22 answers to two noises."""
    path = tmp_path / "paper.toml"
    claims = (f'[[claim]]\nname = "{name}"\n{keys}\nvalue = "{name}"\n' for name in (right, wrong))
    path.write_text('model = "extensive_two_layer"\nnotation = "paper"\n' + "".join(claims))
    assert [v.status for v in check_claims(load_claims(path))] == ["proved", "refuted"]


def printed_text(name, stage, **choices):
    model = load_model(name, choices)
    derivation = derive_model(model)
    level = next(iter(derivation.probes.values()))
    with lettered(letters_of(model, "paper")):
        return text_of_record(level.record(stage))


def test_a_product_in_one_equation_has_the_response_field_of_that_equation():
    """hat (X v) = hat Delta, since Delta = (X v) + sigma epsilon; a product with a letter keeps its own."""
    text = printed_text("deep_linear", "conjugates", L=1)
    assert "R_Delta(t,s) = -(i/P) (Delta(t) . hat Delta(s))" in text and "hat (X v)" not in text
    assert "R_hr^0(t,s) = -(i/D) (h^0(t) . hat xi^0(s))" in text
    assert "hat C_11(tau,tau') = -(gamma^2 nu/(2 chi)) <hat v^2(tau) hat v^2(tau')>" in printed_text(
        "extensive_two_layer", "conjugates"
    )


def test_a_step_in_time_keeps_the_response_field_of_the_product():
    assert "hat (M_0 v)(s)" in printed_text("anti_hebbian", "conjugates")


def test_sizes_with_one_letter_are_one_size():
    model = load_model("deep_linear")
    layer = derive_model(model).probes["1"]
    with lettered(letters_of(model, "paper")):
        text = text_of_record(layer.record("system"))
    assert "zeta_2(tau) = W^1(0)^T psi_1(tau)/sqrt(N)" in text and "sqrt(N)/N" not in text
