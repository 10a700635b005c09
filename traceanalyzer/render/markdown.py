"""The report for a pull request: GitHub Markdown, at most 60 lines and 65,000 characters whatever the trace."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.escape import markdown, markdown_code
from traceanalyzer.render.ledger import cause_table, one_line, spans
from traceanalyzer.render.marker import marker
from traceanalyzer.render.measured import conditions_lines, measured_in
from traceanalyzer.render.opinion import opinion_line
from traceanalyzer.render.steps import of_models, steps_line
from traceanalyzer.report.model import FindingRow, ReportData

MAX_LINES = 60
MAX_CHARACTERS = 65_000
_NAME = 80
_TRACE_LINES = 8
_REASONS = 12
_OPINION_ROWS = 8
_LEDGERS = 4


@dataclass(frozen=True)
class _ReportLimits:
    """How many rows are shown, and how many characters of the trace one text may hold."""

    kernels: int
    findings: int
    sentence: int = 700
    line: int = 300
    reason: int = 240
    note: int = 600
    causes: int = 5


STATUS_WORDS = {"ok": "OK", "suspect": "SUSPECT", "cannot-judge": "CANNOT JUDGE"}


def render_markdown(report: ReportData, *, top: int = 10) -> str:
    """Return the report as Markdown; ``top`` kernels, fewer where the bounds ask for it.

    The verdict, the causes, the kernel table and the findings are open; everything else is folded. Only the kernel
    rows and the findings vary in number, so they are what is shortened, and a line says by how many.
    """
    rounds = ((top, 8), (top, 5), (top, 3), (min(top, 8), 3), (min(top, 5), 3), (3, 2), (1, 1))
    # A character takes up to eight when escaped ("@"). At the last limits a report holds under 6,000 characters of
    # the trace in sentences and 40 short cells, so the last round always fits; a test holds this at the worst.
    for limits in (*(_ReportLimits(*r) for r in rounds), _ReportLimits(1, 1, 200, 80, 60, 200, 1)):
        lines = _lines(report, limits)
        text = "\n".join(lines) + "\n"
        if len(lines) <= MAX_LINES and len(text) <= MAX_CHARACTERS:
            break
    return text


def _lines(report: ReportData, limits: _ReportLimits) -> list[str]:
    verdict = report.verdict
    about = [line.text for line in blocks.trace_lines(report)]
    if len(about) > _TRACE_LINES:
        about[_TRACE_LINES - 1 :] = [f"and {len(about) - _TRACE_LINES + 1} more notes on the file in the JSON report"]
    lines = [
        marker(report.trace.name),
        f"### GPU trace report: {STATUS_WORDS[verdict.status]}",
        "",
        f"**{markdown(verdict.headline, limits.sentence).strip()}**",
        "",
        "Trace " + "<br>".join(markdown(line, limits.line) for line in about),
        "",
    ]
    lines += _ledger(report, limits)
    lines += _measured(report, limits)
    kernels = blocks.kernels(report, limits.kernels)
    if kernels is not None:
        flat = blocks.Block(kernels.title, kernels.columns, kernels.outer_rows())
        lines += [
            *pipe_table(flat),
            "",
            f"<sub>{' · '.join(markdown(n, 200) for n in [kernels.title, *kernels.notes])}</sub>",
            "",
        ]
    lines += _findings(report, limits)
    if not measured_in(report) and not of_models(
        report
    ):  # the first holds predictions, and nobody times a step by events
        lines += _ladder(report)
    if (second := opinion_line(report, _OPINION_ROWS)) is not None:
        rows = "<br>".join(markdown(n, limits.reason) for n in second[1].split("\n"))
        lines += _folded(second[0], [f"<sub>{rows}</sub>"])
    lines += _folded(*_not_judged(report, limits))
    lines += [f"<sub>{markdown(blocks.conditions(report), limits.note)}</sub>"]
    return lines


def _ledger(report: ReportData, limits: _ReportLimits) -> list[str]:
    """Return where the time of each device went, and the largest causes as a table."""
    rows = spans(report)
    shown = [
        markdown("Time of " + one_line(row, blocks.short_names(report)), limits.sentence) for row in rows[:_LEDGERS]
    ]
    if len(rows) > _LEDGERS:
        shown.append(f"and {show.plural(len(rows) - _LEDGERS, 'more device')} in the JSON report")
    causes = cause_table(report, limits.causes)
    table = [*pipe_table(causes), ""] if causes is not None and limits.causes else []
    if steps := steps_line(report):
        shown.append(markdown(steps, limits.line))
    return [*table, f"<sub>{'<br>'.join(shown)}</sub>", ""] if shown else []


def _measured(report: ReportData, limits: _ReportLimits) -> list[str]:
    found = measured_in(report)
    if not found:
        return []
    notes = [*found[0].notes, *conditions_lines(report.capture)]
    more = [f"{show.plural(len(found) - 1, 'more operation')} in the JSON report"] if len(found) > 1 else []
    text = "<br>".join(markdown(n, limits.reason) for n in (*notes[:_REASONS], *more))
    return [f"**{markdown(found[0].title, _NAME)}**", "", *pipe_table(found[0]), "", f"<sub>{text}</sub>", ""]


def pipe_table(block: blocks.Block) -> list[str]:
    """Return the lines of a GitHub table: names as code spans, everything else right-aligned."""
    head = "| " + " | ".join(markdown(c) for c in block.columns) + " |"
    rule = (
        "|"
        + "|".join(" --- " if n in block.names | block.labels else " ---: " for n in range(len(block.columns)))
        + "|"
    )
    body = ["| " + " | ".join(_cell(block, r, n) for n in range(len(row))) + " |" for r, row in enumerate(block.rows)]
    return [head, rule, *body]


def _cell(block: blocks.Block, row: int, column: int) -> str:
    text = block.rows[row][column]
    if column in block.names and text:
        return markdown_code(text, _NAME)
    return f"~~{markdown(text, _NAME)}~~" if (row, column) in block.struck else markdown(text, _NAME)


def _findings(report: ReportData, limits: _ReportLimits) -> list[str]:
    if not report.findings:
        return ["No findings.", ""]
    short = blocks.short_names(report)
    lines = [_finding(f, limits, short) for f in report.findings[: limits.findings]]
    rest = report.findings[limits.findings :]
    if rest:
        codes = ", ".join(dict.fromkeys(f.rule for f in rest[:20]))
        lines.append(f"- and {len(rest)} more: {markdown(codes, 200)}")
    return [*lines, ""]


def _finding(finding: FindingRow, limits: _ReportLimits, short: dict[str, str]) -> str:
    head = f"- **{markdown(finding.rule, 20)} {markdown(finding.title, 60)}** ({finding.severity}, {markdown(finding.grade, 20)})"
    text = f"{head}: {markdown(finding.message, limits.sentence)}"
    if finding.evidence:
        row = finding.evidence[0]
        text += f" E.g. at {show.moment(row.at_us)}: {markdown_code(short.get(row.what, row.what), _NAME)}{', ' + markdown(row.note, 120) if row.note else ''}."
    if finding.remedy:
        text += f" *{markdown(finding.remedy[0], 200)}.*"
    return text


def _ladder(report: ReportData) -> list[str]:
    block, operations = blocks.ladder(report, 1), blocks.ops(report, 1)
    if block is None or operations is None:
        return []
    # one line of readings: ten rows would cost the kernel table its place
    across = blocks.Block("", [row[0] for row in block.rows], [[row[1] for row in block.rows]], frozenset())
    symbols = blocks.ladder_symbols(next(op for op in report.ops if op.symbols))
    basis = f"{operations.rows[0][0]}; {operations.notes[0]}; {symbols}"
    return _folded(
        "What each protocol would have read (us)", [*pipe_table(across), "", f"<sub>{markdown(basis, 400)}</sub>"]
    )


def _folded(title: str, body: list[str]) -> list[str]:
    # GitHub renders Markdown inside <details> only behind an empty line
    return [f"<details><summary>{markdown(title, 80)}</summary>", "", *body, "", "</details>", ""]


def _not_judged(report: ReportData, limits: _ReportLimits) -> tuple[str, list[str]]:
    """Return what was not judged, and on what the host's numbers rest."""
    reasons = blocks.abstentions(report)
    lines = [markdown(f"{rules}: {reason}", limits.reason) for rules, reason in reasons[:_REASONS]]
    lines += [f"and {len(reasons) - _REASONS} more"] if len(reasons) > _REASONS else []
    lines.append(markdown(report.coverage.sentence, limits.note))
    if clock := blocks.clock_line(report):
        lines.append(markdown(clock, 200))
    title = f"Not judged ({len(report.abstentions)}), and linkage" if report.abstentions else "Linkage"
    return title, ["<br>".join(lines)]


def markdown_report(report: ReportData, settings: RenderSettings) -> str:
    """Return the report with the number of kernels that was asked for."""
    return render_markdown(report, top=settings.top or 10)
