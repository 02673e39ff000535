"""Samples of a declaration at finite size, and their comparison with the theory."""
