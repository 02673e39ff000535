"""Linear training after arbitrarily many steps: stationary limits, recursions and exact stability."""
