"""A page with sliders for a model, served on this machine."""
