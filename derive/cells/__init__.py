"""Exact decisions for whole regions of the parameters, by cylindrical algebraic decomposition.

A selection (which root is an edge, whether an outlier exists, which branch is physical) changes only where one of a few
polynomials in the parameters vanishes. `decomposition` finds a rational sample point in each cell between their zeros;
`branch` and `spectrum` decide the selection there in ball arithmetic.
"""
