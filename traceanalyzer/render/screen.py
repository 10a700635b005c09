"""The report that fits one screen, whatever the trace: each section in its short form, and as many kernels as there is room."""

from __future__ import annotations

from traceanalyzer.render import brief
from traceanalyzer.render.base import WIDTH
from traceanalyzer.render.blocks import Line, Lines, Part
from traceanalyzer.render.console import render_parts
from traceanalyzer.render.ledger import brief_ledger
from traceanalyzer.render.measured import measured_in
from traceanalyzer.render.opinion import opinion
from traceanalyzer.render.sections import STATUS_STYLE
from traceanalyzer.render.steps import brief_steps
from traceanalyzer.report.model import ReportData

LINES = 40
"""Lines that the report is fitted to; with a long verdict and a captured operation it may take a few more."""
_FEWEST_KERNELS = 3
_TABLE = 3
"""Lines of a table besides its rows: a title, the column titles and the empty line between parts."""
_OPINION_ROWS = 8


def render_screen(report: ReportData, *, top: int = 10, width: int = WIDTH, color: bool = False) -> str:
    """Return the report on about 40 lines of ``width`` columns: verdict, causes, operations, ``top`` kernels, findings."""
    after = _after_the_kernels(report)
    for causes in (5, 4, 3):
        before = _before_the_kernels(report, width, causes)
        rest = render_parts([*before, *after], width=width).count("\n")
        if rest + _FEWEST_KERNELS + _TABLE <= LINES:
            break
    room = max(_FEWEST_KERNELS, min(top, LINES - rest - _TABLE))
    kernels = brief.kernels(report, room, width)
    return render_parts([*before, *([kernels] if kernels else []), *after], width=width, color=color)


def _before_the_kernels(report: ReportData, width: int, causes: int) -> list[Part]:
    facts, warnings = brief.trace_facts(report)
    head = [Line(brief.verdict(report), STATUS_STYLE[report.verdict.status])]
    parts: list[Part] = [Lines("", head), Lines("", [*map(Line, facts), *(Line(w, "bold") for w in warnings)])]
    measured = [brief.shortened(block) for block in measured_in(report)[:1]]
    steps = brief_steps(report)
    operations = None if measured or steps else brief.operations(report)
    tables = [block for block in (steps, *measured, operations) if block is not None]
    return [*parts, *brief_ledger(report, width, causes), *tables]


def _after_the_kernels(report: ReportData) -> list[Part]:
    last = [Line(text) for text in [brief.not_judged(report)] if text]
    # asked for by an option, so it has its place whatever its length
    second = opinion(report, _OPINION_ROWS)
    return [brief.findings(report), *([second] if second else []), Lines("", [*last, brief.footer(report)])]
