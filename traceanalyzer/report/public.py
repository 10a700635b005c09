"""The report as Python users see it: pandas frames, dict, Markdown, a notebook view."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from traceanalyzer.doctor.gate import fails
from traceanalyzer.report.model import ReportData, Verdict

if TYPE_CHECKING:
    import pandas as pd


class Report:
    """What :func:`traceanalyzer.analyze` returns.

    ``kernels``, ``copies``, ``streams``, ``devices``, ``threads``, ``ops``, ``idle``, ``steps`` and ``ledger`` are pandas frames with
    the columns documented in docs/schema.md (pandas is imported on first use); ``data`` is the frozen report.
    """

    def __init__(self, data: ReportData) -> None:
        self.data = data

    @property
    def verdict(self) -> Verdict:
        """Status (``ok``, ``suspect``, ``cannot-judge``) and headline."""
        return self.data.verdict

    def _frame(self, table: str) -> pd.DataFrame:
        from traceanalyzer.report.frames import report_frame

        return report_frame(table, [asdict(row) for row in getattr(self.data, table)])

    @property
    def kernels(self) -> pd.DataFrame:
        """One row per kernel name, largest total first."""
        return self._frame("kernels")

    @property
    def copies(self) -> pd.DataFrame:
        """Copies and fills, with the columns of ``kernels``."""
        return self._frame("copies")

    @property
    def devices(self) -> pd.DataFrame:
        """One row per device: busy, idle, queue state."""
        return self._frame("devices")

    @property
    def streams(self) -> pd.DataFrame:
        """One row per stream: gaps, waits, starvation."""
        return self._frame("streams")

    @property
    def threads(self) -> pd.DataFrame:
        """One row per launching host thread: dispatch, raw and steady."""
        return self._frame("threads")

    @property
    def ops(self) -> pd.DataFrame:
        """One row per operation (graph replays)."""
        return self._frame("ops")

    @property
    def idle(self) -> pd.DataFrame:
        """One row per device: long pauses and late launches."""
        return self._frame("idle")

    @property
    def steps(self) -> pd.DataFrame:
        """One row per kind of step: median, interval, slowest and why."""
        return self._frame("steps")

    @property
    def ledger(self) -> pd.DataFrame:
        """One row per cause: window, class, name, within, us, share and where the longest begins; largest first per window."""
        from traceanalyzer.report.frames import ledger_frame

        return ledger_frame(self.data.ledger)

    @property
    def worth(self) -> pd.DataFrame:
        """One row per change and window: what it would make of the period, or why that cannot be said."""
        from traceanalyzer.report.frames import worth_frame

        return worth_frame(self.data.ledger)

    @property
    def findings(self) -> pd.DataFrame:
        """One row per finding, gravest first."""
        return self._frame("findings")

    def fails(self, level: str) -> bool:
        """Return whether a finding is of this level (``note``, ``warning``, ``error``) or above."""
        return fails(self.data.findings, level)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON report, version 1, as a dict."""
        return self.data.to_dict()

    def to_json(self) -> str:
        """Return the JSON report, version 1, as text."""
        from traceanalyzer.render.json_v1 import render_json

        return render_json(self.data)

    def to_markdown(self) -> str:
        """Return the report for a pull request."""
        from traceanalyzer.render.markdown import render_markdown

        return render_markdown(self.data)

    def to_html(self) -> str:
        """Return the page that ``--format html`` writes; it has charts if the options of the analysis asked for ``figures``."""
        from traceanalyzer.render.page.content import render_page

        return render_page(self.data)

    def _repr_html_(self) -> str:
        from traceanalyzer.render.page.document import render_html

        return render_html(self.data)

    def __repr__(self) -> str:
        return f"<traceanalyzer report of {self.data.trace.name}: {self.data.verdict.headline}>"
