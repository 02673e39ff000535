"""The training level: order parameters and observables, exact, by quadrature or sampled."""
