"""Runtime library of generated solvers. It imports JAX and NumPy only, so that a copy can be shipped with a solver."""
