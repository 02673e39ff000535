"""Spectra of trained matrices: bulk laws fitted to them, and what the theory says of them."""
