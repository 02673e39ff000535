"""A derivation as one document: a page that opens offline, or a LaTeX file."""

from derive.report.document import Comparison, ComparisonRow, Figure, Report
from derive.report.html import html_of_report
from derive.report.latex import latex_of_report
from derive.report.writing import report_of

__all__ = ["Comparison", "ComparisonRow", "Figure", "Report", "html_of_report", "latex_of_report", "report_of"]
