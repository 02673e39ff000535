"""Runtime of generated solvers: forward passes, eigenproblems, branch following, Monte Carlo, finite-size
simulation."""
