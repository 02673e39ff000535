"""A derivation as one document: a page that opens offline, or a LaTeX file."""

from derive.report.document import ComparisonRow, ComparisonSection, ReportDocument, ReportFigure
from derive.report.html import html_of_report
from derive.report.latex import latex_of_report
from derive.report.writing import report_of

__all__ = [
    "ComparisonSection",
    "ComparisonRow",
    "ReportFigure",
    "ReportDocument",
    "html_of_report",
    "latex_of_report",
    "report_of",
]
