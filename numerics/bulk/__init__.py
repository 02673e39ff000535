"""The bulk: its physical branch, support, density, edges and moments."""
