"""Compilation of a solver for a GPU that need not be there, and what the compiled programs consist of."""
