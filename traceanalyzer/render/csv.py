"""The kernel table as CSV, with the column names of the JSON report."""

from __future__ import annotations

import csv
import io
import unicodedata
from dataclasses import fields

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import visible
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.units import KernelRow

_COLUMNS = [f.name for f in fields(KernelRow) if f.name not in ("variants", "p50_ci95_us")]
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_BLANK = "\ufeff\u200b\u200c\u200d\u2060\0"
"""Shown as nothing by a spreadsheet, and no white space to Python."""


def render_csv(report: ReportData) -> str:
    """Return kernels, copies and the variants of each, one row per line, ``table`` saying which.

    An absent value is an empty cell. Text that a spreadsheet would run as a formula gets an apostrophe, and
    characters that act on a terminal are escaped, since a CSV is printed there when no file is named.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", *_COLUMNS, "p50_ci95_low_us", "p50_ci95_high_us"])
    for table, rows in (("kernel", report.kernels), ("copy", report.copies)):
        for row in rows:
            writer.writerow([table, *_cells(row)])
            for variant in row.variants:
                writer.writerow([f"{table} variant", *_cells(variant)])
    return out.getvalue()


def _cells(row: KernelRow) -> list[object]:
    low, high = row.p50_ci95_us or (None, None)
    values = [getattr(row, c) for c in _COLUMNS]
    return [safe_cell(v) for v in (*values, low, high)]


def safe_cell(value: object) -> object:
    """Return a value for a cell: None is empty, text neither acts on a terminal nor runs in a spreadsheet."""
    if isinstance(value, str):
        shown = visible(value)
        return "'" + shown if _acts(value) else shown
    return "" if value is None else value


def csv_report(report: ReportData, settings: RenderSettings) -> str:  # noqa: ARG001 - CSV holds every row, always
    """Return the tables of kernels and copies."""
    return render_csv(report)


def _acts(text: str) -> bool:
    """Return whether a spreadsheet may take the text for a formula: also behind blanks, and in full-width characters."""
    first = text.lstrip().lstrip(_BLANK).lstrip()[:1]
    return text.startswith(_FORMULA) or unicodedata.normalize("NFKC", first).startswith(_FORMULA)
