"""Support for every numerical part: compilation, precision, threads, memory, progress, replicates."""
