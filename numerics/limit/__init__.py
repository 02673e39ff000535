"""Linear training after arbitrarily many steps: stationary limits, linear recursions and exact stability."""
