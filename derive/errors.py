"""What can go wrong, as sentences: every error names the place and what to try."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from derive.support.plain_words import as_python_names, one_sentence, plain_objects, printable
from derive.support.source_lines import Place, declaring_place


class DeriveError(Exception):
    """An error the user can act on: one printable line. `exit_code` is what the command line returns."""

    exit_code = 2

    def __init__(self, sentence: str = "") -> None:
        super().__init__(one_sentence(sentence))

    @property
    def on_the_command_line(self) -> str:
        """Return the sentence with its options as commands take them; `str` names them as Python does."""
        return str(self.args[0])

    def __str__(self) -> str:
        return as_python_names(str(self.args[0]))


class DeclarationError(DeriveError):
    """The declared model is not a model the engine can derive.

    `place` is the line of the declaration that is to blame, where it is known; it stands before the sentence.
    `told_for` is the exception of Python's own that the sentence tells in plain words, if it does: where a declaration
    has no slip it is a fault of the engine.
    """

    told_for: BaseException | None = None

    def __init__(self, sentence: str) -> None:
        sentence = plain_objects(sentence)
        super().__init__(sentence)
        self.sentence = sentence
        self.place = declaring_place()
        self.blamed = False

    def blame(self, place: Place) -> None:
        """Say which line is to blame, unless one that knew better has said so."""
        if not self.blamed:
            self.place, self.blamed = place, True

    def reword(self, in_words: Callable[[str], str]) -> None:
        """Write the sentence in other words."""
        self.sentence = in_words(self.sentence)
        self.args = (self.sentence,)

    @property
    def on_the_command_line(self) -> str:
        return str(self)

    def __str__(self) -> str:
        said = one_sentence(self.sentence)
        return said if self.place is None else f"{printable(self.place.before(self.sentence))}: {said}"


class NotANumber(DeclarationError, TypeError):
    """A symbol stands where Python asks for a number. SymPy knows a TypeError as the answer to such a question."""


class NotAMatrix(DeclarationError, AttributeError):
    """An expression is asked for what only a matrix or an array has."""


class NotPickled(DeclarationError, TypeError):
    """A part of a declaration is to be pickled. Python knows a TypeError as the answer."""


class SizeError(DeclarationError):
    """A term grows or vanishes with the size of the system."""


class Placed(Protocol):
    """A part of a declaration that knows where it was written."""

    @property
    def place(self) -> Place | None: ...


@contextmanager
def blaming(part: Placed | None) -> Iterator[None]:
    """Declaration errors raised here are put down to this part of the declaration."""
    try:
        yield
    except DeclarationError as error:
        if part is not None and part.place is not None:
            error.blame(part.place)
        raise


@contextmanager
def wording(in_words: Callable[[], Callable[[str], str]]) -> Iterator[None]:
    """Declaration errors raised here are written in the words that this gives when it is asked."""
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
    """A checkpoint, or a file read beside it, cannot be used."""


class NumericalError(DeriveError):
    """A computation diverged, did not converge, or met a NaN."""

    exit_code = 3


class InternalError(DeriveError):
    """A check of the engine on its own work failed: no result is given."""

    exit_code = 3
