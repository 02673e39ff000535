"""The fields that the resolvent of a probed matrix is made of."""

from __future__ import annotations

from derive import Model, goe, sectors, spectrum
from derive.stages.expand import expand_declaration

D = sectors("D")
A, B, C = (goe(name, D) for name in "ABC")


def spectral_fields(matrix) -> int:
    """How many vectors the resolvent of a matrix is made of."""
    return len(expand_declaration(Model((), [], probe=spectrum(matrix))).probes[0].fields)


def test_only_multiples_of_one_matrix_share_the_vector_that_they_make():
    """(A + B)^2 takes psi, (A + B) psi, and A and B times either; another sum of the same first term takes its own."""
    assert spectral_fields((A + B) @ (A + B)) == spectral_fields(3 * (A + B) @ (A + B)) == 6
    assert spectral_fields((A + B) @ (A + B) + 2 * (A + B) @ (A + B)) == 6
    assert spectral_fields((A + B) @ (A + B) + (A + C) @ (A + C)) == 10
