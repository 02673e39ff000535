"""Claims typed in the symbols of the paper: right ones are proved, wrong ones refuted in the same symbols."""

from __future__ import annotations

import re

import pytest

from derive.claims import check_claims, load_claims
from derive.claims.checking import model_of
from derive.errors import ClaimError
from derive.inputs.loading import load_model
from derive.pipeline import derive_model

RIGHT = [
    ("spiked_wigner", 'kind = "order_parameter"\nof = "R_h"', "-i*dot(h,hat(h))/D"),
    ("anti_hebbian", 'kind = "weights"\ntarget = "M"\nshift = 1', "M + gamma0*dt/D*outer(v,v)"),
    ("anti_hebbian", 'kind = "law"\ntarget = "h"', "M_0*h + gamma0*dt*C_vh*v + j"),
    ("coupled_spikes", 'kind = "weights"\ntarget = "W"', "W(0) + 1/sqrt(N)*past(outer(g,phi))"),
    ("coupled_spikes", 'kind = "weights"\ntarget = "W"\nstart = 0', "W(0)"),
    ("coupled_spikes", 'kind = "covariance"\nnoises = ["u^{psi_0}", "u^xi"]', "sigma**2/alpha*c_1"),
    ("deep_linear", 'kind = "law"\ntarget = "xi^0"', "sqrt(D)/(N*gamma0)*W^0(0).T*g^1"),
    ("deep_linear", 'kind = "law"\ntarget = "h^2"', "1/sqrt(N)*W^1*h^1"),
    ("deep_linear", 'kind = "law"\ntarget = "g^1"', "1/sqrt(N)*W^1.T*g^2"),
    ("deep_linear", 'kind = "order_parameter"\nof = "R_Delta"', "-i*dot(Delta,hat(Delta))/P"),
    ("deep_linear", 'kind = "order_parameter"\nof = "C_h^2"', "dot(h^2,h^2)/N"),
    ("deep_linear", 'kind = "covariance"\nnoises = ["u_{zeta_2}", "r^0"]', "C^{g^1 psi_1}/(gamma0*nu)"),
    ("deep_linear", 'kind = "weights"\ntarget = "W^1"', "W^1(0) + eta*gamma0/sqrt(N)*past(outer(g^2,h^1))"),
    (
        "deep_linear",
        'kind = "projected"\nunknown = "C^{h^0 psi_0}"',
        "(z - R^{psi_1 zeta_1})*C^{h^0 psi_0} - 1/(gamma0*nu)*R_hr^0*C^{g^1 psi_1}"
        " - C_h^0*(eta*gamma0*C^{g^1 psi_1} + R^{psi_1 u^1}) - source_h^0",
    ),
    ("extensive_two_layer", 'kind = "site"\ntarget = "v^3"', "u_3 + gamma*R_22*v^1"),
    ("extensive_two_layer", 'kind = "order_parameter"\nof = "R_22"', "-i*dot(v^2,hat(v^2))/N"),
    ("extensive_two_layer", 'kind = "conjugate"\nof = "R_31"', "gamma/chi*R_04.T"),
    (
        "extensive_two_layer",
        'kind = "series"\nof = "i omega"\nin = "nu"\nset = "1/x"\norder = 0',
        "1/H - 1 - gamma**2/(1 + gamma**2/chi*H)",
    ),
]
WRONG = [  # index of a right claim, what is replaced, by what, what the verdict contains
    (0, "-i", "i", "R_h = -I/D"),
    (1, "+", "-", "value of M = M + "),
    (2, "dt*", "", "C_vh*v"),
    (3, "sqrt(N)", "sqrt(N_1)", "past(outer(g,phi))"),
    (5, "c_1", "c_0", "covariance of u^{psi_0} and u^xi = sigma**2/alpha*c_1"),
    (6, "*gamma0", "", "equation of xi^0 = 1/(gamma0*nu*sqrt(D))*W^0(0).T*g^1"),
    (7, "W^1*", "W^1.T*", "C_h^1*g^2"),
    (8, "g^2", "g^1", "W^1(0).T*g^2"),
    (9, "hat(Delta)", "hat(h^0)", "R_Delta = "),
    (11, "gamma0*nu", "nu", "= 1/(gamma0*nu)*C^{g^1 psi_1}"),
    (12, "g^2,h^1", "h^1,g^2", "past(outer(g^2,h^1))"),
    (13, "C_h^0*(eta*", "C_h^0*(", "coefficient of C_h^0*C^{g^1 psi_1}"),
    (14, "v^1", "v^3", "equation of v^3 on one site = u_3 + gamma*R_22*v^1"),
    (15, "hat(v^2)", "hat(v^1)", "R_22 = "),
    (16, ".T", "", "conjugate of R_31 = gamma/chi*R_04.T"),
    (17, "1/H", "-1/H", "at fixed H"),
]
SETTINGS = tuple(dict.fromkeys(setting for setting, _, _ in RIGHT))


@pytest.fixture(scope="module")
def records():
    return {name: derive_model(load_model(name)) for name in SETTINGS}


def verdict(tmp_path, records, setting, body, value):
    path = tmp_path / "claims.toml"
    layer = "layer = 0\n" if setting == "deep_linear" else ""
    head = f'model = "{setting}"\n{layer}notation = "paper"\n[[claim]]\nname = "it"\n'
    path.write_text(f'{head}{body}\nvalue = "{value}"\n', encoding="utf-8")
    file = load_claims(path)
    assert model_of(file).setting == setting
    return check_claims(file, records[setting])[0]


@pytest.mark.parametrize("setting, body, value", RIGHT)
def test_right_formulas_in_letters_are_proved(tmp_path, records, setting, body, value):
    told = verdict(tmp_path, records, setting, body, value)
    assert told.proved, told.detail


@pytest.mark.parametrize("index, part, other, words", WRONG)
def test_wrong_formulas_are_refuted_in_the_same_letters(tmp_path, records, index, part, other, words):
    setting, body, value = RIGHT[index]
    assert part in value
    told = verdict(tmp_path, records, setting, body, value.replace(part, other))
    assert told.refuted and words in told.detail, told.detail
    assert not re.search(r"\bpsi\d|\b[hgJ]\d|[CR]\[\w+,\w+\]", told.detail), told.detail


@pytest.mark.parametrize(
    "body, value, words",
    [
        ('kind = "law"\ntarget = "h^1"', "chi^1 + eta*gamma0*C_h^5*g^1", "C_h^5 is no symbol of this derivation"),
        ('kind = "law"\ntarget = "W^1"', "W^1", "W^1 are weights, not a field"),
        ('kind = "weights"\ntarget = "w"', "W^1", "they are W^0, W^1"),
        ('kind = "law"\ntarget = "h^1"', "chi^1 + deltas", "uses deltas, which has no meaning here"),
        ('kind = "law"\ntarget = "h^9"', "chi^1", "the fields are "),
        ('kind = "conjugate"\nof = "C_h^2"', "0", "C_h^2 is not an order parameter; they are C_Delta, C_v"),
    ],
)
def test_errors_name_what_was_typed(tmp_path, records, body, value, words):
    with pytest.raises(ClaimError) as raised:
        verdict(tmp_path, records, "deep_linear", body, value)
    assert words in str(raised.value)
