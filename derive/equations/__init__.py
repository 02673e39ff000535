"""From the equations of a declaration to one rule per field: what the first stage is made of."""
