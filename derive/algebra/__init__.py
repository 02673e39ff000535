"""Algebra that SymPy lacks: the nodes of the derivation, words of matrices, fast polynomials, size scaling."""
