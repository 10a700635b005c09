"""The compact report for a pull request comment and for a step summary: one table, bounded whatever the trace.

Several of them follow one another in a comment, so each is far below a comment's 65,536 characters. Two runs of one
benchmark differ in their measured numbers alone: nothing here tells a time of day, a point in the trace or a machine,
and versions are in the line of conditions only.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import markdown, visible
from traceanalyzer.render.ledger import one_line, spans
from traceanalyzer.render.markdown import STATUS_WORDS, pipe_table
from traceanalyzer.render.marker import marker
from traceanalyzer.render.measured import measured_in
from traceanalyzer.render.steps import steps_line
from traceanalyzer.report.model import FindingRow, ReportData

MAX_CHARACTERS = 16_000
"""No block is longer: three of them and more fit into one comment."""
MAX_COMMAND = 2_000
_CONDITION_LINES = 6
_REASONS = 4
_LEDGERS = 2


@dataclass(frozen=True)
class _SummaryLimits:
    """How many rows are shown, and how many characters of the trace one text may hold."""

    kernels: int
    findings: int
    sentence: int = 600
    line: int = 240


def render_summary(report: ReportData, *, command: str = "", top: int = 5) -> str:
    """Return the report as one compact block of GitHub Markdown, at most 16,000 characters.

    Its first line is the marker of the trace (:func:`traceanalyzer.render.marker.marker`). ``command`` is the line that
    makes the same block again, given by whoever parsed the options; it is left out where empty or longer than
    2,000 characters. ``top`` kernels are shown, fewer where the bound asks for it.
    """
    rounds = (
        _SummaryLimits(top, 5),
        _SummaryLimits(min(top, 5), 3, 300, 120),
        _SummaryLimits(min(top, 3), 2, 160, 60),
        _SummaryLimits(1, 1, 100, 40),
    )
    for limits in rounds:
        text = "\n".join(_lines(report, limits, command)) + "\n"
        # a character takes up to eight when escaped; the last round holds under a thousand of them, and a test its bound
        if len(text) <= MAX_CHARACTERS:
            break
    return text


def _lines(report: ReportData, limits: _SummaryLimits, command: str) -> list[str]:
    verdict = report.verdict
    lines = [
        marker(report.trace.name),
        f"### GPU trace report: {STATUS_WORDS[verdict.status]} ({markdown(report.trace.name, 80)})",
        "",
        f"**{markdown(verdict.headline, limits.sentence).strip() or 'No verdict.'}**",
        "",
    ]
    devices = spans(report)
    for row in devices[:_LEDGERS]:
        lines += [f"Time of {markdown(one_line(row, blocks.short_names(report)), limits.sentence)}", ""]
    if len(devices) > _LEDGERS:
        lines += [f"and {show.plural(len(devices) - _LEDGERS, 'more device')}, in the whole report", ""]
    if steps := steps_line(report):
        lines += [f"Steps: {markdown(steps, limits.line)}", ""]
    captured = measured_in(report)
    kernels = blocks.kernels(report, limits.kernels)
    if captured:
        notes = " · ".join(markdown(n, limits.line) for n in captured[0].notes[:_CONDITION_LINES])
        lines += [
            f"{markdown(captured[0].title, limits.line)}",
            "",
            *pipe_table(captured[0]),
            "",
            f"<sub>{notes}</sub>",
            "",
        ]
    elif kernels is not None:
        # the whole report has a kernel's variants; here each kernel has one row
        notes = " · ".join(markdown(n, 200) for n in [kernels.title, *kernels.notes])
        table = pipe_table(blocks.Block(kernels.title, kernels.columns, kernels.outer_rows()))
        lines += [*table, "", f"<sub>{notes}</sub>", ""]
    lines += [*_findings(report.findings, limits), ""]
    if report.abstentions:
        lines += [_not_judged(report, limits), ""]
    lines += [f"<sub>{_conditions(report, limits)}</sub>"]
    if command:
        lines += ["", *_reproduce(command)]
    return lines


def _findings(findings: list[FindingRow], limits: _SummaryLimits) -> list[str]:
    if not findings:
        return ["No findings."]
    lines = [_finding(f, limits) for f in findings[: limits.findings]]
    rest = findings[limits.findings :]
    if rest:
        codes = ", ".join(dict.fromkeys(f.rule for f in rest[:20]))
        lines.append(f"- and {len(rest)} more: {markdown(codes, limits.line)}")
    return lines


def _finding(finding: FindingRow, limits: _SummaryLimits) -> str:
    name = f"{markdown(finding.rule, 20)} {markdown(finding.title, 40)}"
    text = f"- **{name}** ({finding.severity}, {markdown(finding.grade, 20)}): {markdown(finding.message, limits.sentence)}"
    # the whole report has where it was seen: a point in time differs in every run
    return f"{text} *{markdown(finding.remedy[0], limits.line).strip()}.*" if finding.remedy else text


def _not_judged(report: ReportData, limits: _SummaryLimits) -> str:
    reasons = blocks.abstentions(report)
    shown = "; ".join(markdown(f"{rules}: {reason}", limits.line) for rules, reason in reasons[:_REASONS])
    more = f"; and {len(reasons) - _REASONS} more" if len(reasons) > _REASONS else ""
    return f"<sub>Not judged ({len(report.abstentions)}): {shown}{more}</sub>"


def _conditions(report: ReportData, limits: _SummaryLimits) -> str:
    # the heading has the name already
    about = [line.text for line in blocks.trace_lines(report, named=False)]
    if len(about) > _CONDITION_LINES:
        about[_CONDITION_LINES:] = [f"{len(about) - _CONDITION_LINES} more notes on the file in the whole report"]
    clock = blocks.clock_line(report)
    parts = [*about, *([clock] if clock else []), report.coverage.sentence, blocks.conditions(report)]
    return "Conditions: " + " · ".join(markdown(part, limits.line) for part in parts if part)


def _reproduce(command: str) -> list[str]:
    if len(command) > MAX_COMMAND:
        return [f"<sub>The command that made this takes {len(command):,} characters and is not shown.</sub>"]
    # one line, and no run of backticks begins it: nothing in it can close the fence
    return ["Reproduce, in the folder of the trace:", "```sh", visible(command).lstrip("` "), "```"]


def summary_report(report: ReportData, settings: RenderSettings) -> str:
    """Return the block with the number of kernels and the command that were asked for."""
    return render_summary(report, command=settings.command, top=settings.top or 5)
