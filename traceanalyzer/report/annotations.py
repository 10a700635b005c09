"""What annotate adds to a trace: the verdict, why devices idle, the rows each finding points at, and counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from traceanalyzer.analysis.annotations import CounterTrack, counters
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.ledger import BUSY, DrainedBy, LedgerClass
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.report.model import FindingRow, ReportData
from traceanalyzer.trace.names import scrub_paths
from traceanalyzer.trace.tables import Int64


@dataclass(frozen=True)
class AnnotationMark:
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
class CauseTrack:
    """Why a device idled, piece by piece: ``start_ns`` (absolute) and ``dur_ns`` of each, in order of time.

    ``key[i]`` is the number of its (class, name, range of the user) in ``keys``, ``drained[i]`` and ``before[i]`` those of why
    the device had run dry and of the device row that ends the interval, in ``drained_by`` and ``rows``. Of ``of`` pieces the
    longest are kept.
    """

    device: str
    start_ns: Int64
    dur_ns: Int64
    key: Int64
    drained: Int64
    before: Int64
    keys: list[tuple[str, str, str]]
    drained_by: list[str]
    rows: list[str]
    of: int


@dataclass(frozen=True)
class Annotations:
    """Everything that is added. ``no_counters`` says why there are none, ``thinned`` which tracks lost steps.

    ``begin_ns`` to ``end_ns`` (absolute) is what the trace's device rows span, where the verdict is drawn.
    """

    report: ReportData
    begin_ns: int
    end_ns: int
    marks: list[AnnotationMark]
    findings_without_rows: list[FindingRow]
    counters: list[CounterTrack]
    no_counters: str
    thinned: list[str] = field(default_factory=list)
    causes: list[CauseTrack] = field(default_factory=list)


def annotate_report(
    analysis: Analysis, findings: Sequence[Finding], report: ReportData, most_steps: int
) -> Annotations:
    """Return what to add for a report: each row that is evidence in it, and at most ``most_steps`` counter steps."""
    rows, origin = analysis.trace.activities, analysis.trace.meta.origin_ns
    tracks, reason = counters(analysis, most_steps)
    causes = cause_tracks(analysis, most_steps) if analysis.clocks.state is not ClockState.DISAGREE else []
    marks = []
    for finding, shown in zip(findings, report.findings, strict=True):
        of_finding: list[AnnotationMark] = []
        for row, words in zip(finding.evidence, shown.evidence, strict=False):
            mark = AnnotationMark(shown, words.what, words.note, row.what, row.start_ns, row.dur_ns, words.at_us)
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
        thinned=[f"{t.label}: {len(t.at_ns):,} of {t.of:,} steps" for t in tracks if len(t.at_ns) < t.of]
        + [f"causes of {c.device}: the {len(c.dur_ns):,} longest of {c.of:,}" for c in causes if len(c.dur_ns) < c.of],
        causes=causes,
    )


def cause_tracks(analysis: Analysis, most: int) -> list[CauseTrack]:
    """Return the idle pieces of each device's ledger, at most ``most`` in all: the longest of each device."""
    clean = (lambda text: text) if analysis.options.show_paths else scrub_paths
    idle = [np.flatnonzero(~np.isin(ledger.cls, list(BUSY))) for ledger in analysis.ledgers]
    total = sum(map(len, idle))
    tracks = []
    for ledger, every in zip(analysis.ledgers, idle, strict=True):
        of = len(every)
        if not of:
            continue
        keep = of if total <= most else max(1, most * of // total)
        pieces = np.sort(every[np.argsort(-ledger.ns[every], kind="stable")[:keep]])
        labels = np.stack([ledger.cls[pieces].astype(np.int64), ledger.name[pieces], ledger.within[pieces]])
        kinds, key = np.unique(labels, axis=1, return_inverse=True)
        names = analysis.trace.activities.name[ledger.row[pieces]]
        rows, before = np.unique(names, return_inverse=True)
        tracks.append(
            CauseTrack(
                device=f"device {analysis.trace.devices[ledger.device].label}",
                start_ns=ledger.start[pieces],
                dur_ns=ledger.ns[pieces],
                key=key.reshape(-1),
                drained=ledger.drained[pieces].astype(np.int64),
                before=before.reshape(-1),
                keys=[
                    (LedgerClass(c).label, clean(ledger.names.text(n)), clean(ledger.names.text(w)))
                    for c, n, w in kinds.T.tolist()
                ],
                drained_by=[d.label for d in DrainedBy],
                rows=[analysis.trace.names[n] for n in rows.tolist()],
                of=of,
            )
        )
    return tracks


def _in_lanes(marks: list[AnnotationMark]) -> list[AnnotationMark]:
    """Return the marks with a lane each: two that overlap never share one, for a viewer would nest or drop the later."""
    ends: list[int] = []
    placed = []
    for mark in sorted(marks, key=lambda m: (m.start_ns, m.dur_ns or 0)):
        end = mark.start_ns + max(mark.dur_ns or 0, 1)
        lane = next((n for n, until in enumerate(ends) if until <= mark.start_ns), len(ends))
        ends[lane : lane + 1] = [end]
        placed.append(AnnotationMark(**{**mark.__dict__, "lane": lane}))
    return placed
