"""The sections of the text report, in the order of a reader's decisions: can I trust it, what limits it, and the details.

``report --full`` prints all of them and ``--section NAME`` some; a new section is one entry in :data:`SECTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable

from traceanalyzer.record import record
from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Line, Lines, Part
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.ledger import full_ledger
from traceanalyzer.render.measured import conditions_lines, measured_in
from traceanalyzer.render.opinion import opinion
from traceanalyzer.render.steps import full_steps
from traceanalyzer.report.model import FindingRow, ReportData

STATUS_STYLE = {"ok": "bold green", "suspect": "bold yellow", "cannot-judge": "bold red"}
SEVERITY_STYLE = {"error": "bold red", "warning": "bold yellow", "note": "bold"}
_TRACE_LINES, _FINDINGS, _EVIDENCE = 12, 60, 3
_NOTE = 600  # characters of one text; a name of ten thousand must not flood the screen


@record(frozen=True)
class Section:
    """A named part of the report; ``parts`` takes the report and the number of rows per table."""

    name: str
    about: str
    parts: Callable[[ReportData, int], list[Part]]


def _some(*found: blocks.Block | None) -> list[Part]:
    return [block for block in found if block is not None]


def _verdict(report: ReportData, top: int) -> list[Part]:  # noqa: ARG001 - all sections are called alike
    return [Lines("", [Line(report.verdict.headline, STATUS_STYLE[report.verdict.status])])]


def _trace(report: ReportData, top: int) -> list[Part]:  # noqa: ARG001
    about = blocks.trace_lines(report)
    lines = about[:_TRACE_LINES]
    if len(about) > _TRACE_LINES:
        lines.append(Line(f"and {show.plural(len(about) - _TRACE_LINES, 'more note')} on the file (all in JSON)"))
    if text := blocks.clock_line(report):
        lines.append(Line(text, "bold"))
    return [Lines("", [*lines, *(Line(text, "dim") for text in conditions_lines(report.capture))])]


def _linkage(report: ReportData, top: int) -> list[Part]:  # noqa: ARG001
    return [Lines("Linkage", [Line(report.coverage.sentence, indent=2)])]


def _findings(report: ReportData, top: int) -> list[Part]:  # noqa: ARG001
    if not report.findings:
        return [Lines("Findings: none", [])]
    short = blocks.short_names(report)
    lines = [line for finding in report.findings[:_FINDINGS] for line in _finding(finding, short)]
    if len(report.findings) > _FINDINGS:
        more = show.plural(len(report.findings) - _FINDINGS, "more finding")
        lines.append(Line(f"and {more} (all in JSON)", indent=2))
    return [Lines(f"Findings ({len(report.findings)})", lines)]


def _finding(finding: FindingRow, short: dict[str, str]) -> list[Line]:
    head = f"{finding.rule} {finding.title}, {finding.severity}, {finding.grade}"
    lines = [Line(head, SEVERITY_STYLE[finding.severity], 2), Line(finding.message, indent=4)]
    if finding.numbers:
        lines.append(Line(f"numbers: {blocks.numbers(finding)}", indent=4, limit=_NOTE))
    for row in finding.evidence[:_EVIDENCE]:
        length = f", {show.time(row.dur_us)} long" if row.dur_us is not None else ""
        note = f": {row.note}" if row.note else ""
        name = _shown(short.get(row.what, row.what))
        lines.append(Line(f"at {row.at_us:,.3f} us{length}: {name}{note}", indent=4, limit=_NOTE))
    return lines + [Line(f"-> {remedy}", indent=4, limit=_NOTE) for remedy in finding.remedy]


def _shown(name: str) -> str:
    return name if len(name) <= 60 else f"{name[:36]}…{name[-20:]}"


def _not_judged(report: ReportData, top: int) -> list[Part]:  # noqa: ARG001
    if not report.abstentions:
        return []
    reasons = blocks.abstentions(report)
    lines = [Line(terminal(f"{rules}: {reason}", _NOTE), indent=2) for rules, reason in reasons[:_FINDINGS]]
    if len(reasons) > _FINDINGS:
        lines.append(Line(f"and {show.plural(len(reasons) - _FINDINGS, 'more reason')} (all in JSON)", indent=2))
    return [Lines("Not judged", lines)]


def _conditions(report: ReportData, top: int) -> list[Part]:  # noqa: ARG001
    return [Lines("", [Line(blocks.conditions(report), "dim")])]


SECTIONS = (
    Section("verdict", "the sentence", _verdict),
    Section("trace", "the file: what it holds, what reading it repaired or left out, clocks", _trace),
    Section("ledger", "where each nanosecond of a device's span went, and why", full_ledger),
    Section("steps", "how long a step takes, and why the slowest is slow", full_steps),
    Section("measured", "what a capture measured, protocol by protocol", lambda r, _: [*measured_in(r)]),
    Section("operations", "calls of the thing under test", lambda r, top: _some(blocks.ops(r, min(top, 8)))),
    Section("timers", "what each timing protocol would have read", lambda r, _: _some(blocks.ladder(r, 4))),
    Section("kernels", "self-time, dispatch and event reading by kernel", lambda r, top: _some(blocks.kernels(r, top))),
    Section("copies", "copies and fills", lambda r, top: _some(blocks.copies(r, min(top, 5)))),
    Section("devices", "busy time and queue state by device", lambda r, top: _some(blocks.devices(r, top))),
    Section("streams", "gaps by stream and what they waited for", lambda r, top: _some(blocks.streams(r, top))),
    Section("threads", "dispatch by launching thread", lambda r, top: _some(blocks.threads(r, top))),
    Section("idle", "long pauses and late launches", lambda r, top: _some(blocks.idle(r, top), blocks.pauses(r))),
    Section("opinion", "HolisticTraceAnalysis on the same file (--second-opinion)", lambda r, _: _some(opinion(r))),
    Section("linkage", "how many device rows have their launch call", _linkage),
    Section("findings", "every finding with numbers, rows and remedies", _findings),
    Section("not-judged", "what could not be judged, and why", _not_judged),
    Section("conditions", "versions, resolution, profiler switches", _conditions),
)  # fmt: skip
