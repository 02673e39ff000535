"""Gaps of a bulk."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from numerics.bulk import edges
from numerics.bulk.folds import End


def test_gaps_are_found_where_the_density_vanishes(monkeypatch):
    """A bulk in (-2, -1) and (1, 2), whose branch is followed to the next of these ends."""
    ends = np.array([-2.0, -1.0, 1.0, 2.0])

    def march(branch, z, r, upward):
        return End(float(np.min(ends[ends > z]) if upward else np.max(ends[ends < z])), "fold")

    def certain(z, tell, what):
        return (((np.abs(z) > 1) & (np.abs(z) < 2)) * 1j)[:, None], np.zeros(z.size)

    monkeypatch.setattr(edges, "march", march)
    branch = SimpleNamespace(
        start=SimpleNamespace(height=1.0),
        followed=lambda z: (np.zeros((2, 1)), None),
        certain=certain,
        by_factors=False,
        resolvent_index=0,
    )
    intervals, empty = edges.support_from_branch(branch)
    assert intervals == [(-2.0, -1.0), (1.0, 2.0)] and np.all(np.abs(empty) <= 1) and empty.size


def test_branch_points_beside_the_axis_are_told_from_edges(monkeypatch):
    """Of a pair of complex branch points one is listed, if it is nearer to the axis than a thousandth of its distance
    to the next edge."""
    points = [-1 + 0j, 2 + 0j, 0.5 + 1e-4j, 0.5 - 1e-4j, 0.7 + 0.1j, 1.999 + 1e-4j]
    monkeypatch.setattr(edges, "singular_points", lambda law, own: points)
    branch = SimpleNamespace(law=None, own=None, eliminated=True)
    assert edges.edge_candidates(branch).tolist() == [-1, 2]
    assert edges.nearly_edges(branch).tolist() == [0.5]
    monkeypatch.setattr(edges, "singular_points", lambda law, own: [0.5 + 1e-4j])
    assert not edges.nearly_edges(branch).size


def test_the_weight_of_a_point_mass_is_the_nearest_residue_of_the_curve(monkeypatch):
    """G = w / z with w = 0.2503 by continuation; the curve has poles with residues 1/4 and 3/4 there."""
    monkeypatch.setattr(edges, "resolvent_at", lambda branch, z: (0.2503 / z, np.zeros(2)))
    curve = SimpleNamespace(residues=lambda x: np.array([0.75, 0.25]))
    monkeypatch.setattr(edges.Curve, "of", lambda law, own: curve)
    branch = SimpleNamespace(start=SimpleNamespace(height=3.0), law=None, own=None, eliminated=True, by_factors=False)
    assert edges.atom_at(branch, 0.0, [(1.0, 2.0)]) == 0.25
