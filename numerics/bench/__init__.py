"""Measurements of speed, as ratios measured side by side."""
