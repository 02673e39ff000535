"""A report as a LaTeX document for pdflatex, with figures as separate files."""

from __future__ import annotations

import unicodedata
from string import Template

from derive.printing.documents import TEX_COLUMNS, visible
from derive.printing.mathml import ALIGNED, LETTERS
from derive.report.document import (
    Block,
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
from derive.report.html import asset, cited

ROWS = 40
"""Number of rows above which a table may break over pages."""
LINES = 20
"""Number of lines above which a formula may break over pages."""
CODE_COLUMNS = 120
"""Characters of code per line."""
LEVELS = (r"\subsection*", r"\subsubsection*", r"\paragraph")
SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": "$<$", ">": "$>$", "|": "$|$", '"': "''",
    "–": "--", "—": "---", "−": "$-$", "’": "'", "‘": "`", "“": "``", "”": "''", "…": r"\ldots{}", "∞": r"$\infty$",
    "×": r"$\times$", "·": r"$\cdot$", "²": "$^2$", "³": "$^3$", "→": r"$\to$", "≤": r"$\le$", "≥": r"$\ge$",
    "√": r"$\surd$", "∑": r"$\sum$", "⟨": r"$\langle$", "⟩": r"$\rangle$", "±": r"$\pm$", "≈": r"$\approx$",
    "ᵀ": r"$^{\top}$", "\u00a0": "~",
}  # fmt: skip
GREEK = {letter: f"$\\{name}$" for name, letter in LETTERS.items() if len(letter) == 1 and name != "omicron"}
ACCENTED = {"\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0308": '"', "\u030c": "v", "\u0327": "c"}
CODE_SPECIAL = {"\\": r"{\char92}", "{": r"{\char123}", "}": r"{\char125}"}


def latex_of_report(report: ReportDocument, picture: str = "{name}.pdf") -> str:
    """Return the document. `picture` is the path of the figure relative to the document."""
    parts = []
    numbers = {key: number for number, key in enumerate(cited(report), start=1)}
    for chapter in report.chapters:
        cites = ", ".join(str(numbers[key]) for key in chapter.cites)
        parts += [
            rf"\section{{{escape_words((chapter.title,))}}}\label{{{chapter.key}}}",
            rf"\emph{{{escape_words(chapter.lead)}}}" + (f" [{cites}]" if cites else ""),
            *(_block(block, 0, picture) for block in chapter.blocks),
        ]
    conventions = "\n".join(
        rf"\item[{escape_words((topic,))}] {escape_words(told)}" for topic, told in report.conventions
    )
    return Template(asset("report.tex")).substitute(
        title=escape_words((report.title,)),
        subtitle=escape_words((report.subtitle,)),
        summary="\n\n".join(map(escape_words, report.summary)),
        model="\n".join(f"\\[\n\\fitted{{{line}}}\n\\]" for line in report.model),
        conventions=conventions,
        body="\n\n".join(parts),
        version=escape_words((report.version,)),
        command=rf"\texttt{{{escape_words((report.command,))}}}" if report.command else "",
    )


def escape_words(line: Words) -> str:
    """Return words for LaTeX, with letters that pdflatex does not know replaced."""
    return "".join(f"${part.latex}$" if isinstance(part, Math) else "".join(map(_letter, part)) for part in line)


def _letter(letter: str, special: dict[str, str] = SPECIAL) -> str:
    if letter in special:
        return special[letter]
    if letter.isascii():
        return letter if letter.isprintable() or letter in "\n\t" else " "
    if letter in GREEK:
        return GREEK[letter] if special is SPECIAL else rf"\ensuremath{{{GREEK[letter].strip('$')}}}"
    if letter in SPECIAL:
        return rf"\mbox{{{SPECIAL[letter]}}}"
    parts = unicodedata.normalize("NFD", letter)
    if special is SPECIAL and len(parts) == 2 and parts[0].isascii() and parts[1] in ACCENTED:
        return rf"\{ACCENTED[parts[1]]}{{{parts[0]}}}"
    plain = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return "".join(_letter(part, special) for part in plain) or f"[U+{ord(letter):04X}]"


def _verbatim(text: str) -> str:
    lines = [part for line in text.splitlines() for part in _wrapped(line.expandtabs(4).rstrip())]
    escaped = ("".join(_letter(letter, CODE_SPECIAL) for letter in line) for line in lines)
    return "\\begin{alltt}\\fontsize{7}{8.6}\\selectfont\n" + "\n".join(escaped) + "\n\\end{alltt}"


def _wrapped(line: str) -> list[str]:
    """Return a line of code, broken to the width of the page."""
    if len(line) <= CODE_COLUMNS:
        return [line]
    rest = line[CODE_COLUMNS:]
    width = CODE_COLUMNS - 8
    return [line[:CODE_COLUMNS], *(" " * 8 + rest[k : k + width] for k in range(0, len(rest), width))]


def _block(block: Block, level: int, picture: str) -> str:
    match block:
        case Prose():
            return escape_words(block.words)
        case Heading():
            return rf"{LEVELS[min(level, 2)]}{{{escape_words(block.words)}}}"
        case DisplayedEquation():
            remark = escape_words(block.remark)
            if not remark:
                return _displayed(block.latex)
            if "aligned" not in block.latex and visible(block.latex) + len(remark) <= TEX_COLUMNS:
                return _displayed(rf"{block.latex} \quad \text{{({remark})}}")
            return _displayed(block.latex) + rf"\begin{{center}}\small({remark})\end{{center}}"
        case Items():
            return _items(block)
        case ReportTable():
            return _table(block)
        case CodeListing():
            return _verbatim(block.text)
        case ReportFigure():
            return (
                "\\begin{center}\n"
                rf"\includegraphics[width=0.95\linewidth]{{{picture.format(name=block.name)}}}"
                f"\n\n\\small {escape_words((block.caption,))}\n\\end{{center}}"
            )
        case Fold():
            inner = "\n\n".join(_block(part, level + 1, picture) for part in block.blocks)
            return rf"{LEVELS[min(level, 2)]}{{{escape_words(block.title)}}}" + "\n" + inner
        case References():
            entries = "\n".join(rf"\item {escape_words((entry,))}." for _, entry in block.entries)
            return "\\begin{enumerate}\n" + entries + "\n\\end{enumerate}"


def _displayed(source: str) -> str:
    """Return a numbered formula, scaled down if it is wide, or broken over pages if it is very long."""
    whole = ALIGNED.fullmatch(source.strip())
    body = whole[1].strip() if whole else ""
    lines = body.split("\\\\\n")
    if len(lines) > LINES and "\\begin" not in body:
        return "\\begin{align}\n" + " \\notag \\\\\n".join(line.rstrip() for line in lines) + "\n\\end{align}"
    return "\\begin{equation}\n\\fitted{" + source + "}\n\\end{equation}"


def _items(items: Items) -> str:
    lines = []
    for statement, key, particulars in items.entries:
        lines.append(rf"\item {escape_words(statement)} (section~\ref{{{key}}})")
        if particulars:
            inner = "\n".join(rf"\item {escape_words(line)}" for line in particulars)
            lines.append("\\begin{itemize}\n" + inner + "\n\\end{itemize}")
    return "\\begin{enumerate}\n" + "\n".join(lines) + "\n\\end{enumerate}"


def _table(table: ReportTable) -> str:
    shape = "l" * table.text_columns + "r" * (len(table.columns) - table.text_columns)
    head = " & ".join(escape_words((name,)) for name in table.columns)
    lines = [" & ".join(escape_words(part) for part in row) + r" \\" for row in table.rows]
    chunks = [lines[k : k + ROWS] for k in range(0, len(lines), ROWS)] or [[]]
    return "\n\n".join(
        "\\begin{center}\\fittedtext{\\begin{tabular}{" + shape + "}\n\\hline\n" + head + " \\\\\n\\hline\n"
        + "\n".join(chunk) + "\n\\hline\n\\end{tabular}}\\end{center}"
        for chunk in chunks
    )  # fmt: skip
