"""Sweeps that outgrow one process: units of work as plain data, who computes them, and the journal that keeps them."""
