"""``traceanalyze report TRACE``."""

from __future__ import annotations

import sys
from contextlib import nullcontext

import click

from traceanalyzer.commands.claims import tell_unmatched
from traceanalyzer.commands.files import FILE
from traceanalyzer.commands.limits import limit_options
from traceanalyzer.commands.numbers import Duration, parse_threshold
from traceanalyzer.commands.output import refuse_input_as_output, screen, utf8_stdout, write_output
from traceanalyzer.commands.progress import reading_progress
from traceanalyzer.commands.reproduce import command_line
from traceanalyzer.doctor.gate import LEVELS, fails
from traceanalyzer.errors import ExitCode, OptionError
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.options import AnalysisOptions, ReadLimits, Selection, parse_claim
from traceanalyzer.render.base import RenderSettings, names, render
from traceanalyzer.render.formats import REPORT
from traceanalyzer.render.sections import SECTIONS


def parse_thresholds(values: tuple[str, ...]) -> dict[str, float]:
    """Return thresholds of ``NAME=NUMBER`` texts. Raises OptionError for anything else."""
    result = {}
    for value in values:
        name, equals, number = value.partition("=")
        if not equals:
            raise OptionError(
                "bad_threshold", f"--threshold {value[:80]!r} is not NAME=NUMBER", hint="e.g. starved_fraction=0.6"
            )
        result[name.strip()] = parse_threshold(name.strip(), number)
    return result


@click.command(name="report", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("trace", type=FILE)
@click.option(
    "--format",
    "output_format",
    type=click.Choice(names(REPORT)),
    default="text",
    show_default=True,
)
@click.option(
    "--summary", is_flag=True, help="With --format markdown: one compact block for a comment or a step summary."
)
@click.option("--full", is_flag=True, help="Print every section of the text report, not only what fits a screen.")
@click.option(
    "--section", "sections", multiple=True, type=click.Choice([s.name for s in SECTIONS]), metavar="NAME",
    help=f"Print this section of the text report in full (repeatable): {', '.join(s.name for s in SECTIONS)}.",
)  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
@click.option(
    "--range", "range_name", metavar="NAME", help="Only work launched inside this record_function / NVTX range."
)
@click.option("--device", type=int, metavar="N", help="Only this device.")
@click.option("--rank", type=int, metavar="N", help="Only this rank of a file that several ranks were merged into.")
@click.option("--stream", type=int, metavar="N", help="Only this stream.")
@click.option("--kernel", metavar="REGEX", help="Only kernels and copies whose name matches, in the tables.")
@click.option(
    "--top",
    type=click.IntRange(1),
    default=None,
    metavar="N",
    help="Rows per table (text 10, with --full 20, markdown 10, html 2000 kernels; json and csv hold all).",
)
@click.option("--fail-on", type=click.Choice(LEVELS), help="Exit with 1 on a finding of this level or above.")
@click.option(
    "--threshold", "thresholds", multiple=True, metavar="NAME=NUMBER", help="Judge by another threshold (repeatable)."
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="TIME[:OP]",
    help="Say what a stated time per call really is, e.g. 9.8us:my_kernel; OP is part of an operation's name.",
)
@click.option(
    "--clear-us",
    type=Duration("us"),
    metavar="TIME",
    help="Device time of a cache clear, for the do_bench reading; us without a unit.",
)
@click.option(
    "--second-opinion",
    is_flag=True,
    help="Run HolisticTraceAnalysis on the same file and explain every difference.",
)
@click.option(
    "--show-paths",
    is_flag=True,
    help="Show folders inside names; they are left out since they name machines and users.",
)
@limit_options
@click.option("--progress/--no-progress", default=True, help="Progress bar on standard error when it is a terminal.")
def command(
    trace: str, output_format: str, summary: bool, full: bool, sections: tuple[str, ...], output: str | None, range_name: str | None, device: int | None, rank: int | None,
    stream: int | None,
    kernel: str | None, top: int | None, fail_on: str | None, thresholds: tuple[str, ...], claims: tuple[str, ...], clear_us: float | None, second_opinion: bool,
    show_paths: bool,
    max_bytes: int, max_rows: int, max_depth: int, max_event_bytes: int, jobs: int, progress: bool,
) -> None:  # fmt: skip
    """Report on TRACE: a verdict, what limits the run, kernels and findings, on one screen.

    TRACE is the Chrome JSON of a profiler (.json, .json.gz), a database of Nsight Systems, rpd or rocprofv3, a .xplane.pb of
    JAX, or - for standard input (docs/inputs.md).
    """
    from traceanalyzer.api import analyze

    if summary and output_format != "markdown":
        raise OptionError(
            "bad_option", f"--summary is Markdown, --format is {output_format}", hint="add --format markdown"
        )
    if (full or sections) and output_format != "text":
        raise OptionError(
            "bad_option",
            f"--full and --section choose parts of the text report, --format is {output_format}",
            hint="leave --format out, or those options",
        )
    if summary:
        output_format = "summary"
    refuse_input_as_output(output, trace)
    options = AnalysisOptions(
        Selection(range_name, device, stream, kernel, rank),
        ReadLimits(
            max_bytes=max_bytes, max_rows=max_rows, max_depth=max_depth, max_event_bytes=max_event_bytes, jobs=jobs
        ),
        parse_thresholds(thresholds),
        show_paths,
        claims=tuple(map(parse_claim, claims)),
        clear_us=clear_us,
        figures=output_format == "html",
        samples=output_format == "json",
    )
    # HolisticTraceAnalysis runs in a child, which ends with us
    with cleaning_up() if second_opinion else nullcontext(), reading_progress(progress) as callback:
        data = analyze(trace, options=options, progress=callback, second_opinion=second_opinion).data
    tell_unmatched(options.claims, (op.name for op in data.ops))
    settings = RenderSettings(top, command_line(click.get_current_context()), *screen(output), full, sections)
    utf8_stdout()
    write_output(render(REPORT, output_format, data, settings), output, form=output_format)
    if fail_on is not None and fails(data.findings, fail_on):
        sys.exit(int(ExitCode.FINDINGS))
    if data.verdict.status == "cannot-judge":
        sys.exit(int(ExitCode.CANNOT_JUDGE))
