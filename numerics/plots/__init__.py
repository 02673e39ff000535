"""Figures of solutions, comparisons, spectra and sweeps."""
