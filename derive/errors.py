"""What can go wrong, as sentences: every error names the place and what to try."""

from __future__ import annotations


class DeriveError(Exception):
    """An error the user can act on. `exit_code` is what the command line returns."""

    exit_code = 2


class DeclarationError(DeriveError):
    """The declared model is not a model the engine can derive."""


class ParameterError(DeriveError):
    """A parameter is unknown, has no value, or lies outside its domain."""


class ClaimError(DeriveError):
    """A claims file cannot be read as claims."""


class CheckpointError(DeriveError):
    """A checkpoint, or a file read beside it, cannot be used."""


class NumericalError(DeriveError):
    """A computation diverged, did not converge, or met a NaN."""

    exit_code = 3
