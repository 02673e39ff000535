"""Gather the sources of the documentation site: README, manual, executed notebooks, declarations and Python reference.

    python notebooks/site/pages.py DIRECTORY

writes them as Markdown that Sphinx reads. A link of a page is resolved in the repository first, and then points to the
page made of that file, so that the same text works on the site and in a checkout. Formulas become MathML, which
browsers draw without a script.
"""

from __future__ import annotations

import base64
import html
import json
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from derive.words import VERBS

ROOT = Path(__file__).parents[2]
MANUAL = "notebooks/manual/"
PLACES = {
    "README.md": "index.md",
    MANUAL + "README.md": "manual.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""Pages whose names differ from those of their files."""
SECTIONS = {"Notebooks": "notebooks/*.md", "Declarations": "source/**/*.md"}
"""Parts of the navigation beside those of the manual: a caption and a pattern of pages."""
LINK = re.compile(r"(\]\()([\w./-]+)((?:#[\w-]+)?\))")
FOR_EDITORS = re.compile(r"^Written by `[^`]+` from the code; do not edit\.\n+", flags=re.M)
"""A note in generated pages of the manual that readers of the site do not need."""
FENCE = re.compile(r"^(```.*?^```$)", flags=re.M | re.S)
INLINE_CODE = re.compile(r"(`[^`\n]+`)")
DISPLAY, INLINE = re.compile(r"\$\$(.+?)\$\$", flags=re.S), re.compile(r"\$([^$\n]+(?:\n[^$\n]+)?)\$")
LEXERS = {".py": "python", ".toml": "toml", ".cff": "yaml"}


def place_of(path: str) -> str:
    """Return the place on the site of a file of the repository."""
    if path in PLACES:
        return PLACES[path]
    if path.endswith(".ipynb"):
        return f"notebooks/{Path(path).stem}.md"
    if path.startswith(MANUAL):
        return path.removeprefix(MANUAL)
    return path if path.endswith(".png") else f"source/{path}.md"


def split_prose(text: str) -> Iterator[tuple[bool, str]]:
    """Return the parts of a Markdown text in order, each with whether it is prose rather than code."""
    for k, block in enumerate(FENCE.split(text)):
        if k % 2:
            yield False, block
        else:
            yield from ((j % 2 == 0, part) for j, part in enumerate(INLINE_CODE.split(block)))


def resolve(target: str, source: str) -> str:
    """Return the file of the repository that a link in another one leads to."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def find_links(text: str, source: str) -> list[str]:
    """Return the files of the repository that a page links to."""
    matches = [match for is_prose, part in split_prose(text) if is_prose for match in LINK.finditer(part)]
    return [resolve(match[2], source) for match in matches]


def to_mathml(match: re.Match[str]) -> str:
    """Return a formula of LaTeX as MathML."""
    return str(convert(match[1], display="block" if match[0].startswith("$$") else "inline"))


def translate(text: str, source: str) -> str:
    """Return the text of a page with links to pages of the site and formulas in MathML."""
    folder = posixpath.dirname(place_of(source)) or "."

    def move(match: re.Match[str]) -> str:
        return match[1] + posixpath.relpath(place_of(resolve(match[2], source)), folder) + match[3]

    def of_prose(part: str) -> str:
        return LINK.sub(move, INLINE.sub(to_mathml, DISPLAY.sub(to_mathml, part)))

    return "".join(of_prose(part) if is_prose else part for is_prose, part in split_prose(text))


def write_notebook(source: str, out: Path) -> list[str]:
    """Write the page of an executed notebook and its pictures; return the files that it links to."""
    parts: list[str] = []
    links: list[str] = []
    page = out / place_of(source)
    for number, cell in enumerate(json.loads((ROOT / source).read_text(encoding="utf-8"))["cells"]):
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            links += find_links(text, source)
            parts.append(translate(text, source))
        else:
            parts.append(f"```python\n{text}\n```")
        for k, output in enumerate(cell.get("outputs", ())):
            data: dict[str, Any] = output.get("data", {})
            if "image/png" in data:
                picture = page.with_name(f"{page.stem}_{number}_{k}.png")
                picture.write_bytes(base64.b64decode("".join(data["image/png"])))
                parts.append(f"![output of the cell above]({picture.name})")
            elif shown := "".join(output.get("text", data.get("text/plain", ()))).strip("\n"):
                lines = html.escape(shown).replace("\n\n", "\n&#8203;\n")  # a blank line would end the block
                parts.append(f"<pre class='output'>{lines}</pre>")
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return links


def write_page(source: str, out: Path) -> list[str]:
    """Write the page of a file of the repository; return the files that it links to."""
    page = out / place_of(source)
    page.parent.mkdir(parents=True, exist_ok=True)
    if source.endswith(".ipynb"):
        return write_notebook(source, out)
    if source.endswith(".png"):
        shutil.copyfile(ROOT / source, page)
        return []
    text = (ROOT / source).read_text(encoding="utf-8")
    if source.endswith(".md"):
        page.write_text(translate(FOR_EDITORS.sub("", text), source), encoding="utf-8")
        return find_links(text, source)
    title = Path(source).name if Path(source).suffix else source
    lexer = LEXERS.get(Path(source).suffix, "text")
    page.write_text(f"# {title}\n\n```{lexer}\n{text.rstrip()}\n```\n", encoding="utf-8")
    return []


def write_reference(out: Path) -> None:
    """Write the page of the verbs and results, which Sphinx fills in from their docstrings."""
    text = "[Python](python.md) is the tour, [the language](language.md) has the words of a declaration."
    parts = ["# Python reference", text]
    for word in (word for words in VERBS.values() for word in words):
        kind = "autoclass" if word[0].isupper() else "autofunction"
        parts.append(f"## {word}\n\n```{{eval-rst}}\n.. {kind}:: derive.{word}\n```")
    (out / "api.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def navigation(out: Path) -> str:
    """Return the tables of contents: the lists of the manual's overview, then all notebooks and linked sources."""
    trees = {}
    overview = (ROOT / MANUAL / "README.md").read_text(encoding="utf-8")
    for caption, rows in re.findall(r"^\| ([a-z ]+) \| \|\n\| --- \| --- \|\n((?:\|.*\n)+)", overview, flags=re.M):
        trees[caption.capitalize()] = re.findall(r"\]\((\w+)\.md\)", rows)
    trees["Look up"].append("api")
    for caption, pattern in SECTIONS.items():
        trees[caption] = [p.relative_to(out).as_posix()[:-3] for p in sorted(out.glob(pattern))]
    trees["Project"] = ["manual", "contributing", "changelog"]
    return "".join(
        f"\n```{{toctree}}\n:hidden:\n:maxdepth: 1\n:caption: {caption}\n\n" + "\n".join(pages) + "\n```\n"
        for caption, pages in trees.items()
    )


def gather(out: Path) -> None:
    """Write all sources of the site: the manual, and whatever it links to."""
    waiting = [*PLACES, *(path.relative_to(ROOT).as_posix() for path in sorted((ROOT / MANUAL).glob("*.md")))]
    waiting += [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    written: set[str] = set()
    while waiting:
        source = waiting.pop(0)
        if source not in written and (ROOT / source).is_file():  # Sphinx reports a link that leads nowhere
            written.add(source)
            waiting += write_page(source, out)
    write_reference(out)
    with (out / "index.md").open("a", encoding="utf-8") as index:
        index.write(navigation(out))


if __name__ == "__main__":
    gather(Path(sys.argv[1]))
