"""Print records and expressions as plain text, LaTeX and Markdown."""

from derive.printing.documents import (
    equations_of,
    latex,
    latex_of_record,
    markdown_of_derivation,
    sections_as_data,
    text,
    text_of_record,
)
from derive.printing.lettering import lettered, letters_of

__all__ = [
    "equations_of",
    "latex",
    "latex_of_record",
    "lettered",
    "letters_of",
    "markdown_of_derivation",
    "sections_as_data",
    "text",
    "text_of_record",
]
