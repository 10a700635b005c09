"""``traceanalyze ranks DIR``: the traces of one distributed job, rank by rank."""

from __future__ import annotations

from contextlib import nullcontext

import click

from traceanalyzer.commands.files import FOLDER
from traceanalyzer.commands.limits import limit_options
from traceanalyzer.commands.numbers import Percentage
from traceanalyzer.commands.output import screen, utf8_stdout, write_output
from traceanalyzer.commands.progress import reading_progress
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.options import AnalysisOptions, ReadLimits
from traceanalyzer.render.base import RenderSettings, names, render
from traceanalyzer.render.formats import RANKS


@click.command(name="ranks", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("folder", type=FOLDER, metavar="DIR")
@click.option("--format", "output_format", type=click.Choice(names(RANKS)), default="text", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
@click.option("--hta/--no-hta", default=True, help="Add HolisticTraceAnalysis' numbers, where it is installed.")
@click.option(
    "--late-over",
    type=Percentage(),
    default=5,
    metavar="PERCENT",
    show_default=True,
    help="A rank is late if it takes this much longer than the median one outside of its collectives.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 1024),
    default=1,
    show_default=True,
    metavar="N",
    help="Traces at a time, each in a process of its own.",
)
@click.option("--top", type=click.IntRange(1), default=64, show_default=True, metavar="N", help="Rows per table.")
@limit_options
@click.option("--progress/--no-progress", default=True, help="Progress bar on standard error when it is a terminal.")
def command(
    folder: str, output_format: str, output: str | None, hta: bool, late_over: float, workers: int, top: int,
    max_bytes: int, max_rows: int, max_depth: int, max_event_bytes: int, jobs: int, progress: bool,
) -> None:  # fmt: skip
    """Report on the traces of DIR, one per rank: where the time went, who waits in collectives for whom, overlap, queue verdicts.

    Traces are the files of the folder that a reader knows, one at a time or --workers N, and only small tables are kept of each. The
    rank is read from a trace's distributedInfo, else in its file name (rank3, worker-3). Ranks without a trace and files that cannot
    be read are listed.
    """
    from traceanalyzer.api import ranks

    limits = ReadLimits(
        max_bytes=max_bytes,
        max_rows=max_rows,
        max_depth=max_depth,
        max_event_bytes=max_event_bytes,
        jobs=jobs if workers == 1 else jobs or 1,
    )
    # HolisticTraceAnalysis and workers run in children, which end with us
    options = AnalysisOptions(limits=limits)
    with cleaning_up() if hta or workers > 1 else nullcontext(), reading_progress(progress) as callback:
        found = ranks(folder, options, hta=hta, late_over=late_over / 100, progress=callback, jobs=workers)
    utf8_stdout()
    write_output(
        render(RANKS, output_format, found, RenderSettings(top=top, width=screen(output)[0])),
        output,
        form=output_format,
    )
