"""Every word of the language is documented with an example that runs, and editors see what Python imports late."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import derive
import derive.api
import derive.language
import derive.results
import derive.words

ROOMS = (derive.language, derive.api, derive.results)
MODULES = [f"{room.__name__}.{module.name}" for room in ROOMS for module in pkgutil.iter_modules(room.__path__)]


@pytest.mark.slow
@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module):
    found = doctest.testmod(importlib.import_module(module))
    assert found.failed == 0


@pytest.mark.parametrize("word", derive.__all__)
def test_every_word_has_an_example(word):
    doc = getattr(derive, word).__doc__ or ""
    examples = doctest.DocTestParser().get_examples(doc)
    assert doc.strip().split("\n")[0].endswith((".", ":")), f"{word} has no sentence that says what it is"
    assert examples and (
        "from derive import" in examples[0].source + examples[min(1, len(examples) - 1)].source
        or "import derive" in examples[0].source
    )


def test_type_checkers_see_every_word():
    """The imports that never run, one by one, are those that run when a word is first asked for."""
    tree = ast.parse(Path(derive.__file__).read_text(encoding="utf-8"))
    (checking,) = (n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING")
    names = [(alias, node.module) for node in checking.body for alias in node.names]
    seen = {
        alias.asname: module
        for alias, module in names
        if alias.name == derive.words.UNDER.get(alias.asname, alias.asname)
    }
    assert seen == derive._HOME
    assert set(derive.__all__) <= set(dir(derive))
    assert (Path(derive.__file__).parent / "py.typed").is_file()


def test_nothing_is_loaded_before_a_word_is_asked_for():
    told = "import sys, derive; print(sorted(m for m in sys.modules if m.startswith(('sympy', 'derive.'))))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    support = ("", ".bounds", ".display", ".plain_words", ".source_lines")
    known = ("errors", *(f"support{name}" for name in support), "version", "words")
    assert done.stdout.strip() == str([f"derive.{name}" for name in known])
