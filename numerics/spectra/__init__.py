"""Spectra of trained matrices: fitted bulk laws, outliers, and comparison with the theory."""
