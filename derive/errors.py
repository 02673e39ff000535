"""Errors of the package; every message names the place and suggests what to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from derive.support.plain_words import as_python_names, one_sentence, plain_objects, printable
from derive.support.source_lines import Place, declaring_place


class DeriveError(Exception):
    """An error that the user can act on, with a printable one-line message. `exit_code` is the exit code of the command
    line."""

    exit_code = 2

    def __init__(self, sentence: str = "") -> None:
        super().__init__(one_sentence(sentence))

    @property
    def on_the_command_line(self) -> str:
        """Return the message with options in the spelling of commands; `str` uses that of Python."""
        return str(self.args[0])

    def __str__(self) -> str:
        return as_python_names(str(self.args[0]))


class DeclarationError(DeriveError):
    """The declared model cannot be derived.

    `place` is the faulty line of the declaration, if known; it precedes the message. `told_for` is the Python exception
    that the message explains, if any. If the declaration contains no mistake, that exception indicates a bug in the
    engine.
    """

    told_for: BaseException | None = None

    def __init__(self, sentence: str) -> None:
        sentence = plain_objects(sentence)
        super().__init__(sentence)
        self.sentence = sentence
        self.place = declaring_place()
        self.blamed = False

    def blame(self, place: Place) -> None:
        """Attach the faulty line, unless a more specific one is attached already."""
        if not self.blamed:
            self.place, self.blamed = place, True

    def reword(self, in_words: Callable[[str], str]) -> None:
        """Replace the message."""
        self.sentence = in_words(self.sentence)
        self.args = (self.sentence,)

    @property
    def on_the_command_line(self) -> str:
        return str(self)

    def __str__(self) -> str:
        said = one_sentence(self.sentence)
        return said if self.place is None else f"{printable(self.place.before(self.sentence))}: {said}"


class NotANumber(DeclarationError, TypeError):
    """A symbol is used where Python expects a number. It is a TypeError because SymPy expects one."""


class NotAMatrix(DeclarationError, AttributeError):
    """An expression is used where only a matrix or an array is allowed."""


class NotPickled(DeclarationError, TypeError):
    """Part of a declaration cannot be pickled. It is a TypeError because Python expects one."""


class SizeError(DeclarationError):
    """A term grows or vanishes with the size of the system."""


class Placed(Protocol):
    """A part of a declaration that records where it was written."""

    @property
    def place(self) -> Place | None: ...


@contextmanager
def blaming(part: Placed | None) -> Iterator[None]:
    """Attribute declaration errors raised in this context to this part of the declaration."""
    try:
        yield
    except DeclarationError as error:
        if part is not None and part.place is not None:
            error.blame(part.place)
        raise


@contextmanager
def wording(in_words: Callable[[], Callable[[str], str]]) -> Iterator[None]:
    """Reword declaration errors raised in this context with the function that this callback returns."""
    try:
        yield
    except DeclarationError as error:
        error.reword(in_words())
        raise


class ParameterError(DeriveError):
    """A parameter is unknown, has no value, or lies outside its domain."""


class ClaimError(DeriveError):
    """A claims file cannot be read as claims."""


class CheckpointError(DeriveError):
    """A checkpoint, or a file read together with it, cannot be used."""


class NumericalError(DeriveError):
    """A computation diverged, did not converge, or met a NaN."""

    exit_code = 3


class InternalError(DeriveError):
    """A consistency check of the engine failed, so no result is given."""

    exit_code = 3
