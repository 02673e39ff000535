"""Benchmarks, as ratios of CPU times measured side by side."""
