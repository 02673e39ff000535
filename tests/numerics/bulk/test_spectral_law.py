"""A spectral law: atoms, moments, and the resolvent at any scale."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from numerics.bulk import density
from numerics.bulk.law import DensityPanel, DensityPiece, Panelled, SpectralLaw
from numerics.bulk.support import _with_tips


def test_a_law_that_is_moved_has_its_atoms_moved():
    atoms = SpectralLaw(((0.0, 0.0),), ((-1.0, 0.25), (2.0, 0.75)), Panelled((), (0.5,)), 0.0)
    moved = atoms.moved(3.0)
    assert moved.transform(5j + 3) == pytest.approx(atoms.transform(5j))
    assert moved.moment(1) == pytest.approx(atoms.moment(1) + 3) and moved.panels.zeros == (3.5,)


def test_a_resolvent_that_a_curve_gives_to_nine_digits_is_found_again_at_any_scale(monkeypatch):
    """Of the matrix times 1e6 the resolvent is a millionth, and so is the error that is allowed."""
    monkeypatch.setattr(density.Curve, "of", lambda law, own: True)
    monkeypatch.setattr(density, "_on_curve", lambda *_: (np.array([1e-6 + 0j]), np.array([1e-15])))
    branch = SimpleNamespace(
        law=None,
        own=None,
        eliminated=True,
        resolvent_index=0,
        start=SimpleNamespace(height=1e7),
        certain=lambda z, tell, what: (np.full((len(z), 1), 2e-6 + 0j), np.zeros(len(z))),
    )
    assert density.resolvent_at(branch, np.array([1.0]))[0] == pytest.approx([2e-6])


@pytest.mark.parametrize(("tip", "total"), [(0.1, 1.0), (0.15, 1.0), (0.05, 0.93), (0.3, 1.18)])
def test_tips_have_the_mass_that_is_left_where_their_own_is_off_by_less_than_half(tip: float, total: float):
    """Panels have 0.78 and an atom 0.1 of the mass, so that 0.12 is left."""
    flat, end = (
        DensityPanel(DensityPiece(low, low + 1, 1, 1), 0.0, 1.0, np.array([mass]), 0.0)
        for low, mass in ((0.0, 0.78), (1.0, tip))
    )
    assert _with_tips(Panelled((flat,), ()), [end], 0.1).mass == pytest.approx(total - 0.1)
