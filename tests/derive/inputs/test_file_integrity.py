"""Files cannot lie, and readers cannot be broken: digests, bounds, special files, full disks, Ctrl-C."""

from __future__ import annotations

import errno
import gc
import io
import json
import math
import os
import re
import signal
import struct
import subprocess
import sys
import time
import zipfile
from io import FileIO
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner
from fuzz_files import ABOUT, check_sentence, fuzz, write_journal

import derive
from derive.claims.equality import number
from derive.claims.formulas import Reader
from derive.claims.patience import within_time
from derive.claims.reading import load_claims
from derive.cli import main
from derive.cli.output import PrintableStream
from derive.errors import CheckpointError, ClaimError, DeclarationError, DeriveError, NumericalError
from derive.inputs.checkpoints import load, read_checkpoint
from derive.inputs.data_files import _archive
from derive.inputs.loading import load_declaration, load_model
from derive.language.alignments import with_alignments
from derive.results.files import decoded
from derive.results.sealing import check_seal, sealed
from derive.results.typed import built
from derive.support import bounds, interrupts
from derive.support.guarded import parsed_json, read_bytes, write_whole
from derive.support.plain_words import one_sentence, printable
from derive.sweeps import journal as journals
from derive.sweeps.journal import opened
from numerics.outliers.alignments import OutlierAlignment

MANUAL = Path(__file__).parents[3] / "notebooks" / "manual" / "files.md"


def test_changed_files_are_read_as_they_were_or_refused(tmp_path: Path):
    """A few hundred; `python tests/campaigns/fuzz_files.py --count 20000` tries more."""
    told = fuzz(330, 3, tmp_path)
    assert {name for name, became in told if became == "refused"} >= {"a.journal", "a.nc", "a.npz", "a.json", "a.zarr"}


def test_a_changed_byte_of_a_journal_is_refused_at_its_line(tmp_path: Path):
    path = tmp_path / "j"
    write_journal(path)
    whole, units = path.read_bytes(), opened(path, ABOUT, write=False).done
    for place in range(0, len(whole), 3):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        line = whole[:place].count(b"\n") + 1
        with pytest.raises(DeriveError) as caught:
            opened(path, ABOUT, write=False)
        said = str(caught.value)
        assert f"line {line}" in said or "first line" in said or "not a journal" in said or "another version" in said
        assert line == 1 or f"line {line}" in said
    path.write_bytes(whole)
    assert opened(path, ABOUT, write=False).done == units


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda text: text.replace(b"\n", b"\r\n"), "Windows line ending"),
        (lambda text: text.replace(b'{"journal":2', b'{"journal":1'), "another version"),
        (lambda text: text.replace(b'"found":', b'"found":' + b"[" * 5000), "line 2"),
        (lambda text: text.replace(b"diverged", b"divarged"), "line 2, is damaged or was modified"),
    ],
)
def test_a_journal_that_somebody_rewrote_is_refused(change, word: str, tmp_path: Path):
    write_journal(tmp_path / "j")
    (tmp_path / "j").write_bytes(change((tmp_path / "j").read_bytes()))
    with pytest.raises(DeriveError, match=word):
        opened(tmp_path / "j", ABOUT)


def test_a_changed_byte_of_a_result_is_refused_with_its_place(tmp_path: Path):
    path, whole = tmp_path / "r.nc", sealed(np.random.default_rng(0).bytes(70_000))
    path.write_bytes(whole)
    check_seal(path)
    for place in (0, 1234, 69_999):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        with pytest.raises(DeriveError, match="was modified after it was saved") as caught:
            check_seal(path)
        first, last = map(int, re.findall(r"between bytes (\d+) and (\d+)", str(caught.value))[0])
        assert first <= place < last
    for cut in (whole[:-1], whole[:40_000], whole + b" ", whole[:100] + whole[101:], b"", whole[70_000:]):
        path.write_bytes(cut)
        with pytest.raises(DeriveError, match=r"r\.nc"):
            check_seal(path)


def test_no_reader_waits_for_a_pipe_or_reads_a_device(tmp_path: Path):
    readers = {
        "f.npz": (read_checkpoint, CheckpointError),
        "f.safetensors": (read_checkpoint, CheckpointError),
        "f.toml": (load_claims, ClaimError),
        "f.nc": (derive.open, DeriveError),
        "f.journal": (lambda path: opened(path, ABOUT), DeriveError),
        "f.py": (lambda path: load_declaration(str(path)), DeclarationError),
        "data.npz": (lambda path: _archive(str(path), {"x"}, "x"), DeriveError),
    }
    for name, (reader, error) in readers.items():
        path = tmp_path / name
        os.mkfifo(path)
        with pytest.raises(error, match="is a pipe"):
            reader(path)
        path.unlink()
        path.symlink_to("/dev/zero")
        with pytest.raises(error, match="is a device"):
            reader(path)
        path.unlink()
        path.mkdir()
        with pytest.raises(error, match="is a directory"):
            reader(path)
        path.rmdir()
        with path.open("wb") as file:
            file.truncate(2 * 10**12)  # takes no room on a disk
        with pytest.raises(error, match="at most") as caught:
            reader(path)
        check_sentence(str(caught.value))
        path.unlink()


def test_an_archive_that_would_fill_the_memory_is_not_unpacked(tmp_path: Path, monkeypatch):
    """The sizes that the archive declares are judged before a byte is decompressed."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**9,)})
    with zipfile.ZipFile(tmp_path / "bomb.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("w.npy", header.getvalue() + bytes(10**6))
    (entry,) = read_checkpoint(tmp_path / "bomb.npz")
    assert "contains 1000000 bytes" in entry.broken
    monkeypatch.setattr("derive.inputs.checkpoints.ARRAY_FREE_SIZE", bounds.Bound("here", "an array", 10**5, "bytes"))
    np.savez_compressed(tmp_path / "zeros.npz", w=np.zeros(10**6), v=np.zeros(10**4))
    zeros, few = read_checkpoint(tmp_path / "zeros.npz")
    assert "would expand to 8000128, more than 100 times" in zeros.broken and few.broken is None


class FullDisk(FileIO):
    """A file on a disk with so much room."""

    room = 0

    def write(self, content) -> int:
        if not type(self).room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        taken = min(type(self).room, len(content))
        type(self).room -= taken
        return super().write(bytes(content)[:taken])


def test_a_disk_that_fills_up_anywhere_loses_nothing(tmp_path: Path, monkeypatch):
    units = {"a": '{"x":1}', "b": '{"y":2}'}
    whole = opened(tmp_path / "whole", ABOUT)
    for unit, line in units.items():
        whole.add(unit, line)
    whole.close()
    content = (tmp_path / "whole").read_bytes()
    monkeypatch.setattr(journals, "FileIO", FullDisk)
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # the room is counted here; a disk would only be slow
    for room in range(len(content)):
        path, kept = tmp_path / "j", []
        FullDisk.room = room
        with pytest.raises(DeriveError, match="No space left on device") as caught:
            journal = opened(path, ABOUT)
            try:
                for unit, line in units.items():
                    journal.add(unit, line)
                    kept.append(unit)
            finally:
                journal.close()
        check_sentence(str(caught.value))
        FullDisk.room = 10**6
        journal = opened(path, ABOUT)
        assert list(journal.done) == kept
        for unit in [unit for unit in units if unit not in kept]:
            journal.add(unit, units[unit])
        journal.close()
        assert path.read_bytes() == content
        path.unlink()


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path: Path, monkeypatch):
    path = tmp_path / "t.csv"
    write_whole(path, b"old")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("derive.support.guarded.os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, b"new")
    assert path.read_bytes() == b"old" and [one.name for one in tmp_path.iterdir()] == ["t.csv"]


# Names and sentences


def test_names_out_of_files_never_reach_a_terminal_as_they_are(tmp_path: Path, monkeypatch):
    name = "w\x1b[31m\x9b\x07\u202e"
    np.savez(tmp_path / "w.npz", **{name: np.ones((2, 2))})
    (entry,) = read_checkpoint(tmp_path / "w.npz")
    assert entry.name == "w\\x1b[31m\\x9b\\x07\\u202e" and np.array_equal(
        load(tmp_path / "w.npz", entry), np.ones((2, 2))
    )
    header = json.dumps({"x\ud800": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "w.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    (entry,) = read_checkpoint(tmp_path / "w.safetensors")
    assert entry.name == "x\\ud800"
    stream = io.StringIO()
    PrintableStream(stream).write("a\x1bb\n\tc")
    assert stream.getvalue() == "a\\x1bb\n\tc"
    told = CliRunner().invoke(main, ["list", "\x1b]0;title\x07.py"])
    assert told.exit_code == 2 and printable(told.stderr) == told.stderr
    assert str(DeriveError("a\n\x1b[1mb")) == "a \\x1b[1mb"


@pytest.mark.parametrize("text", ["x" * 1000, "word " * 200, "/" + "d/" * 300 + " is missing; " + "try " * 100])
def test_sentences_are_short(text: str):
    assert len(one_sentence(text)) <= bounds.SENTENCE.most
    check_sentence(str(ClaimError(text)))


@pytest.mark.parametrize(
    "text", ["9" * 400, "1e400", "NaN", '{"a":1,"a":2}', "[" * 100 + "]" * 100, "[" * 10**5, b"\xff", b"\xff\xfe1\x00"]
)
def test_json_that_nobody_can_mean_is_refused(text):
    with pytest.raises(ValueError):
        parsed_json(text)


def test_records_are_of_their_types():
    one = OutlierAlignment("v", "right", None, False, False, (1,), np.ones(1))
    assert built(OutlierAlignment, {name: getattr(one, name) for name in vars(one)}).name == "v"
    for name, wrong in (("name", 3), ("values", [1.0]), ("counts", ("a", 1)), ("unknown", 1)):
        with pytest.raises(ValueError, match=f"Alignment.{name}"):
            built(OutlierAlignment, {**vars(one), name: wrong})
    numbers = np.zeros(3)
    for wrong in (
        {"array": [0, [4], "<f8"]},
        {"array": [-1, [2], "<f8"]},
        {"array": [0, [2], "O"]},
        {"object": ["os.system", {}]},
        {"object": 3},
        {"a": 1, "b": 2},
        {"float": [1]},
        {"mapping": [[{"mapping": []}, 1]]},
    ):
        with pytest.raises(ValueError):
            decoded(wrong, numbers)


# Claims


def test_the_work_of_a_claim_is_bounded(tmp_path: Path):
    gamma = sp.Symbol("gamma0", positive=True)
    define = {"a0": "exp(gamma0)"} | {f"a{k}": f"a{k - 1}*exp(a{k - 1}) + a{k - 1}" for k in range(1, 40)}
    with pytest.raises(ClaimError, match="20,000 operations"):
        Reader("here", {"gamma0": gamma}, define=define).scalar("a39")
    assert Reader("here", {"gamma0": gamma}, define=define).scalar("a1") == sp.expand(
        sp.exp(gamma) * (1 + sp.exp(sp.exp(gamma)))
    )
    with pytest.raises(ClaimError, match="300 digits"):
        Reader("here", {}).scalar("9" * 400)
    for tower in (sp.exp(sp.exp(sp.exp(sp.exp(gamma)))), gamma ** (gamma ** (gamma**gamma**9)), gamma**100_000**9):
        with pytest.raises(ClaimError, match="too large"):
            number(tower, {gamma: sp.Integer(3)})
    assert float(number(2**gamma + sp.exp(-gamma), {gamma: sp.Integer(3)})) == pytest.approx(
        8 + math.exp(-3), rel=1e-15
    )
    (tmp_path / "deep.toml").write_text("a = " + "[" * 40 + "]" * 40)
    with pytest.raises(ClaimError, match="nested"):
        load_claims(tmp_path / "deep.toml")


def test_a_claim_that_takes_too_long_is_not_decided():
    def endless() -> None:
        while True:
            pass

    with pytest.raises(NumericalError, match="not decided within 0 seconds"):
        within_time(endless, bounds.Bound("claims", "deciding one claim", 0, "seconds"))
    assert within_time(lambda: 3) == 3


def test_directions_are_few_and_short():
    model = load_model("spiked_wigner")
    for texts in (["v(" + "1+" * 3000 + "1)"], [f"v({k})" for k in range(100)], ["v(" + "(" * 99], ["v(\0)"]):
        with pytest.raises(DeclarationError, match="align") as caught:
            with_alignments(model, texts)
        check_sentence(str(caught.value))


# Ctrl-C


@pytest.mark.slow
@pytest.mark.parametrize("lost", [0, 2])
def test_an_interrupt_that_the_collector_drops_comes_back(lost, monkeypatch):
    """As in JAX's callback of the garbage collector: Python drops what is raised there.

    A signal is lost to a system call that begins just after it: the first ones are not sent here.
    """
    sent, signals, kill = [], count(), signal.pthread_kill
    monkeypatch.setattr(signal, "pthread_kill", lambda *to: next(signals) >= lost and kill(*to))

    def callback(phase: str, info: dict) -> None:
        if not sent:
            sent.append(phase)
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):
                pass

    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.callbacks.append(callback)
    try:
        with interrupts.handled(alone=False), pytest.raises(KeyboardInterrupt):
            gc.collect()
            begin = time.monotonic()
            time.sleep(5)
            raise AssertionError("it was dropped")
        assert time.monotonic() - begin < 2
        assert not interrupts.happened() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        gc.callbacks.remove(callback)
        signal.signal(signal.SIGINT, outside)
    assert sent and next(signals) > lost


def test_an_interrupt_while_a_dropped_exception_is_reported_comes_back():
    """What is raised in the hook for dropped exceptions is dropped as well."""

    class Dropped:
        @property
        def exc_type(self) -> type[BaseException]:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(100):
                pass
            return KeyboardInterrupt

    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interrupts.handled(alone=False), pytest.raises(KeyboardInterrupt):
            sys.unraisablehook(Dropped())
            begin = time.monotonic()
            time.sleep(5)
            raise AssertionError("it was dropped")
        assert time.monotonic() - begin < 2
    finally:
        signal.signal(signal.SIGINT, outside)


DEAF = """
import signal, sys, time
from pathlib import Path
from derive.support import interrupts
signal.signal(signal.SIGINT, signal.default_int_handler)
def dropped():
    while True:
        try:
            time.sleep(30)
        except KeyboardInterrupt:
            pass
with interrupts.handled(alone=True), interrupts.saying(lambda: "kept in j"), interrupts.removing(Path("unfinished")):
    Path("unfinished").write_text("half")
    print("ready", flush=True)
    {work}
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("work", "code", "said"),
    [("dropped()", 130, "error: kept in j"), ("sum(range(10**12))", -signal.SIGKILL, "error: interrupted")],
    ids=["the interrupt is dropped", "a library holds the lock"],
)
def test_what_does_not_listen_is_ended(work: str, code: int, said: str, tmp_path: Path):
    command = [sys.executable, "-c", DEAF.format(work=work)]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == code and said in err and "Traceback" not in err
    assert time.monotonic() - begin < 2 * bounds.INTERRUPT_TIME.most  # twice, where many tests share the cores
    assert code < 0 or not (tmp_path / "unfinished").exists()


INTERRUPTED_IMPORT = """
import runpy, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == "derive.cli.verify":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupting())
sys.argv = ["derive", "list"]
runpy.run_module("derive", run_name="__main__")
"""


def test_an_interrupt_while_the_commands_are_imported_is_one_sentence():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_IMPORT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (interrupts.EXIT_CODE, "", "error: interrupted\n")


INTERRUPTED_EXIT = """
import atexit, os, runpy, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["derive", "list"]
runpy.run_module("derive", run_name="__main__")
"""


def test_an_interrupt_after_the_command_is_done_changes_nothing():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED_EXIT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "") and "spiked_wigner" in done.stdout


def test_the_manual_states_the_bounds():
    assert bounds.table() in MANUAL.read_text(encoding="utf-8")
    assert {bound.most for bound in bounds.BOUNDS if bound.unit == "seconds"} == {2}
    assert interrupts.PATIENCE < interrupts.LAST_PATIENCE < bounds.INTERRUPT_TIME.most
    with pytest.raises(DeriveError, match="there is no file"):
        read_bytes(Path("nowhere\x1b"), bounds.CLAIMS_SIZE)
