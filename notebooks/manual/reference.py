"""Write the pages that follow from the code: language.md, commands.md, results.md, gallery.md, paper.md.

python notebooks/manual/reference.py               writes the pages
python notebooks/manual/reference.py --pictures    solves every declaration of the gallery and draws it, too
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections import Counter
from dataclasses import fields, is_dataclass
from fnmatch import fnmatchcase
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import click

import derive
from derive.claims import load_claims, project_claims
from derive.cli import main
from derive.words import LANGUAGE, UNDER, VERBS
from numerics.support.reports import RECORDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DECLARATIONS = ROOT / "tests" / "declarations"
PICTURES = HERE / "gallery"
ABOUT_ITEMS = """Items are results, lemmas, groups of displayed equations and figures. *Proved*: claims transcribed
from the paper are proved by `derive verify`. *Compared*: numbers agree with simulation or with a hand-written solution.
*Declared*: the item is part of the declared model. *Figure*: a notebook draws it. *Not applicable*: the last column
gives the reason. Where the paper and the derivation differ, the item links to the [errata](../errata.ipynb), and its
claims state the correct formula."""
STATUSES = ("proved", "compared", "declared", "figure", "not applicable")
WRITTEN = "Written by `python notebooks/manual/reference.py` from the code; do not edit."


def fenced(kind: str, text: str) -> str:
    return f"```{kind}\n{text.rstrip()}\n```"


def documented(name: str, thing: object) -> str:
    """A heading with the signature of a function, and the docstring with its example as code."""
    if not callable(thing):
        return f"## {name}\n\nA domain: {thing}."
    parts = [f"## {name}"]
    if not inspect.isclass(thing):
        defaults = re.sub(r"Domain\([^)]*\)", "real", str(inspect.signature(thing)))
        parts.append(fenced("py", f"{name}{defaults}".replace("''", '""').replace("'", "")))
    prose, _, example = (inspect.getdoc(thing) or "").partition(">>> ")
    parts.append(with_lists(prose.strip()))
    if example:
        parts.append(fenced("pycon", ">>> " + example))
    return "\n\n".join(part for part in parts if part)


def with_lists(prose: str) -> str:
    """Return a docstring with each entry below Args, Attributes, Returns or Raises as an item of a list."""
    lines: list[str] = []
    inside = False
    for line in prose.splitlines():
        entry = re.match(r"    (\w[\w, ]*): (.*)", line)
        if line.rstrip(":") in ("Args", "Attributes", "Returns", "Raises") and line.endswith(":"):
            lines += ["", line, ""]
            inside = True
        elif inside and entry:
            names = ", ".join(f"`{name}`" for name in entry[1].split(", "))
            lines.append(f"- {names}: {entry[2]}")
        elif inside and line.strip():
            lines.append("  " + line.strip())
        else:
            inside = inside and not line.strip()
            lines.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def language() -> str:
    pages = ["# The language", WRITTEN]
    for module, words in LANGUAGE.items():
        for word in words:
            pages.append(documented(word, getattr(import_module(module), word)))
    return "\n\n".join(pages) + "\n"


def commands() -> str:
    pages = ["# Commands", WRITTEN, fenced("text", _help(main, "derive"))]
    for name, command in main.commands.items():
        pages += [f"## {name}", fenced("text", _help(command, f"derive {name}"))]
    return "\n\n".join(pages) + "\n"


def _help(command: click.Command, name: str) -> str:
    how = {**main.context_settings, "max_content_width": 100, "terminal_width": 100}
    with click.Context(command, info_name=name, **how) as context:
        return command.get_help(context)


def results() -> str:
    pages = [
        "# Results",
        WRITTEN,
        "What the verbs return. Keys of `--json` are listed by `derive COMMAND --help` ([commands](commands.md)).",
    ]
    for module, names in VERBS.items():
        for name in names:
            thing = getattr(import_module(module), UNDER.get(name, name))
            pages.append(documented(name, thing))
            if inspect.isclass(thing):
                members = {
                    key: _first_sentence(value)
                    for key, value in inspect.getmembers(thing)
                    if not key.startswith("_") and (isinstance(value, property) or inspect.isfunction(value))
                }
                rows = [f"| `{key}` | {line} |" for key, line in sorted((_field_lines(thing) | members).items())]
                pages.append("\n".join(["| name | meaning |", "| --- | --- |", *rows]))
    pages.append(
        "## Records of how a result was computed\n\n`s.method` is a TrainingMethod, `layer.diagnostics` a "
        "LayerDiagnostics. The property `sentence` of a record describes it in words; `--json` has its fields."
    )
    for record in RECORDS:
        lines = _field_lines(record)
        rows = [
            f"| `{f.name}` | `{str(f.type).replace('|', chr(92) + '|')}` | {lines[f.name]} |" for f in fields(record)
        ]
        pages.append(documented(record.__name__, record))
        pages.append("\n".join(["| field | type | meaning |", "| --- | --- | --- |", *rows]))
    return "\n\n".join(pages) + "\n"


def _field_lines(kind: type) -> dict[str, str]:
    """Return the first sentence of the text below each field of a record."""
    found: dict[str, str] = {}
    for base in filter(is_dataclass, kind.__mro__):
        (tree,) = ast.parse(inspect.getsource(base)).body
        for line, below in pairwise(tree.body):
            match line, below:
                case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(text))):
                    found.setdefault(name, _first_sentence(text))
    return found


def _first_sentence(thing: object) -> str:
    text = thing if isinstance(thing, str) else inspect.getdoc(thing) or ""
    sentence = " ".join(text.strip().split("\n\n")[0].split())
    return re.split(r"(?<=[.]) (?=[A-Z`])", sentence)[0].replace("|", "\\|")


def gallery() -> str:
    pages = [
        "# Gallery",
        WRITTEN,
        "Declarations for which no stage of the engine was written; the tests compare each of them with simulation. "
        "Copy one and change it: `derive compare FILE` runs it.",
    ]
    for path in sorted(DECLARATIONS.glob("*.py")):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        pages += [f"## {path.stem}", text, f"[{path.name}](../../tests/declarations/{path.name})"]
        if (PICTURES / f"{path.stem}.png").exists():
            pages.append(f"![{path.stem}](gallery/{path.stem}.png)")
    return "\n\n".join(pages) + "\n"


def draw() -> None:
    """The bulk with its outliers, or the observables, of each declaration at its defaults."""
    import matplotlib

    matplotlib.use("agg")
    PICTURES.mkdir(exist_ok=True)
    for path in sorted(DECLARATIONS.glob("*.py")):
        drawn = derive.load(path).solve().plot()
        figure = drawn if hasattr(drawn, "savefig") else drawn.figure
        figure.set_size_inches(6, 3)
        figure.savefig(PICTURES / f"{path.stem}.png", dpi=70, metadata={"Software": None})


def paper_items() -> list[dict[str, object]]:
    """The items of the paper, each with the names of the claims that its patterns match."""
    known = {path.stem: [claim.name for claim in load_claims(path).claims] for path in project_claims()}
    items = tomllib.loads((HERE / "paper_items.toml").read_text(encoding="utf-8"))["item"]
    for item in items:
        matched: dict[str, dict[str, None]] = {}
        for pattern in item.get("claims", ()):
            stem, _, name = pattern.partition(": ")
            names = [found for found in known[stem] if found == name or fnmatchcase(found, name)]
            if not names:
                raise ValueError(f"{item['number']}: no claim {pattern!r}")
            matched.setdefault(stem, {}).update(dict.fromkeys(names))
        item["matched"] = {stem: list(names) for stem, names in matched.items()}
    return list(items)


def paper() -> str:
    items = paper_items()
    counts = Counter(item["status"] for item in items)
    lines = [f"{counts[status]} {status}" for status in STATUSES if counts[status]]
    rows = []
    for item in items:
        where = [
            f"[{stem}](../../tests/reference_formulas/{stem}.toml): "
            + (names[0] if len(names) == 1 else f"{len(names)} claims")
            for stem, names in item["matched"].items()
        ]
        where += [f"[{Path(link).stem}](../../{link})" for link in item.get("links", ())]
        where += [item["note"]] if "note" in item else []
        rows.append(f"| {item['number']} | {item['statement']} | {item['status']} | {'; '.join(where)} |")
    head = [
        "# The paper, item by item",
        "",
        WRITTEN,
        "",
        f"Of {len(items)} items {', '.join(lines)}.",
        "",
        ABOUT_ITEMS,
        "",
    ]
    return "\n".join([*head, "| item | statement | status | where |", "| --- | --- | --- | --- |", *rows, ""])


PAGES = {"language": language, "commands": commands, "results": results, "gallery": gallery, "paper": paper}

if __name__ == "__main__":
    if "--pictures" in sys.argv[1:]:
        draw()
    for name, page in PAGES.items():
        (HERE / f"{name}.md").write_text(page(), encoding="utf-8")
