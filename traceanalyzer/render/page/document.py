"""The report as an HTML fragment for notebooks. No scripts; every text of the trace is escaped."""

from __future__ import annotations

from dataclasses import replace

from traceanalyzer.render import blocks
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.page.templates import render_template
from traceanalyzer.report.model import ReportData


def render_html(report: ReportData, *, top: int = 20) -> str:
    """Return the fragment; ``top`` rows per table."""
    found = [
        blocks.kernels(report, top), blocks.copies(report, top), blocks.ops(report, top), blocks.ladder(report, 4), blocks.devices(report, top),
        blocks.streams(report, top), blocks.threads(report, top), blocks.idle(report, top), blocks.pauses(report),
    ]  # fmt: skip
    # autoescape keeps markup out; terminal() keeps out what turns text around or cannot be encoded
    tables = [
        replace(
            b, columns=[terminal(c, 400) for c in b.columns], rows=[[terminal(c, 400) for c in row] for row in b.rows],
            notes=[terminal(note, 600) for note in b.notes],
        )
        for b in found if b is not None
    ]  # fmt: skip
    clock = blocks.clock_line(report)
    context = {
        "headline": terminal(report.verdict.headline, 4000),
        "lines": [
            terminal(line, 1000)
            for line in (*(x.text for x in blocks.trace_lines(report)[:12]), *([clock] if clock else []))
        ],
        "tables": tables,
        "coverage": terminal(report.coverage.sentence, 2000),
        "findings": [
            replace(
                f,
                title=terminal(f.title, 200),
                message=terminal(f.message, 2000),
                remedy=[terminal(r, 400) for r in f.remedy],
            )
            for f in report.findings
        ],
        "abstentions": [(terminal(rules, 400), terminal(reason, 400)) for rules, reason in blocks.abstentions(report)],
        "conditions": terminal(blocks.conditions(report), 1000),
    }
    return render_template("notebook.html.j2", context)
