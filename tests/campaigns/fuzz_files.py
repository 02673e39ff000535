"""Mutate valid files of every format that is read: each is read as it was, or refused in one printable sentence.

    python tests/campaigns/fuzz_files.py --count 20000 --seed 1

A format with a digest or a checksum never gives another value. One without (safetensors, claims) may, but never a
traceback. Files whose digest was made anew after the change stand for hostile ones: they may say what they like, and
must not break the reader.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import random
import shutil
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import derive
from derive.api.theory_files import read_solutions, theory_of
from derive.claims.formulas import Reader
from derive.claims.reading import load_claims
from derive.errors import CheckpointError, DeriveError
from derive.inputs.checkpoints import load, read_checkpoint
from derive.inputs.data_files import _archive
from derive.results.saving import NUMBERS, SKELETON, Pool
from derive.results.sealing import sealed_files
from derive.support.guarded import digest, with_digest
from derive.support.places import KeptFiles
from derive.sweeps.journal import opened, write_merged
from derive.sweeps.units import read

LONGEST = 10.0
"""Seconds that no reader needs for any of these files."""
ABOUT = {"declaration": "d", "parameters": {"nu": [1, 2]}, "options": {"seed": 0}, "versions": {"jax": "1"}}
ARRAYS = {"fc.weight": np.arange(12.0).reshape(3, 4), "b": np.arange(5, dtype=np.int32), "h.0": np.ones((2, 2), "f4")}
CLAIMS = """model = "spiked_wigner"
[define]
a = "gamma0 + 1/gamma0"
b = "a*exp(gamma0) + sqrt(a)"
[[claim]]
name = "outlier"
kind = "outlier"
value = "b - 12*a**2"
region = "gamma0 > 1"
[[claim]]
name = "edges"
kind = "edges"
value = ["-2", "2"]
"""


@dataclass(frozen=True)
class Format:
    """A valid file, how it is read, and what a reader may say of one that was changed.

    same: whether a value that was read from a changed file is that of the original. forge: a new digest for a content.
    """

    name: str
    make: Callable[[Path], None]
    read: Callable[[Path], Any]
    same: Callable[[Any, Any], bool] | None
    forge: Callable[[bytes], bytes] | None = None


def equal(found: Any, original: Any) -> bool:
    return bool(found == original)


def part_of(found: dict[str, Any], original: dict[str, Any]) -> bool:
    """What is missing is told elsewhere: units of a journal are computed again, damaged arrays are listed."""
    return all(name in original and np.array_equal(part, original[name]) for name, part in found.items())


def plain(result: Any) -> Any:
    str(result)
    pool = Pool()
    return json.dumps(pool.encoded(result)), pool.numbers().tobytes()


def units_of(path: Path) -> dict[str, str]:
    done = opened(path, ABOUT, write=False).done
    for line in done.values():
        with suppress(ValueError):  # told with the line by those who ask for a result
            read(line)
    return done


def arrays_of(path: Path) -> dict[str, np.ndarray]:
    found = {}
    for entry in read_checkpoint(path):
        try:
            found[entry.name] = load(path, entry)
        except CheckpointError as error:
            check_sentence(str(error))
    return found


def formulas_of(path: Path) -> Any:
    import sympy as sp

    file = load_claims(path)
    for claim in file.claims:
        reader = Reader("here", {"gamma0": sp.Symbol("gamma0", positive=True)}, define=dict(claim.define))
        for value in claim.get("value") if isinstance(claim.get("value"), tuple) else (claim.get("value"),):
            if isinstance(value, str):
                reader.scalar(value)
    return file.claims


def write_safetensors(path: Path) -> None:
    header, buffer = {}, b""
    for name, array in ARRAYS.items():
        raw = array.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(buffer), len(buffer) + len(raw)],
        }
        buffer += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + buffer)


def write_lzma(path: Path) -> None:
    np.savez(path, **ARRAYS)
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in contents.items():
            archive.writestr(name, content)


def write_journal(path: Path) -> None:
    pool = Pool()
    found = pool.encoded([{"setting": "s", "numbers": np.array([2.5, 3.147]), "error": None}])
    numbers = base64.b64encode(pool.numbers().tobytes()).decode()
    line = json.dumps({"results": found, "numbers": numbers}, separators=(",", ":"))
    write_merged(path, ABOUT, {"solve 000000": line, "solve 000016": line, "simulate 1": '{"error":"diverged"}'})


def forged_journal(content: bytes) -> bytes:
    """Each line with the digest of what it now says."""
    lines = []
    for line in content.split(b"\n")[:-1]:
        start = line.split(b',"digest":"')[0]
        lines.append(start + b',"digest":"' + digest(start).encode() + b'"}\n')
    return b"".join(lines)


def forged_theory(content: bytes) -> bytes:
    try:
        data = json.loads(content)
        data.pop("digest", None)
        return json.dumps(with_digest(data)).encode()
    except (ValueError, AttributeError, RecursionError):
        return content


def write_theory(path: Path) -> None:
    path.write_text(json.dumps(with_digest({"setting": "s", "bulk_edges": [[0.0, 4.0]], "outliers": [6.25]}), indent=2))


def formats(place: Path) -> list[Format]:
    """Every format that this project reads back."""
    solution = derive.load("spiked_wigner").solve(gamma0=2)
    solution.save(place / "whole.nc")
    solution.save(place / "whole.zarr")
    kept = KeptFiles(place / "kept")
    kept.write("bulk", "question", b"answer")

    def kept_again(path: Path) -> Any:
        (file,) = (place / "kept" / "bulk").iterdir()
        shutil.copy(path, file)
        return KeptFiles(place / "kept").read("bulk", "question")

    def write_kept(path: Path) -> None:
        (file,) = (place / "kept" / "bulk").iterdir()
        shutil.copy(file, path)

    return [
        Format("a.journal", write_journal, units_of, part_of, forged_journal),
        Format("a.nc", lambda path: shutil.copy(place / "whole.nc", path), lambda p: plain(derive.open(p)), equal),
        Format("a.npz", lambda path: np.savez(path, **ARRAYS), arrays_of, part_of),
        Format("small.npz", lambda path: np.savez_compressed(path, **ARRAYS), arrays_of, part_of),
        Format("lzma.npz", write_lzma, arrays_of, part_of),
        Format(
            "data.npz",
            lambda path: np.savez(path, **ARRAYS),
            lambda p: _archive(str(p), {"b", "h.0"}, "b, h.0"),
            part_of,
        ),
        Format("a.safetensors", write_safetensors, arrays_of, None),
        Format("a.json", write_theory, lambda p: theory_of(read_solutions(p), p), equal, forged_theory),
        Format("a.toml", lambda path: path.write_text(CLAIMS), formulas_of, None),
        Format("a.kept", write_kept, kept_again, lambda found, _: found in (None, b"answer")),
    ]


STRANGE = (
    b"\x1b[31m\x1b]0;title\x07", b"\x00", b"\xff\xfe", b"\\ud800", b'"' + b"[" * 3000, b"{" * 200, b"9" * 400, b"1e999",
    b"\r\n", b"NaN", b"-1", b",", b"\xe2\x80\xae", b"../../etc/passwd", b"exp(exp(exp(9)))", b"**64**64", b"\n\n",
)  # fmt: skip


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content with one change, or a few."""
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        if not content:
            return content
        at = rng.randrange(len(content))
        length = min(rng.choice((1, 2, 8, 40, 400)), len(content) - at)
        other = rng.randrange(len(content))
        kind = rng.randrange(10)
        middle = content[at : at + length]
        if kind == 0:
            middle = bytes([middle[0] ^ (1 << rng.randrange(8))]) + middle[1:]
        elif kind == 1:
            middle = bytes([rng.randrange(256)]) + middle[1:]
        elif kind == 2:
            middle = b""
        elif kind == 3:
            middle = rng.randbytes(length) + middle
        elif kind == 4:
            return content[:at]
        elif kind == 5:
            middle = middle * 2
        elif kind == 6:
            middle = content[other : other + length]
        elif kind == 7:
            middle = bytes(length)
        elif kind == 8:
            middle = rng.choice(STRANGE) + middle
        else:
            return content.replace(b"\n", b"\r\n") if rng.random() < 0.2 else content + rng.choice(STRANGE)
        content = content[:at] + middle + content[at + length :]
    return content


def check_sentence(sentence: str) -> None:
    assert 0 < len(sentence) <= 300 and "\n" not in sentence and sentence.isprintable(), repr(sentence)


def outcome(form: Format, path: Path) -> Any:
    """What is read; the error if the file is refused."""
    begin = time.perf_counter()
    try:
        return form.read(path)
    except DeriveError as error:
        check_sentence(str(error))
        return error
    finally:
        assert time.perf_counter() - begin < LONGEST, "too slow"


def try_one(form: Format, original: bytes, value: Any, path: Path, rng: random.Random) -> str:
    """Change a file once and read it; what became of it."""
    content = mutated(original, rng)
    forged = form.forge is not None and rng.random() < 0.3
    if forged:
        content = form.forge(content)
    path.write_bytes(content)
    found = outcome(form, path)
    if isinstance(found, DeriveError):
        return "refused"
    if content == original or forged or form.same is None:
        return "read"
    assert form.same(found, value), f"another value: {found!r}"
    return "read as it was"


def try_directory(whole: Path, value: Any, path: Path, rng: random.Random) -> str:
    """The same for a result in a directory: one of its files is changed, removed or added."""
    shutil.copytree(whole, path)
    file = rng.choice(sorted(p for p in path.rglob("*") if p.is_file()))
    kind = rng.randrange(6)
    if kind == 0:
        file.unlink()
    elif kind == 1:
        (file.parent / "more").write_bytes(b"1")
    else:
        file.write_bytes(mutated(file.read_bytes(), rng))
    forged = rng.random() < 0.3
    if forged:
        part = path / rng.choice((SKELETON, NUMBERS))
        if part.exists():
            part.write_bytes(mutated(part.read_bytes(), rng))
        names = {p.relative_to(path).as_posix(): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}
        names.pop("digests.json", None)
        (path / "digests.json").write_bytes(sealed_files(names)["digests.json"])
    found = outcome(Format("a.zarr", lambda p: None, lambda p: plain(derive.open(p)), equal), path)
    shutil.rmtree(path)
    if isinstance(found, DeriveError):
        return "refused"
    assert forged or found == value, "another value"
    return "read as it was"


def fuzz(count: int, seed: int, place: Path) -> dict[tuple[str, str], int]:
    """Try so many changed files; how many of each format were refused and read. The first that breaks is told."""
    known = formats(place)
    valid: dict[str, tuple[bytes, Any]] = {}
    for form in known:
        form.make(place / form.name)
        valid[form.name] = (place / form.name).read_bytes(), form.read(place / form.name)
    whole = plain(derive.open(place / "whole.zarr"))
    told: dict[tuple[str, str], int] = {}
    for number in range(count):
        key = hashlib.sha256(f"{seed} {number}".encode()).digest()
        rng, kind = random.Random(key), number % (len(known) + 1)
        name = known[kind].name if kind < len(known) else "a.zarr"
        path = place / f"changed-{name}"
        try:
            if kind < len(known):
                became = try_one(known[kind], *valid[name], path, rng)
            else:
                became = try_directory(place / "whole.zarr", whole, path, rng)
        except Exception as error:
            raise AssertionError(f"{name}, seed {seed}, number {number}: {type(error).__name__}: {error}") from error
        told[name, became] = told.get((name, became), 0) + 1
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))  # what takes more memory breaks the run
    with tempfile.TemporaryDirectory() as directory:
        told = fuzz(given.count, given.seed, Path(directory))
    for (name, became), number in sorted(told.items()):
        print(f"{name:15} {became:15} {number}")


if __name__ == "__main__":
    main()
