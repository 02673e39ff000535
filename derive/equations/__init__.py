"""Equations of a declaration, decomposed into one rule per field: the parts of the first stage."""
