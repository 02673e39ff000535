"""Compilation of a solver for a GPU, which need not be present, and statistics of the compiled programs."""
