"""``traceanalyze check TRACE``: findings alone, for continuous integration."""

from __future__ import annotations

import sys

import click

from traceanalyzer.commands.claims import tell_unmatched
from traceanalyzer.commands.config import load_config
from traceanalyzer.commands.files import FILE
from traceanalyzer.commands.output import refuse_input_as_output, utf8_stdout, write_output
from traceanalyzer.commands.report import parse_thresholds
from traceanalyzer.doctor.gate import LEVELS, fails
from traceanalyzer.errors import ExitCode
from traceanalyzer.options import AnalysisOptions, Selection, parse_claim
from traceanalyzer.render.base import names, render
from traceanalyzer.render.formats import CHECK


@click.command(name="check", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("traces", type=FILE, nargs=-1, required=True)
@click.option(
    "--select", multiple=True, metavar="CODES", help="Only these rules: codes, prefixes (TA2) or names, with commas."
)
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
@click.option(
    "--fail-on", type=click.Choice(LEVELS), help="Exit with 1 on a finding of this level or above.  [default: warning]"
)
@click.option(
    "--claim",
    "claims",
    multiple=True,
    metavar="TIME[:OP]",
    help="Check a stated time per call, e.g. 9.8us:my_kernel; OP is part of an operation's name.",
)
@click.option("--range", "range_name", metavar="NAME", help="Only work launched inside this range.")
@click.option("--threshold", "thresholds", multiple=True, metavar="NAME=NUMBER", help="Judge by another threshold.")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(names(CHECK)),
    default="text",
    show_default=True,
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
def command(
    traces: tuple[str, ...], select: tuple[str, ...], ignore: tuple[str, ...], fail_on: str | None, claims: tuple[str, ...],
    range_name: str | None, thresholds: tuple[str, ...], output_format: str, output: str | None,
) -> None:  # fmt: skip
    """Check TRACES for what makes a benchmark untrustworthy. Settings of the project's files apply.

    Exits with 1 on a finding at or above --fail-on, with 3 if a trace cannot be judged.
    """
    from traceanalyzer.api import analyze

    refuse_input_as_output(output, *traces)
    config = load_config()
    for note in config.notes:
        click.echo(f"traceanalyze: {note}", err=True)
    options = AnalysisOptions(
        Selection(range_name=range_name),
        thresholds=config.thresholds | parse_thresholds(thresholds),
        claims=tuple(map(parse_claim, claims)),
        select=_codes(select) or config.select,
        ignore=_codes(ignore) or config.ignore,
    )
    reports = [analyze(trace, options=options).data for trace in traces]
    tell_unmatched(options.claims, (op.name for r in reports for op in r.ops))
    utf8_stdout()
    write_output(render(CHECK, output_format, reports), output, form=output_format)
    level = fail_on or config.fail_on or "warning"
    if any(r.verdict.status == "cannot-judge" for r in reports):
        sys.exit(int(ExitCode.CANNOT_JUDGE))
    if any(fails(r.findings, level) for r in reports):
        sys.exit(int(ExitCode.FINDINGS))


def _codes(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(code.strip() for word in words for code in word.split(",") if code.strip())
