"""The declaration language: what a theorist writes, and nothing of what follows from it."""

from derive.language import foreign as foreign  # its answers hold wherever the language is used
