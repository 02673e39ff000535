"""Support for all numerical packages: compilation, precision, threads, memory, progress, bias correction."""
