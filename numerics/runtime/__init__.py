"""Runtime library of generated solvers. It imports only JAX and NumPy, so that a copy can be shipped with a solver."""
