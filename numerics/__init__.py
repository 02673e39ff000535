"""Runs what is generated: forward passes, eigenproblems, branch following, Monte Carlo, finite-size simulation."""
