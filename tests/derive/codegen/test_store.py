"""What is kept between runs: found again, made again whenever it is not ours or not whole, and never in the way."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from derive.cli import main
from derive.codegen import solver_files, store
from derive.inputs.loading import load_model
from derive.support import places
from derive.support.places import SECRET_FILE, KeptFiles
from numerics.solver import load_solver, solve

ROOT = Path(__file__).parents[3]
NOBODY = 65534
PLANTED = '''"""K planted directions."""
from derive import Model, family, goe, normal, outer, parameter, positive, sectors, spectrum, whole_choice

gamma0 = parameter("gamma0", default=2.0, domain=positive)
D = sectors("D")


def declare(K):
    planted = [normal(f"v{k}", D) for k in range(K)]
    return Model(parameters=(gamma0,), probe=spectrum(sum((gamma0 / D * outer(v, v) for v in planted), goe("M0", D))))


MODEL = family(declare, K=whole_choice(1, high=3))
'''


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def in_a_process(script: str, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Another Python with this project, which keeps nothing unless it is told where."""
    known = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "TWO_LEVEL_DMFT", "XDG_"))}
    told = {**known, "PYTHONPATH": str(ROOT), "TWO_LEVEL_DMFT_CACHE": "", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script), *arguments],
        env=told,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def output(process: subprocess.Popen[str]) -> str:
    told, complaints = process.communicate()
    assert process.returncode == 0 and complaints == "", complaints
    return told


@pytest.fixture
def planted(declared) -> str:
    return str(declared(PLANTED, "planted.py"))


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def reachable():
    """A directory that others can get to, as home directories often are."""
    directory = Path(os.path.realpath(tempfile.mkdtemp(prefix="two-level-dmft-reachable-")))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


@pytest.fixture
def derivations(monkeypatch, place: Path) -> list[str]:
    """The names of all models that were derived, with a store of this test's own."""
    names: list[str] = []

    def counted(model, derived=None):
        names.append(model.name)
        return solver_files(model, derived)

    monkeypatch.setattr(store, "solver_files", counted)
    monkeypatch.setenv("TWO_LEVEL_DMFT_CACHE", str(place))
    return names


def entries(place: Path, kind: str = store.KIND) -> list[Path]:
    return sorted((place / kind).iterdir())


# Derived once


def test_the_second_use_derives_nothing(planted: str, derivations: list[str]):
    model = load_model(planted, {"K": 2})
    first = store.stored_files(model)
    assert store.stored_files(load_model(planted, {"K": 2})) == first == solver_files(model)
    assert derivations == ["planted_K2"]
    store.stored_files(load_model(planted))
    assert derivations == ["planted_K2", "planted"]


def test_commands_use_what_is_kept(planted: str, derivations: list[str]):
    outputs = {run("solve", planted, "K=2", "--json").stdout for _ in range(2)}
    assert len(outputs) == 1 and derivations == ["planted_K2"]


def test_shipped_code_needs_no_store(derivations: list[str], place: Path):
    assert run("solve", "spiked_wigner", "--json").exit_code == 0
    assert derivations == [] and not (place / store.KIND).exists()  # compiled programs may be kept


def test_a_changed_declaration_is_derived_again(planted: str, derivations: list[str]):
    store.stored_files(load_model(planted))
    Path(planted).write_text(PLANTED.replace("(gamma0 / D", "(3 * gamma0 / D"))
    changed = store.stored_files(load_model(planted))
    assert derivations == ["planted", "planted"]
    assert solve(load_solver(changed), {"gamma0": 2.0}).outliers == pytest.approx([6 + 1 / 6])


def test_another_version_of_the_engine_derives_again(planted: str, derivations: list[str], monkeypatch):
    store.stored_files(load_model(planted))
    monkeypatch.setattr(store, "_engine", lambda: "another")
    store.stored_files(load_model(planted))
    assert derivations == ["planted", "planted"]


@pytest.mark.parametrize("library", store.TAKES_PART)
def test_another_version_of_a_library_is_another_engine(library: str, monkeypatch):
    before, known = store._engine(), store.version
    monkeypatch.setattr(store, "version", lambda name: "another" if name == library else known(name))
    assert store._engine.__wrapped__() != before == store._engine()


def test_no_copies_are_kept_where_none_are_wanted(planted: str, derivations: list[str], tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TWO_LEVEL_DMFT_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for _ in range(2):
        store.stored_files(load_model(planted))
    assert derivations == ["planted", "planted"] and not (tmp_path / "cache").exists()


def test_the_usual_place_is_the_cache_of_the_user(planted: str, derivations: list[str], tmp_path: Path, monkeypatch):
    monkeypatch.delenv("TWO_LEVEL_DMFT_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    store.stored_files(load_model(planted))
    assert [path.name.startswith("planted-") for path in entries(tmp_path / "cache" / "two-level-dmft")] == [True]


def test_what_is_kept_is_for_the_user_alone(planted: str, derivations: list[str], place: Path):
    store.stored_files(load_model(planted))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (place, *place.rglob("*"))}
    assert set(modes.values()) == {0o700, 0o600} and modes[place] == 0o700, modes


# Damaged, planted, exchanged: as good as missing


DAMAGE = {
    "cut off": lambda content: content[: len(content) // 2],
    "cut off by one byte": lambda content: content[:-1],
    "shorter than a signature": lambda content: content[:7],
    "emptied": lambda content: b"",
    "longer": lambda content: content + b" ",
    "one bit": lambda content: content[:-20] + bytes([content[-20] ^ 1]) + content[-19:],
    "not text": lambda content: b"\xff\xfe\xff",
    "a checksum for a signature": lambda content: hashlib.sha256(content[32:]).digest() + content[32:],
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_copy_is_derived_again_and_replaced(planted: str, derivations: list[str], place: Path, damage: str):
    first = store.stored_files(load_model(planted))
    (entry,) = entries(place)
    whole = entry.read_bytes()
    entry.write_bytes(DAMAGE[damage](whole))
    assert store.stored_files(load_model(planted)) == first
    assert entries(place) == [entry] and entry.read_bytes() == whole
    assert store.stored_files(load_model(planted)) == first
    assert derivations == ["planted", "planted"]


def test_one_answer_is_not_taken_for_another(place: Path):
    here = KeptFiles(place)
    here.write("derived", "first 1", b"1")
    here.write("derived", "first 2", b"2")
    one, two = entries(place)
    held = one.read_bytes()
    two.replace(one)
    two.write_bytes(held)
    assert here.read("derived", "first 1") is here.read("derived", "first 2") is None
    here.write("derived", "first 1", b"1")
    assert here.read("derived", "first 1") == b"1" and here.read("compiled", "first 1") is None


@pytest.mark.parametrize("spoilt", ["cut off", "readable by others", "gone", "a link"])
def test_with_another_secret_nothing_is_believed(place: Path, spoilt: str):
    KeptFiles(place).write("derived", "x", b"kept")
    assert KeptFiles(place).read("derived", "x") == b"kept"
    secret = place / SECRET_FILE
    if spoilt == "cut off":
        secret.write_bytes(secret.read_bytes()[:20])
    elif spoilt == "readable by others":
        secret.chmod(0o644)
    else:
        secret.rename(place / "moved")
        if spoilt == "a link":
            secret.symlink_to("moved")
    assert KeptFiles(place).read("derived", "x") is None
    KeptFiles(place).write("derived", "y", b"new")
    assert KeptFiles(place).read("derived", "x") is None and KeptFiles(place).read("derived", "y") == b"new"
    assert stat.S_IMODE(secret.lstat().st_mode) == 0o600 and not secret.is_symlink()


@pytest.mark.parametrize("planted_as", ["writable by others", "a link", "a pipe", "a directory"])
def test_a_file_that_is_not_simply_ours_is_not_read(place: Path, planted_as: str):
    here = KeptFiles(place)
    here.write("derived", "x", b"kept")
    (entry,) = entries(place)
    if planted_as == "writable by others":
        entry.chmod(0o666)
    else:
        entry.rename(place / "moved")
        if planted_as == "a link":
            entry.symlink_to("../moved")
        elif planted_as == "a pipe":
            os.mkfifo(entry)
        else:
            entry.mkdir()
    assert here.read("derived", "x") is None
    here.write("derived", "x", b"again")
    assert here.read("derived", "x") == (None if planted_as == "a directory" else b"again")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_a_file_of_another_user_is_not_read(place: Path):
    here = KeptFiles(place)
    here.write("derived", "x", b"kept")
    (entry,) = entries(place)
    os.chown(entry, NOBODY, NOBODY)
    assert here.read("derived", "x") is None
    os.chown(entry, 0, 0)
    assert here.read("derived", "x") == b"kept"
    os.chown(place / SECRET_FILE, NOBODY, NOBODY)
    assert KeptFiles(place).read("derived", "x") is None


# Directories that others could reach into


def refusal(place: Path, capsys) -> str:
    """What is said when something is to be kept there and read again; nothing if that works."""
    for _ in range(2):  # said once
        here = places._kept_at(place)
        here.write("derived", "x", b"kept")
        read = here.read("derived", "x")
    told = capsys.readouterr()
    assert told.out == "" and told.err.count("\n") <= 1
    assert (read is None) == bool(told.err)
    return told.err


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o720, 0o702, 0o1777])
def test_a_directory_that_others_may_write_is_refused(place: Path, mode: int, capsys):
    place.mkdir()
    place.chmod(mode)
    assert "others may write" in refusal(place, capsys)
    assert list(place.iterdir()) == []


def test_a_directory_that_becomes_open_is_refused(place: Path, capsys):
    KeptFiles(place).write("derived", "x", b"kept")
    place.chmod(0o777)
    assert KeptFiles(place).read("derived", "x") is None
    assert "chmod go-w" in capsys.readouterr().err


def test_a_link_is_judged_by_where_it_leads(tmp_path: Path, capsys):
    for name, mode in (("closed", 0o700), ("open", 0o777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
        (tmp_path / f"to_{name}").symlink_to(name)
    assert refusal(tmp_path / "to_closed", capsys) == ""
    assert "others may write" in refusal(tmp_path / "to_open", capsys)


@pytest.mark.parametrize(("mode", "fine"), [(0o755, True), (0o777, False), (0o775, False), (0o1777, True)])
def test_nobody_may_exchange_the_directory(reachable: Path, mode: int, fine: bool, capsys):
    above = reachable / "above"
    above.mkdir()
    above.chmod(mode)
    assert (refusal(above / "store", capsys) == "") == fine


def test_where_nobody_else_gets_to_the_directories_above_may_be_open(reachable: Path, capsys):
    (reachable / "private" / "open").mkdir(parents=True)
    (reachable / "private" / "open").chmod(0o777)
    (reachable / "private").chmod(0o700)
    assert refusal(reachable / "private" / "open" / "store", capsys) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
@pytest.mark.parametrize("whose", ["store", "."])
def test_a_directory_of_another_user_is_refused(reachable: Path, whose: str, capsys):
    (reachable / "store").mkdir(mode=0o700)
    os.chown(reachable / whose, NOBODY, NOBODY)
    assert "another user" in refusal(reachable / "store", capsys)


@pytest.mark.long
@pytest.mark.slow
def test_without_a_place_commands_do_their_work_and_say_so_once(planted: str, place: Path):
    place.mkdir()
    place.chmod(0o777)
    process = in_a_process(
        "from derive.cli import main; main()", "solve", planted, "--json", TWO_LEVEL_DMFT_CACHE=str(place)
    )
    told, complaints = process.communicate()
    assert process.returncode == 0 and json.loads(told)["outliers"] == pytest.approx([2.5])
    assert complaints.startswith("note: nothing is cached") and complaints.count("\n") == 1
    assert list(place.iterdir()) == []


# Read-only, full, and used by several at once


def test_a_place_that_cannot_be_made_is_no_error(planted: str, derivations: list[str], tmp_path: Path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TWO_LEVEL_DMFT_CACHE", str(tmp_path / "file" / "store"))
    assert run("solve", planted, "--json").exit_code == run("solve", planted, "--json").exit_code == 0
    assert derivations == ["planted", "planted"]


def test_what_is_kept_in_a_read_only_place_is_used(reachable: Path):
    script = f"""
        import os, sys
        from pathlib import Path
        from derive.support.places import KeptFiles
        place = Path(sys.argv[1])
        if os.geteuid() == 0:  # who may write anywhere
            os.chown(place.parent, {NOBODY}, {NOBODY})
            os.setuid({NOBODY})
        KeptFiles(place).write("derived", "x", b"kept")
        os.utime(place / "derived" / os.listdir(place / "derived")[0], (1e9, 1e9))
        for path in (place, place / "derived"):
            path.chmod(0o500)
        KeptFiles(place).write("derived", "x", b"other")
        KeptFiles(place).write("derived", "y", b"more")
        KeptFiles(place).write("compiled", "z", b"more")
        pairs = (("derived", "x"), ("derived", "y"), ("compiled", "z"))
        print([KeptFiles(place).read(kind, name) for kind, name in pairs])
        for path in (place, place / "derived"):
            path.chmod(0o700)
        (place / "secret").unlink()
        place.chmod(0o500)
        KeptFiles(place).write("derived", "x", b"other")
        print(KeptFiles(place).read("derived", "x"))
        place.chmod(0o700)
    """
    assert output(in_a_process(script, str(reachable / "store"))) == "[b'kept', None, None]\nNone\n"


def test_a_full_place_keeps_nothing_and_leaves_nothing_behind(place: Path):
    script = """
        import resource, sys
        from pathlib import Path
        from derive.support.places import KeptFiles
        place = Path(sys.argv[1])
        for most in (10, 1000):  # bytes that a file may have: the secret does not fit, then it does
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))
            here = KeptFiles(place)
            here.write("derived", "long", b"x" * 100_000)
            print(here.read("derived", "long"), sorted(path.name for path in place.rglob("*")))
        here.write("derived", "short", b"kept")
        print(here.read("derived", "short"))
    """
    assert output(in_a_process(script, str(place))) == "None []\nNone ['derived', 'secret']\nb'kept'\n"


@pytest.mark.long
@pytest.mark.slow
def test_two_processes_derive_the_same_model_at_once(planted: str, place: Path):
    script = """
        import hashlib, sys
        from derive.codegen import store
        from derive.inputs.loading import load_model
        model = load_model(sys.argv[1])
        if len(sys.argv) > 2:
            store.solver_files = None
        print(hashlib.sha256(repr(store.stored_files(model)).encode()).hexdigest())
    """
    told = {"TWO_LEVEL_DMFT_CACHE": str(place)}
    both = [in_a_process(script, planted, **told) for _ in range(2)]
    found = {output(process) for process in both}
    found.add(output(in_a_process(script, planted, "derives nothing", **told)))
    assert len(found) == 1
    assert len(entries(place)) == 1 and sorted(path.name for path in place.iterdir()) == ["derived", SECRET_FILE]


@pytest.mark.slow
def test_many_processes_read_and_write_and_see_whole_answers_only(place: Path):
    script = """
        import sys
        from pathlib import Path
        from derive.support.places import KeptFiles
        wrong = 0
        for i in range(60):
            here = KeptFiles(Path(sys.argv[1]))  # as a process that has just started
            here.write("derived", f"x {i % 3}", bytes([i % 3]) * 200_000)
            for j in range(3):
                wrong += here.read("derived", f"x {j}") not in (None, bytes([j]) * 200_000)
            wrong += here.read("derived", f"x {i % 3}") is None
        print(wrong)
    """
    several = [in_a_process(script, str(place)) for _ in range(4)]
    assert [output(process) for process in several] == ["0\n"] * 4
    assert len(entries(place)) == 3


def test_what_is_long_unused_or_unfinished_goes(place: Path):
    here = KeptFiles(place)
    for name in ("old", "used", "new"):
        here.write("derived", name, b"")
    day = 86400
    now = places.time.time()
    for path in entries(place):
        age = {"old": 61, "used": 59, "new": 0}[path.name.partition("-")[0]] * day
        os.utime(path, (now - age, now - age))
    for name, age in ((".unfinished-1", 2), (".unfinished-2", 0)):
        (place / "derived" / name).write_bytes(b"")
        os.utime(place / "derived" / name, (now - age * day, now - age * day))
    assert here.read("derived", "used") == b""
    KeptFiles(place).write("derived", "other", b"")
    left = [path.name.partition("-")[0 if path.name[0] != "." else 2] for path in entries(place)]
    assert sorted(left) == ["2", "new", "other", "used"]
    (used,) = (place / "derived").glob("used-*")
    assert used.stat().st_mtime > now - day, "reading marks it as used"


# What JAX has compiled

COMPILE = """
    import sys
    import jax, jax.numpy as jnp
    from jax import monitoring
    from numerics.support.compiled import keep_compiled
    found = []
    monitoring.register_event_listener(lambda name, **_: found.append(name) if name.endswith("cache_hits") else None)
    keep_compiled()
    print(jax.jit(lambda x: jnp.linalg.inv(jnp.tanh(x @ x) + jnp.eye(5)).sum())(jnp.ones((5, 5))), len(found) > 0)
"""
ALL = {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}


@pytest.mark.long
@pytest.mark.slow
def test_compiled_code_is_kept_and_what_is_damaged_is_compiled_again_in_silence(place: Path):
    told = {"TWO_LEVEL_DMFT_CACHE": str(place), **ALL}
    fresh = output(in_a_process(COMPILE, **told))
    value = fresh.split()[0]
    assert fresh == f"{value} False\n"
    assert output(in_a_process(COMPILE, **told)) == f"{value} True\n"
    for damage in ("cut off", "one bit", "emptied"):
        for path in entries(place, "compiled"):
            path.write_bytes(DAMAGE[damage](path.read_bytes()))
        assert output(in_a_process(COMPILE, **told)) == f"{value} False\n"
    assert output(in_a_process(COMPILE, **told)) == f"{value} True\n", "it was not replaced"


@pytest.mark.slow
def test_one_damaged_bit_of_compiled_code_is_seen_and_replaced(place: Path):
    told = {"TWO_LEVEL_DMFT_CACHE": str(place), **ALL}
    fresh = output(in_a_process(COMPILE, **told))
    kept = {path: path.read_bytes() for path in entries(place, "compiled")}
    for path, code in kept.items():
        path.write_bytes(DAMAGE["one bit"](code))
    assert kept and fresh.endswith("False\n") and output(in_a_process(COMPILE, **told)) == fresh
    assert not [path for path, code in kept.items() if path.read_bytes() == DAMAGE["one bit"](code)]


@pytest.mark.slow
def test_compiled_code_is_not_kept_where_others_may_write(place: Path):
    place.mkdir()
    place.chmod(0o777)
    process = in_a_process(COMPILE, TWO_LEVEL_DMFT_CACHE=str(place), **ALL)
    told, complaints = process.communicate()
    assert told.endswith("False\n") and complaints.count("\n") == 1 and list(place.iterdir()) == []


@pytest.mark.long
@pytest.mark.slow
def test_a_directory_that_the_user_names_to_jax_is_left_to_jax(place: Path, tmp_path: Path):
    own = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "own"), "TWO_LEVEL_DMFT_CACHE": str(place), **ALL}
    assert output(in_a_process(COMPILE, **own)).endswith("False\n")
    assert output(in_a_process(COMPILE, **own)).endswith("True\n")
    assert not place.exists()


# Nothing happens before it is needed


@pytest.mark.slow
def test_importing_has_no_side_effects(tmp_path: Path):
    script = """
        import sys
        before = set(sys.modules)
        import derive
        loaded = {name.partition(".")[0] for name in set(sys.modules) - before}
        print(sorted(loaded & {"sympy", "jax", "numpy", "click", "matplotlib"}))
        import derive.support.places, derive.cli, derive.codegen.store, numerics.solver
    """
    home = tmp_path / "home"
    home.mkdir()
    places_told = {"HOME": str(home), "TWO_LEVEL_DMFT_CACHE": str(home / "kept"), "MPLCONFIGDIR": str(tmp_path)}
    process = in_a_process(script, **places_told)
    assert output(process) == "[]\n" and list(home.iterdir()) == []
