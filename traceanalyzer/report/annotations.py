"""What an annotated trace shows beside the original: the verdict, the rows each finding points at, and counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from traceanalyzer.analysis.annotations import CounterTrack, counters
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.report.model import FindingRow, ReportData


@dataclass(frozen=True)
class Mark:
    """A row a finding points at. ``what`` and ``note`` are the report's words, ``name`` that of the row in the trace.

    ``start_ns`` is absolute, ``at_us`` counts as the report does; ``lane`` numbers rows of one finding that lie over each other.
    """

    finding: FindingRow
    what: str
    note: str
    name: str
    start_ns: int
    dur_ns: int | None
    at_us: float
    lane: int = 0


@dataclass(frozen=True)
class Annotations:
    """Everything that is added. ``no_counters`` says why there are none, ``thinned`` which tracks lost steps.

    ``begin_ns`` to ``end_ns`` (absolute) is what the trace's device rows span, where the verdict is drawn.
    """

    report: ReportData
    begin_ns: int
    end_ns: int
    marks: list[Mark]
    findings_without_rows: list[FindingRow]
    counters: list[CounterTrack]
    no_counters: str
    thinned: list[str] = field(default_factory=list)


def annotate_report(
    analysis: Analysis, findings: Sequence[Finding], report: ReportData, most_steps: int
) -> Annotations:
    """Return what to add for a report: each row that stands as evidence in it, and at most ``most_steps`` counter steps."""
    rows, origin = analysis.trace.activities, analysis.trace.meta.origin_ns
    tracks, reason = counters(analysis, most_steps)
    marks = []
    for finding, shown in zip(findings, report.findings, strict=True):
        of_finding: list[Mark] = []
        for row, words in zip(finding.evidence, shown.evidence, strict=False):
            mark = Mark(shown, words.what, words.note, row.what, row.start_ns, row.dur_ns, words.at_us)
            of_finding.append(mark)
        marks += _in_lanes(of_finding)
    return Annotations(
        report=report,
        begin_ns=int(rows.start_ns.min()) if len(rows) else origin,
        end_ns=int(rows.end_ns.max()) if len(rows) else origin,
        marks=marks,
        findings_without_rows=[f for f in report.findings if not f.evidence],
        counters=tracks,
        no_counters=reason,
        thinned=[f"{t.label}: {len(t.at_ns):,} of {t.of:,} steps" for t in tracks if len(t.at_ns) < t.of],
    )


def _in_lanes(marks: list[Mark]) -> list[Mark]:
    """Return the marks with a lane each: two that overlap never share one, for a viewer would nest or drop the later."""
    ends: list[int] = []
    placed = []
    for mark in sorted(marks, key=lambda m: (m.start_ns, m.dur_ns or 0)):
        end = mark.start_ns + max(mark.dur_ns or 0, 1)
        lane = next((n for n, until in enumerate(ends) if until <= mark.start_ns), len(ends))
        ends[lane : lane + 1] = [end]
        placed.append(Mark(**{**mark.__dict__, "lane": lane}))
    return placed
