"""The closure of each sector: exact where laws are linear, quadrature where averages are over few normals."""

from __future__ import annotations

import pytest
import sympy as sp

from derive import Eq, Model, field, gaussian, mean, normal, parameter, sectors, training_clock, whole_positive
from derive.pipeline import derive_model
from derive.records.method import ClosureKind

D, N = sectors("D", N=2)
T = parameter("T", default=3, domain=whole_positive)
t = training_clock("t", steps=T)
W = gaussian("W", N, D)
v = normal("v", D)
x, u, h = field("x", D, t), field("u", N, t), field("h", N, t)


@pytest.mark.parametrize(("law", "closure"), [(lambda y: 2 * y, "EXACT"), (sp.tanh, "QUADRATURE")])
def test_a_sector_is_integrated_only_where_its_law_is_not_linear(law, closure):
    equations = [Eq(x(0), v), Eq(x(t + 1), x(t) / 2 + v), Eq(u(t), W @ x(t) / sp.sqrt(D)), Eq(h(t), law(u(t)))]
    method = derive_model(Model((T,), equations, observe={"square": mean(h(t) ** 2)})).method
    closures = {str(one.sector): one.closure for one in method.sectors}
    assert closures == {"D": ClosureKind.EXACT, "N": ClosureKind[closure]}
