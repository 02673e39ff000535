"""Outliers: eigenproblems, their course in time, and the vectors that belong to them."""
