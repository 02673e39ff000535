"""Checks of a solution that are independent of the way in which it was found."""
