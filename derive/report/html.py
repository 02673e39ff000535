"""A report as one self-contained HTML page with style, script, mathematics, highlighted code and figures inside."""

from __future__ import annotations

import base64
import io
import keyword
import re
import tokenize
from html import escape
from importlib.resources import files
from string import Template

from derive.printing.mathml import UnknownMathematics, mathml, mathml_pieces
from derive.report.document import (
    Block,
    Chapter,
    CodeListing,
    DisplayedEquation,
    Fold,
    Heading,
    Items,
    Math,
    Prose,
    References,
    ReportDocument,
    ReportFigure,
    ReportTable,
    Words,
)
from derive.report.fonts import font_faces

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*[a-z])")
MANY_TERMS = 40
"""Number of terms above which a formula is collapsed."""


def html_of_report(report: ReportDocument) -> str:
    """Return the page; the same report gives the same bytes."""
    numbers = {chapter.key: number for number, chapter in enumerate(report.chapters, start=1)}
    page = _Page(numbers, {key: k for k, key in enumerate(cited(report), start=1)})
    first, *others = (page.chapter(chapter) for chapter in report.chapters)
    chapters = "\n".join(others)
    contents = "".join(
        f'<li><a href="#{chapter.key}"><span class="number">{numbers[chapter.key]}</span> '
        f"{escape(chapter.title)}</a></li>"
        for chapter in report.chapters
    )
    conventions = "".join(
        f"<div><dt>{escape(topic)}</dt><dd>{page.words(told)}</dd></div>" for topic, told in report.conventions
    )
    model = "\n".join(f'<div class="formula">{page.formula(line)[0]}</div>' for line in report.model)
    return Template(asset("page.html")).substitute(
        name=escape(report.name),
        title=escape(report.title),
        subtitle=f'<p class="subtitle">{escape(report.subtitle)}</p>' if report.subtitle else "",
        fonts=font_faces(first + chapters + conventions + model),
        style=asset("report.css").strip(),
        script=asset("report.js").strip(),
        summary="\n".join(f"<p>{page.words(told)}</p>" for told in report.summary),
        model=f'<div class="model">\n{model}\n</div>' if model else "",
        command=f"<code>{escape(report.command)}</code>" if report.command else "",
        version=escape(report.version),
        contents=contents,
        first=first,
        conventions=conventions,
        chapters=chapters,
    )


def asset(name: str) -> str:
    """Return a file of this package's assets."""
    return (files("derive.report") / "assets" / name).read_text(encoding="utf-8")


def cited(report: ReportDocument) -> tuple[str, ...]:
    """Return the keys of the literature in the order of their numbers."""
    listed = [block for chapter in report.chapters for block in chapter.blocks if isinstance(block, References)]
    return tuple(key for block in listed for key, _ in block.entries)


class _Page:
    """Writer of the blocks of one page, with a counter of equations."""

    def __init__(self, numbers: dict[str, int], references: dict[str, int]):
        self.numbers = numbers
        self.references = references
        self.number = 0
        self.equations = 0

    def chapter(self, chapter: Chapter) -> str:
        self.number, self.equations = self.numbers[chapter.key], 0
        opened = " open" if chapter.opened else ""
        body = "\n".join(self.block(block) for block in chapter.blocks)
        return (
            f'<details class="chapter" id="{chapter.key}"{opened}>\n'
            f'<summary><h2><span class="number">{self.number}</span> {escape(chapter.title)}</h2></summary>\n'
            f'<p class="lead">{self.words(chapter.lead)}{self._cites(chapter.cites)}</p>\n{body}\n</details>'
        )

    def _cites(self, keys: tuple[str, ...]) -> str:
        links = ", ".join(f'<a href="#reference-{key}">{self.references[key]}</a>' for key in keys)
        return f' <span class="together">[{links}]</span>' if links else ""

    def words(self, line: Words) -> str:
        written = [
            self._inline(part) if isinstance(part, Math) else OPTION.sub(r"<code>\1</code>", escape(part))
            for part in line
        ]
        for k, part in enumerate(line[:-1]):
            mark = re.match(r"[.,;:)]+", written[k + 1]) if isinstance(part, Math) else None
            if mark:  # a line never begins with a full stop
                written[k] = f'<span class="together">{written[k]}{mark[0]}</span>'
                written[k + 1] = written[k + 1][mark.end() :]
        return "".join(written)

    def _inline(self, part: Math) -> str:
        try:
            return mathml(part.latex)
        except UnknownMathematics:
            return f"<code>{escape(part.latex)}</code>"

    def block(self, block: Block) -> str:
        match block:
            case Prose():
                return f"<p>{self.words(block.words)}</p>"
            case Heading():
                return f"<h3>{self.words(block.words)}</h3>"
            case DisplayedEquation():
                return self._equation(block)
            case Items():
                return self._items(block)
            case ReportTable():
                return self._table(block)
            case CodeListing():
                body = highlighted(block.text) if block.python else escape(block.text)
                return f'<pre class="code" tabindex="0"><code>{body}</code></pre>'
            case ReportFigure():
                wide, narrow = (
                    "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")
                    for svg in (block.svg, block.narrow_svg)
                )
                return (
                    f'<figure><picture><source media="(max-width: 40rem)" srcset="{narrow}">'
                    f'<img alt="{escape(block.caption)}" src="{wide}"></picture>'
                    f"<figcaption>{escape(block.caption)}</figcaption></figure>"
                )
            case Fold():
                opened = " open" if block.opened else ""
                inner = "\n".join(self.block(part) for part in block.blocks)
                return f"<details{opened}>\n<summary>{self.words(block.title)}</summary>\n{inner}\n</details>"
            case References():
                lines = "\n".join(f'<li id="reference-{key}">{escape(entry)}.</li>' for key, entry in block.entries)
                return f'<ol class="references">\n{lines}\n</ol>'

    def formula(self, source: str) -> tuple[str, int]:
        """Return a displayed formula and the number of its terms."""
        try:
            pieces = mathml_pieces(source)
        except UnknownMathematics:
            return f'<code class="raw">{escape(source)}</code>', 0
        return "<wbr>".join(pieces), len(pieces)

    def _equation(self, equation: DisplayedEquation) -> str:
        self.equations += 1
        label = f"{self.number}.{self.equations}"
        shown, terms = self.formula(equation.latex)
        body = f'<div class="formula" tabindex="0">{shown}</div>'
        if terms > MANY_TERMS:
            body = f'<details class="long"><summary>{terms} terms</summary>{body}</details>'
        remark = f'<div class="remark">{self.words(equation.remark)}</div>' if equation.remark else ""
        return (
            f'<div class="equation" id="eq-{label}" data-latex="{escape(equation.latex)}">'
            f'<div class="told">{body}{remark}</div>'
            f'<div class="side"><button type="button" class="copy" title="Copy this equation as LaTeX" '
            f'aria-label="Copy equation {label} as LaTeX">TeX</button>'
            f'<a class="label" href="#eq-{label}">({label})</a></div></div>'
        )

    def _items(self, items: Items) -> str:
        lines = []
        for statement, key, particulars in items.entries:
            inner = "".join(f"<li>{self.words(line)}</li>" for line in particulars)
            lines.append(
                f"<li><p>{self.words(statement)} "
                f'<a class="from" href="#{key}">section {self.numbers[key]}</a></p>'
                + (f"<ul>{inner}</ul>" if inner else "")
                + "</li>"
            )
        return f'<ol class="assumptions">{"".join(lines)}</ol>'

    def _table(self, table: ReportTable) -> str:
        def cell(tag: str, column: int, inner: str) -> str:
            name = f' data-column="{escape(table.columns[column])}"' if tag == "td" and table.text_columns > 1 else ""
            numeric = f' class="numeric"{name}' if column >= table.text_columns else ""
            return f"<{tag}{numeric}>{inner}</{tag}>"

        head = "".join(cell("th", k, escape(name)) for k, name in enumerate(table.columns))
        rows = "\n".join(
            "<tr>" + "".join(cell("td", k, self.words(part)) for k, part in enumerate(row)) + "</tr>"
            for row in table.rows
        )
        inner = f"<thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody>"
        named = ' class="named"' if table.text_columns > 1 else ""  # on a narrow page each row is a paragraph
        return f'<div class="table" tabindex="0"><table{named}>{inner}</table></div>'


def highlighted(source: str) -> str:
    """Return the source as HTML with spans of class c, s, n, k, d: comments, strings, numbers, keywords, definitions.

    Source that is not Python is only escaped.
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, SyntaxError):
        return escape(source)
    lines = source.splitlines(keepends=True)
    parts: list[str] = []
    line, column = 1, 0

    def plain_until(row: int, end: int) -> None:
        nonlocal line, column
        while line < row and line <= len(lines):
            parts.append(escape(lines[line - 1][column:]))
            line, column = line + 1, 0
        if line <= len(lines):
            parts.append(escape(lines[line - 1][column:end]))
        column = end

    before = ""
    for token in tokens:
        kind = _kind(token, before)
        if token.type in (tokenize.NAME, tokenize.OP):
            before = token.string
        if kind and token.string:
            plain_until(*token.start)
            parts.append(f'<span class="{kind}">{escape(token.string)}</span>')
            line, column = token.end
    plain_until(len(lines) + 1, 0)
    return "".join(parts)


def _kind(token: tokenize.TokenInfo, before: str) -> str:
    if token.type == tokenize.COMMENT:
        return "c"
    if token.type in (tokenize.STRING, getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_MIDDLE", -1),
                      getattr(tokenize, "FSTRING_END", -1)):  # fmt: skip
        return "s"
    if token.type == tokenize.NUMBER:
        return "n"
    if token.type == tokenize.NAME:
        if keyword.iskeyword(token.string):
            return "k"
        return "d" if before in ("def", "class") else ""
    return ""
