"""``traceanalyze compare BASE HEAD [MORE...]``."""

from __future__ import annotations

import sys

import click

from traceanalyzer.commands.files import FILE
from traceanalyzer.commands.limits import limit_options
from traceanalyzer.commands.numbers import Duration, Percentage
from traceanalyzer.commands.output import refuse_input_as_output, screen, utf8_stdout, write_output
from traceanalyzer.commands.progress import reading_progress
from traceanalyzer.commands.report import parse_thresholds
from traceanalyzer.commands.reproduce import command_line
from traceanalyzer.errors import ExitCode, OptionError
from traceanalyzer.options import AnalysisOptions, ReadLimits, Selection, parse_claim
from traceanalyzer.render.base import RenderSettings, names, render
from traceanalyzer.render.formats import COMPARISON


@click.command(name="compare", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("base", type=FILE)
@click.argument("heads", type=FILE, nargs=-1, required=True, metavar="HEAD [MORE]...")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(names(COMPARISON)),
    default="text",
    show_default=True,
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
@click.option(
    "--fail-on-regression",
    type=Percentage(),
    metavar="PCT",
    help="Exit with 1 if what the first line judges got slower by over PCT percent, by the near end of its interval.",
)
@click.option(
    "--allow-different", is_flag=True, help="Compare runs that differ in device, selection, inputs or cache (TA704)."
)
@click.option(
    "--unit", metavar="BASE=HEAD", help="Compare this unit (range, step, graph, kernel) of BASE with that of HEAD."
)
@click.option(
    "--metric",
    type=click.Choice(["period", "busy", "self"]),
    help="Judge, and gate, this ratio of the unit in place of the one its kind asks for.",
)
@click.option("--range", "range_name", metavar="NAME", help="Only work launched inside this range, on both sides.")
@click.option("--device", type=int, metavar="N", help="Only this device.")
@click.option("--stream", type=int, metavar="N", help="Only this stream.")
@click.option("--kernel", metavar="REGEX", help="Only kernels whose name matches, in the kernel table.")
@click.option(
    "--top", type=click.IntRange(1), metavar="N", help="Rows per table (text 20, markdown 10; json holds all)."
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="TIME[:OP]",
    help="Say what a stated time per call really is, on either side.",
)
@click.option(
    "--clear-us",
    type=Duration("us"),
    metavar="TIME",
    help="Device time of a cache clear, for the do_bench reading; us without a unit.",
)
@click.option("--threshold", "thresholds", multiple=True, metavar="NAME=NUMBER", help="Judge by another threshold.")
@click.option("--show-paths", is_flag=True, help="Show folders inside names.")
@limit_options
@click.option("--progress/--no-progress", default=True, help="Progress bar on standard error when it is a terminal.")
def command(
    base: str, heads: tuple[str, ...], output_format: str, output: str | None, fail_on_regression: float | None, allow_different: bool,
    unit: str | None, metric: str | None, range_name: str | None, device: int | None, stream: int | None, kernel: str | None, top: int | None, claims: tuple[str, ...],
    clear_us: float | None, thresholds: tuple[str, ...], show_paths: bool, progress: bool, **limits: int,
) -> None:  # fmt: skip
    """Compare HEAD with BASE: is it faster, by how much, and would every protocol say so?

    BASE, HEAD and MORE are traces or reports saved by `report --format json`, in any mixture; each HEAD is compared with
    BASE. Ratios are head over base, below 1 where the head is faster. Folders hold repeats of a run (or ranks): then
    each run is one value, and what differs from run to run is in the interval.
    """
    from traceanalyzer.api import compare_all

    if [base, *heads].count("-") > 1:
        raise OptionError("bad_option", "standard input can be read once", hint="give - for one of the files")
    refuse_input_as_output(output, base, *heads)
    options = AnalysisOptions(
        Selection(range_name, device, stream, kernel),
        ReadLimits(**limits),
        parse_thresholds(thresholds),
        show_paths,
        claims=tuple(map(parse_claim, claims)),
        clear_us=clear_us,
        figures=output_format == "html",
    )
    with reading_progress(progress) as callback:
        results = compare_all(
            base,
            heads,
            options=options,
            allow_different=allow_different,
            unit=parse_unit(unit),
            metric=metric,
            progress=callback,
        )
    found = [r.data for r in results]
    settings = RenderSettings(top, command_line(click.get_current_context()), *screen(output))
    utf8_stdout()
    write_output(render(COMPARISON, output_format, results, settings), output, form=output_format)
    if any(d.verdict.status == "cannot-judge" for d in found):
        sys.exit(int(ExitCode.CANNOT_JUDGE))
    worst = max((d.regression_pct for d in found if d.regression_pct is not None), default=0.0)
    if fail_on_regression is not None and worst > fail_on_regression:
        gated = next(d for d in found if d.regression_pct == worst)
        click.echo(
            f"gate: {gated.metric or 'self'} of {gated.head.name} is at least {worst:.1f} % over base; limit {fail_on_regression:g} %",
            err=True,
        )
        sys.exit(int(ExitCode.FINDINGS))


def parse_unit(text: str | None) -> tuple[str, str] | None:
    """Return the two names of ``BASE=HEAD``, of one name for both sides twice. Raises OptionError."""
    if text is None:
        return None
    base, sign, head = text.partition("=")
    if not base or (sign and not head):
        raise OptionError(
            "bad_option",
            f"--unit {text!r} names no unit",
            hint="give --unit BASE=HEAD, or one name that both sides have",
        )
    return base, head or base
