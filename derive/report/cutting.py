"""Cuts the font files of pages out of STIX Two Math: `python -m derive.report.cutting STIXTwoMath-Regular.ttf`.

The package ziamath brings that file (it is not needed otherwise). The same file gives the same bytes.
"""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

from fontTools import subset

from derive.report.fonts import FAMILY, PARTS

WIDE = {"ˆ": "\u0302", "˜": "\u0303"}
"""Accents that stretch as their combining forms do. Those have no width, and Chromium leaves parts of them undrawn."""


def _stretch_like(font: Any, accent: str, combining: str) -> None:
    """Give an accent the wider shapes of another."""
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


def write_parts(source: Path, directory: Path) -> None:
    """Write each part. Shapes for small indices are left out: they would double the files for hardly any difference."""
    for name, letters in PARTS.items():
        options = subset.Options()
        options.flavor, options.hinting, options.layout_features = "woff", False, ["dtls"]
        options.name_IDs, options.recalc_timestamp = [0, 1, 2, 3, 4, 5, 6, 7, 13, 14], False
        font = subset.load_font(str(source), options)
        missing = sorted(set(letters) - set(map(chr, font.getBestCmap())))
        if missing:
            raise SystemExit(f"{source} has no {' '.join(missing)}")
        for accent, combining in WIDE.items():
            _stretch_like(font, accent, combining)
        cutter = subset.Subsetter(options)
        cutter.populate(text=letters)
        cutter.subset(font)
        for record in font["name"].names:
            if record.nameID in (1, 3, 4, 6):
                record.string = FAMILY.replace(" ", "") if record.nameID == 6 else FAMILY
        subset.save_font(font, str(directory / name), options)


if __name__ == "__main__":
    write_parts(Path(sys.argv[1]), Path(__file__).parent / "assets")
