"""A bench as GitHub Markdown: the overview and the table open, everything else folded."""

from __future__ import annotations

from traceanalyzer.render.base import RenderSettings
from traceanalyzer.render.bench import blocks as cells
from traceanalyzer.render.escape import markdown
from traceanalyzer.render.markdown import pipe_table
from traceanalyzer.report.bench.model import BenchTable


def render_bench_markdown(table: BenchTable) -> str:
    """Return the tables with what must be said of them; names in them are escaped."""
    overview, times, work = cells.overview(table), cells.times(table), cells.work(table)
    lines = [f"### {markdown(cells.title(table))}", ""]
    if overview is not None:
        lines += [*pipe_table(overview), ""]
    lines += [*pipe_table(times), ""]
    lines += [f"<sub>{markdown(note)}</sub><br>" for note in times.notes]
    lines += [f"- {markdown(line, 600)}" for line in cells.remarks(table)]
    if work.rows:
        lines += ["", *pipe_table(work)]
    folded = [*cells.verdicts(table), *cells.conditions(table)]
    lines += ["", "<details><summary>What each trace says, and conditions</summary>", ""]
    lines += [f"- {markdown(line, 600)}" for line in folded]
    return "\n".join([*lines, "", "</details>"]) + "\n"


def markdown_bench(table: BenchTable, settings: RenderSettings) -> str:  # noqa: ARG001 - the interface of all renderers
    """Return the tables as Markdown; there is nothing to choose."""
    return render_bench_markdown(table)
