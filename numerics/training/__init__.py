"""The training level: order parameters, exact or sampled, and how stable training is."""
