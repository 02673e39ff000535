"""The declaration language: what a theorist writes, and nothing of what follows from it."""
