"""Sweeps beyond one process: units of work as plain data, workers, and the journal."""
