"""Subsets of the font STIX Two Math that ziamath ships, byte-identical for equal letters."""

from __future__ import annotations

import copy
from importlib.metadata import distribution
from io import BytesIO
from typing import Any

from fontTools import subset

WIDE = {"ˆ": "\u0302", "˜": "\u0303"}
"""Stretching accents by combining form. The combining forms have no width, so Chromium clips them."""


def _stretch_like(font: Any, accent: str, combining: str) -> None:
    """Give an accent the wider glyphs of another."""
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
