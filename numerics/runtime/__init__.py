"""What every generated solver shares. It knows JAX and NumPy only, so that a copy of it can stand beside a solver."""
