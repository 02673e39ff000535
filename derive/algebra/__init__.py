"""Algebra that SymPy lacks: nodes of the derivation, words of matrices, fast polynomials, powers of sizes."""
