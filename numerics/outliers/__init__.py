"""Outliers: eigenproblems, paths in training time, and eigenvectors."""
