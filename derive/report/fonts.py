"""Mathematical fonts embedded in a page, so that it looks the same where they are not installed.

They are subsets of STIX Two Math (SIL Open Font License 1.1), which the package ziamath ships, with the letters that
`derive.printing.mathml` writes, byte-identical for equal letters. Subsetting takes a second or two; the results are
cached.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import string
import unicodedata
from functools import cache
from importlib.metadata import distribution, version
from io import BytesIO
from typing import Any

from fontTools import subset

from derive.printing import mathml
from derive.support.extras import check_installed
from derive.support.places import kept

WIDE = {"ˆ": "\u0302", "˜": "\u0303"}
"""Stretching accents by combining form. The combining forms have no width, so Chromium clips them."""


def _stretch_like(font: Any, accent: str, combining: str) -> None:
    """Let an accent use the wider glyphs of another accent."""
    letters, variants = font.getBestCmap(), font["MATH"].table.MathVariants
    glyphs, built = variants.HorizGlyphCoverage.glyphs, variants.HorizGlyphConstruction
    wider = copy.deepcopy(built[glyphs.index(letters[ord(combining)])])
    own = wider.MathGlyphVariantRecord[0]
    own.VariantGlyph = letters[ord(accent)]
    own.AdvanceMeasurement = font["hmtx"][own.VariantGlyph][0]
    table = {**dict(zip(glyphs, built, strict=True)), own.VariantGlyph: wider}
    variants.HorizGlyphCoverage.glyphs = sorted(table, key=font.getGlyphID)
    variants.HorizGlyphConstruction = [table[glyph] for glyph in variants.HorizGlyphCoverage.glyphs]
    variants.HorizGlyphCount = len(table)


def cut_font(letters: str, family: str) -> bytes:
    """Return a font file (WOFF) with the letters, under a name of its own, since the original name is reserved.

    Glyph variants for small indices are omitted; they would double the file.
    """
    options = subset.Options()
    options.flavor, options.hinting, options.layout_features = "woff", False, ["dtls"]
    options.name_IDs, options.recalc_timestamp = [0, 1, 2, 3, 4, 5, 6, 7, 13, 14], False
    source = distribution("ziamath").locate_file("ziamath/fonts/STIXTwoMath-Regular.ttf")
    font = subset.load_font(str(source), options)
    for accent, combining in WIDE.items():
        _stretch_like(font, accent, combining)
    cutter = subset.Subsetter(options)
    cutter.populate(text=letters)
    cutter.subset(font)
    for record in font["name"].names:
        if record.nameID in (1, 3, 4, 6):
            record.string = family.replace(" ", "") if record.nameID == 6 else family
    buffer = BytesIO()
    subset.save_font(font, buffer, options)
    return buffer.getvalue()


KIND = "fonts"
FAMILY = "Report Math"
NOTICE = (
    "Mathematics: parts of STIX Two Math, Copyright 2001-2020 The STIX Fonts Project Authors, SIL Open Font License 1.1"
)
LATIN = string.ascii_letters
GREEK = "ΓΔΘΛΞΠΣΥΦΨΩαβγδεζηθικλμνξοπρςστυφχψωϵϑϕϱϖϰ"
DRAWN = "√′"
"""Glyphs that MathML elements draw without containing them: radicals and primes."""
SPACES = "\u2002\u2003\u2009\u200a\u2061\u2062\u2063\xa0"


def slanted(letter: str) -> str:
    """Return the glyph that a browser draws for a single-letter identifier."""
    if letter == "h":
        return "ℎ"
    shape = "CAPITAL" if letter.isupper() else "SMALL"
    name = unicodedata.name(letter).removeprefix("GREEK ").removeprefix("LATIN ")
    name = name.removeprefix(f"{shape} LETTER ").replace("LUNATE EPSILON SYMBOL", "EPSILON SYMBOL")
    unicode_name = f"MATHEMATICAL ITALIC {name}" if name.endswith("SYMBOL") else f"MATHEMATICAL ITALIC {shape} {name}"
    return unicodedata.lookup(unicode_name)


def _common() -> str:
    tables = (mathml.LETTERS, mathml.RELATIONS, mathml.BINARY, mathml.ORDINARY, mathml.BIG, mathml.FENCES,
              mathml.ACCENTS)  # fmt: skip
    signs = "".join(value for table in tables for value in table.values())
    plain = "".join(map(chr, range(0x20, 0x7F)))
    return "".join(sorted({*plain, *signs, *SPACES, *GREEK, *DRAWN, *map(slanted, LATIN + GREEK)}))


def _alphabets() -> str:
    styles = sorted(set(mathml.ALPHABETS.values()))
    letters = {mathml.styled(letter, style) for style in styles for letter in LATIN + string.digits}
    return "".join(sorted(letters - set(_common())))


PARTS = {"mathematics": _common(), "alphabets": _alphabets()}
"""Font subsets with their letters. A page embeds the second, rarely needed one only if it uses it."""


@cache
def font_of(part: str) -> bytes:
    """Return the font file (WOFF) with the letters of a subset."""
    check_installed("ziamath")
    place, letters = kept(), PARTS[part]
    sources = " ".join(f"{name} {version(name)}" for name in ("ziamath", "fonttools"))
    question = f"{part} {hashlib.sha256(letters.encode()).hexdigest()} {sources}"
    font = None if place is None else place.read(KIND, question)
    if font is None:
        font = cut_font(letters, FAMILY)
        if place is not None:
            place.write(KIND, question, font)
    return font


def font_faces(page: str) -> str:
    """Return the CSS rules that embed the letters of a page."""
    needed = [name for name, letters in PARTS.items() if name == "mathematics" or set(letters) & set(page)]
    rules = [f"/* {NOTICE} */"]
    for name in needed:
        data = base64.b64encode(font_of(name)).decode("ascii")
        reach = f" unicode-range: {_ranges(PARTS[name])};" if len(needed) > 1 else ""
        rules.append(f'@font-face {{ font-family: "{FAMILY}";{reach} src: url(data:font/woff;base64,{data}); }}')
    return "\n".join(rules)


def _ranges(letters: str) -> str:
    """Return letters as Unicode ranges in CSS notation."""
    runs: list[list[int]] = []
    for code in sorted(map(ord, letters)):
        if runs and code == runs[-1][1] + 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return ", ".join(f"U+{first:X}" if first == last else f"U+{first:X}-{last:X}" for first, last in runs)
