"""Claims about what is shown before A(z): right ones are proved, subtly wrong ones refuted."""

from __future__ import annotations

import pytest

from derive.claims import check_claims, load_claims
from derive.errors import ClaimError
from derive.inputs.loading import load_model
from derive.pipeline import derive_model
from derive.printing import latex_of_record, text_of_record

AVERAGE = (
    "-sigma**2*(C[phi,phi]*dot(hat(chi),hat(chi))/2 + C[psi0,psi0]*dot(hat(W0_psi0),hat(W0_psi0))/2"
    " + N0/N1*(C[g,g]*dot(hat(xi),hat(xi)) + C[psi1,psi1]*dot(hat(W0T_psi1),hat(W0T_psi1)))/2"
    " + C[phi,psi0]*dot(hat(chi),hat(W0_psi0)) + N0/N1*C[g,psi1]*dot(hat(xi),hat(W0T_psi1))"
    " - N0*(R[phi,xi]*R[g,chi].T + R[psi0,W0T_psi1]*R[psi1,W0_psi0].T"
    " + R[psi0,xi]*R[g,W0_psi0].T + R[psi1,chi]*R[phi,W0T_psi1].T))"
)
SOURCE = (
    "(outer(hat(W0_psi0),psi0) + outer(hat(chi),phi))/sqrt(N0)"
    " + sqrt(N0)/N1*(outer(psi1,hat(W0T_psi1)) + outer(g,hat(xi)))"
)
PROJECTED = (
    "(dtau - sigma**2*R_psi1_W0_psi0)*C_psi0_phi - (sigma**2/alpha*R[phi,xi] + C[phi,phi])*C_psi1_g"
    " - sigma**2*C[phi,phi]*R_psi1_chi - source_phi"
)
ORDER_ONE = 'of = "z"\nin = "nu"\nset = "1/x"\norder = 1\ndefine = { H = "-G", D = "1 - gamma**2/chi*G" }'
SITE = "u[W0T_psi1] + sigma**2*R[psi1,W0_psi0]*psi0 + sigma**2*R[psi1,chi]*phi + C[psi1,g]*phi + j"
PRODUCTS = (
    "sigma**2*(R[phi,xi]*R[g,chi].T + R[psi0,W0T_psi1]*R[psi1,W0_psi0].T"
    " + R[psi0,xi]*R[g,W0_psi0].T + R[psi1,chi]*R[phi,W0T_psi1].T)"
)
SYMMETRIC = "R[v,M0_v]*R[v,M0_v].T/2 + R[psi0,M0_psi0]*R[psi0,M0_psi0].T/2 + R[psi0,M0_v]*R[v,M0_psi0].T"
MEMORY = "1/nu*R[psi0,W0T_psi1]*psi1 + gamma*R[psi2,AT_psi1]*psi1"
RIGHT = [
    ("coupled_spikes", 'kind = "average"\nmatrix = "W0"', AVERAGE),
    ("coupled_spikes", 'kind = "source"\nmatrix = "W0"', SOURCE),
    ("coupled_spikes", 'kind = "order_parameter"\nof = "R[psi1,chi]"', "-i/N1*dot(psi1,hat(chi))"),
    ("coupled_spikes", 'kind = "order_parameter"\nof = "C[phi,psi0]"', "1/N0*dot(psi0,phi)"),
    ("coupled_spikes", 'kind = "conjugate"\nof = "R[phi,xi]"', "sigma**2*R[g,chi].T"),
    ("coupled_spikes", 'kind = "conjugate"\nof = "R[psi1,chi]"', "0"),
    ("coupled_spikes", 'kind = "conjugate"\nof = "C[g,g]"', "0"),
    ("coupled_spikes", 'kind = "projected"\nunknown = "C_psi0_phi"', PROJECTED),
    ("coupled_spikes", 'kind = "law"\ntarget = "psi0"', "W0T_psi1 + j + C[psi1,g]*phi"),
    ("coupled_spikes", 'kind = "law"\ntarget = "xi"', "sqrt(N0)/N1*W0.T*g"),
    ("coupled_spikes", 'kind = "law"\nlag = 1\ntarget = "g"', "theta*b + kappa*theta*past(chi)"),
    ("wide_network", 'kind = "law"\ntarget = "g1"', "z1*(1 - tanh(h1)**2)"),
    ("anti_hebbian", 'kind = "law"\nshift = 1\nlag = 1\ntarget = "v"', "v - dt*M0_v - dt**2*gamma0*C[v,v]*v"),
    ("extensive_two_layer", f'kind = "series"\n{ORDER_ONE}', "-H*(1 + gamma**2/D)*(1 + gamma**2/D**2)"),
    ("extensive_two_layer", f'kind = "series"\n{ORDER_ONE.replace("z", "R_psi1_W0_psi0")}', "-H*(1 + gamma**2/D)"),
    ("coupled_spikes", 'kind = "law"\ntarget = "psi1"', "1/sqrt(N0)*W0*psi0 + C[psi0,phi]*g"),
    ("coupled_spikes", 'kind = "site"\nlag = 1\ntarget = "chi"', "u[chi] + sigma**2/alpha*R[phi,xi]*g"),
    ("coupled_spikes", 'kind = "site"\ntarget = "psi0"', SITE),
    ("extensive_two_layer", 'kind = "kernel"\ntarget = "psi1"', MEMORY),
    ("extensive_two_layer", 'kind = "covariance"\nnoises = ["psi1", "psi1"]', "C[psi0,psi0] + gamma**2*C[psi2,psi2]"),
    ("extensive_two_layer", 'kind = "equation"', "G*(z - R[psi1,W0_psi0] - R[psi3,B_psi0]*chi/nu) - 1"),
    ("spiked_wigner", 'kind = "order_parameter"\nof = "C[v,psi0]"', "1/D*dot(v,psi0)"),
    ("coupled_spikes", 'kind = "effective_action"', PRODUCTS),
    ("anti_hebbian", 'kind = "effective_action"', SYMMETRIC),
    ("coupled_spikes", 'kind = "conjugate"\nof = "R[g,W0_psi0]"', "sigma**2/alpha*R[psi0,xi].T"),
]
WRONG = [  # index of a right claim, what is replaced, by what
    (0, "R[phi,xi]*R[g,chi].T", "R[phi,xi]*R[g,chi]"),
    (0, "N0/N1*C[g,psi1]", "N0/N1/2*C[g,psi1]"),
    (0, " + C[phi,psi0]*dot(hat(chi),hat(W0_psi0))", ""),
    (0, "- N0*(R[phi", "+ N0*(R[phi"),
    (1, "sqrt(N0)/N1", "1/sqrt(N1)"),
    (1, "outer(g,hat(xi))", "outer(hat(xi),g)"),
    (2, "-i/N1", "i/N1"),
    (2, "N1", "N0"),
    (3, "psi0,phi", "phi,phi"),
    (4, ".T", ""),
    (4, "sigma**2", "sigma**2/alpha"),
    (5, "0", "sigma**2*R[g,chi]"),
    (6, "0", "sigma**2/alpha*C[g,g]"),
    (7, "sigma**2/alpha*R[phi,xi]", "sigma**2/alpha*R[phi,xi].T"),
    (7, " - source_phi", ""),
    (7, "C[phi,phi])*C_psi1_g", "C[phi,phi])*R_psi1_chi"),
    (8, "C[psi1,g]*phi", "C[psi0,phi]*phi"),
    (8, " + j", ""),
    (9, "W0.T", "W0"),
    (9, "sqrt(N0)/N1", "1/sqrt(N0)"),
    (10, "past(chi)", "chi"),
    (11, "**2", ""),
    (12, "- dt*M0_v", "+ dt*M0_v"),
    (12, "dt**2", "dt"),
    (13, "D**2)", "D)"),
    (14, "1 + gamma**2/D", "1 + gamma**2"),
    (15, "W0*psi0", "W0.T*psi0"),
    (15, "1/sqrt(N0)", "sqrt(N0)/N1"),
    (16, "/alpha", ""),
    (16, "u[chi]", "u[xi]"),
    (17, "C[psi1,g]*phi", "sigma*C[psi1,g]*phi"),
    (17, " + j", ""),
    (18, "gamma*R[psi2", "gamma**2*R[psi2"),
    (19, "gamma**2", "gamma"),
    (20, "*chi/nu", ""),
    (21, "1/D", "1/D**2"),
    (22, "R[g,chi].T +", "R[g,chi] +"),
    (22, " + R[psi0,xi]*R[g,W0_psi0].T", ""),
    (22, "sigma**2*", "sigma**2/2*"),
    (23, "R[psi0,M0_psi0].T/2", "R[psi0,M0_psi0].T"),
    (24, "/alpha", ""),
]
SETTINGS = tuple(dict.fromkeys(setting for setting, _, _ in RIGHT))


@pytest.fixture(scope="module")
def records():
    return {name: derive_model(load_model(name)) for name in SETTINGS}


def verdict(tmp_path, records, setting, body, value):
    path = tmp_path / "claims.toml"
    path.write_text(f'model = "{setting}"\n[[claim]]\nname = "it"\n{body}\nvalue = "{value}"\n', encoding="utf-8")
    return check_claims(load_claims(path), records[setting])[0]


@pytest.mark.parametrize("setting, body, value", RIGHT)
def test_right_formulas_are_proved(tmp_path, records, setting, body, value):
    told = verdict(tmp_path, records, setting, body, value)
    assert told.proved, told.detail


@pytest.mark.parametrize("index, part, other", WRONG)
def test_a_small_change_is_refuted(tmp_path, records, index, part, other):
    setting, body, value = RIGHT[index]
    assert part in value
    told = verdict(tmp_path, records, setting, body, value.replace(part, other))
    assert told.refuted, told.detail


def test_the_time_of_an_equation_counts(tmp_path, records):
    value = RIGHT[12][2]
    assert verdict(tmp_path, records, "anti_hebbian", 'kind = "law"\ntarget = "v"', value).refuted
    body = 'kind = "law"\nshift = 1\nlag = 0\ntarget = "v"'
    assert verdict(tmp_path, records, "anti_hebbian", body, value).refuted


@pytest.mark.parametrize(
    "body, value, words",
    [
        ('kind = "order_parameter"\nof = "C[phi,phi]"', "C[phi,phi]", "write it with dot and hat"),
        ('kind = "conjugate"\nof = "R[phi,chi]"', "0", "not an order parameter"),
        ('kind = "source"\nmatrix = "V"', "0", "no random matrix V"),
        ('kind = "law"\ntarget = "a"', "0", "has no equation"),
        ('kind = "average"\nmatrix = "W0"', "dot(phi, phi + g)", "where a field or hat(field) is needed"),
        ('kind = "projected"\nunknown = "C_psi0_phi"\ntimes = "0"', "0", "not known to differ from 0"),
    ],
)
def test_what_is_not_a_claim_is_refused(tmp_path, records, body, value, words):
    with pytest.raises(ClaimError, match=words.replace("(", r"\(").replace(")", r"\)")):
        verdict(tmp_path, records, "coupled_spikes", body, value)


def test_conjugates_are_shown_and_those_that_vanish_are_a_result(records):
    lines = text_of_record(records["coupled_spikes"].first.record("conjugates")).splitlines()
    shown = [line.strip() for line in lines]
    assert "R[phi,xi](t,s) = -(i/N0) (phi(t) . hat xi(s))" in shown
    assert "hat R[phi,xi](t,s) = sigma^2 R[g,chi](s,t)" in shown
    assert "hat R[psi1,chi](tau,s) = 0" in shown and "hat C[g,g](t,s) = 0" in shown
    assert "hat C[g,g](t,s) = -(sigma^2/(2 alpha^2)) <hat xi(t) hat xi(s)>" in shown
    assert "int d chi(t) d g(t) delta(their equations) = 1" in shown
    assert r"\hat{\chi}" in latex_of_record(records["coupled_spikes"].conjugates)


def test_the_effective_action_and_the_exponents_of_the_sites_are_shown(records):
    lines = text_of_record(records["coupled_spikes"].first.record("conjugates")).splitlines()
    shown = [line.strip() for line in lines]
    assert "-alpha hat C[g,g](t,s) C[g,g](t,s)" in shown
    assert "sigma^2 R[g,chi](s,t) R[phi,xi](t,s)" in shown and "alpha log(Z_N1)" in shown
    assert "-(sigma^2/2) C[phi,phi](t,s) (hat chi(t) . hat chi(s))" in shown
    assert "-sigma^2 C[psi0,phi](tau,t) (hat chi(t) . hat (W0 psi0)(tau))" in shown, "each pair once, without 1/2"
    assert "-i hat R[phi,xi](t,s) (phi(t) . hat xi(s))" in shown
    assert "hat R[g, W0 psi0](t,tau) = sigma^2 R[psi0,xi](tau,t)/alpha" in shown, "the response itself vanishes"
