"""Intermediate representation of generated code: typed array programs, lowered from records, printed or evaluated
exactly."""
