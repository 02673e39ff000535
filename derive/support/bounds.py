"""Limits on size, depth, count and time of input files, which readers check before they allocate memory.

The page `files` of the manual contains the same table.
"""

from __future__ import annotations

from dataclasses import dataclass

MB, GB = 10**6, 10**9


@dataclass(frozen=True)
class Bound:
    """The largest value that a reader accepts; reader: the kind of file; of: the quantity."""

    reader: str
    of: str
    most: int
    unit: str

    def __str__(self) -> str:
        if self.unit != "bytes":
            return f"{self.most:,} {self.unit}".strip()
        size, name = next((size, name) for size, name in ((GB, "GB"), (MB, "MB"), (1, "bytes")) if self.most >= size)
        return f"{self.most // size} {name}"


DECLARATION_SIZE = Bound("declaration (.py)", "size", MB, "bytes")
CLAIMS_SIZE = Bound("claims (.toml)", "size", MB, "bytes")
CLAIMS_DEPTH = Bound("claims (.toml)", "nesting of tables and lists", 16, "")
CLAIMS_COUNT = Bound("claims (.toml)", "claims", 1000, "")
FORMULA_LENGTH = Bound("claims (.toml)", "a formula", 4000, "characters")
FORMULA_NODES = Bound("claims (.toml)", "a formula with its definitions expanded", 20_000, "operations")
NUMBER_DIGITS = Bound("claims (.toml)", "a number", 300, "digits")
EXPONENT = Bound("claims (.toml)", "the argument of exp, where it is evaluated", 100_000, "")
CLAIM_TIME = Bound("claims (.toml)", "deciding one claim", 300, "seconds of processor time")
VISITING = Bound("claims (.toml)", "visiting the cells of a region", 20, "seconds of processor time")
JOURNAL_SIZE = Bound("journal of a sweep", "size", 4 * GB, "bytes")
JOURNAL_LINE = Bound("journal of a sweep", "a line", GB, "bytes")
RESULT_SIZE = Bound("saved result (.nc, .zarr)", "size", 64 * GB, "bytes")
RESULT_FILES = Bound("saved result (.nc, .zarr)", "files of a directory", 100_000, "")
RECORD_DEPTH = Bound("journal, saved result, theory (.json)", "nesting of objects and lists", 64, "")
THEORY_SIZE = Bound("theory (.json)", "size", 100 * MB, "bytes")
ARCHIVE_SIZE = Bound("checkpoint and data (.npz, .safetensors, PyTorch)", "size", 1000 * GB, "bytes")
ARCHIVE_HEADER = Bound("checkpoint and data (.npz, .safetensors, PyTorch)", "a list of arrays", 100 * MB, "bytes")
ARCHIVE_COUNT = Bound("checkpoint and data (.npz, .safetensors, PyTorch)", "arrays", 100_000, "")
ARRAY_SIZE = Bound("checkpoint and data (.npz, .safetensors, PyTorch)", "an array", 16 * GB, "bytes")
ARRAY_EXPANSION = Bound("checkpoint and data (.npz, .safetensors, PyTorch)", "expansion of an array", 100, "times")
ARRAY_FREE_SIZE = Bound(
    "checkpoint and data (.npz, .safetensors, PyTorch)", "an array that may expand further", 256 * MB, "bytes"
)
ALIGNMENTS = Bound("directions (--align)", "directions", 64, "")
ALIGNMENT_LENGTH = Bound("directions (--align)", "a direction", 200, "characters")
KEPT_SIZE = Bound("cache", "a file", GB, "bytes")
SENTENCE = Bound("every file", "the error message", 300, "characters")
INTERRUPT_TIME = Bound("every command", "from Ctrl-C to exit", 2, "seconds")

BOUNDS = tuple(value for value in vars().values() if isinstance(value, Bound))


def table() -> str:
    """Return all bounds as a table of the manual."""
    rows = [f"| {bound.reader} | {bound.of} | {bound} |" for bound in BOUNDS]
    return "\n".join(["| file | what | at most |", "| --- | --- | --- |", *rows])
