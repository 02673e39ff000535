"""Syntax highlighting of Python source."""

from __future__ import annotations

import io
import keyword
import tokenize
from html import escape


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
