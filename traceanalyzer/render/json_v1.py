"""The JSON report, version 1 (numbers.md)."""

from __future__ import annotations

import json

from traceanalyzer.report.model import ReportData


def render_json(report: ReportData, *, indent: int | None = 1) -> str:
    """Return the report as standard JSON: no NaN, fields in their documented order, one newline at the end.

    All but ASCII is escaped, so that neither a terminal nor a wrong encoding can be hurt by a name.
    """
    return json.dumps(report.to_dict(), indent=indent, allow_nan=False, ensure_ascii=True) + "\n"
