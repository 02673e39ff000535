"""Exact decisions for whole regions of the parameters.

What is asked of a spectrum (which root is an edge, whether an outlier exists, which branch is physical) changes only
where one of a few polynomials in the parameters vanishes. `decomposition` finds one rational point in each cell between
their zeros; `branch` and `spectrum` decide the question there with certified arithmetic.
"""
