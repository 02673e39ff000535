"""Puiseux series of edges, outliers and thresholds in a small parameter."""
