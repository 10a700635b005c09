"""``traceanalyze history add`` and ``history show``."""

from __future__ import annotations

import os
from pathlib import Path

import click

from traceanalyzer.commands.files import FILE
from traceanalyzer.commands.output import utf8_stdout, write_output
from traceanalyzer.options import AnalysisOptions

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(name="history", context_settings=_SETTINGS)
def command() -> None:
    """Keep the periods of runs in one SQLite file, and show how they change."""


@command.command(name="add", context_settings=_SETTINGS)
@click.argument("trace", type=FILE)
@click.option(
    "--db",
    required=True,
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The history; made where there is none.",
)
@click.option("--commit", metavar="ID", help="The commit that was measured (default: GITHUB_SHA).")
@click.option("--range", "range_name", metavar="NAME", help="Only work launched inside this range.")
def add(trace: str, db: Path, commit: str | None, range_name: str | None) -> None:
    """Append the units of TRACE (a trace, or a saved JSON report) to the history."""
    from traceanalyzer.api import add_to_history
    from traceanalyzer.options import Selection

    options = AnalysisOptions(Selection(range_name), samples=True)
    n = add_to_history(trace, db, commit or "", os.environ.get("GITHUB_SHA", ""), options)
    click.echo(f"{n} added to {db.name}", err=True)


@command.command(name="show", context_settings=_SETTINGS)
@click.option(
    "--db", required=True, metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="The history."
)
@click.option(
    "--format", "output_format", type=click.Choice(["text", "html", "bmf", "github-action-benchmark"]), default="text", show_default=True
)  # fmt: skip
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
def show(db: Path, output_format: str, output: str | None) -> None:
    """Show the trend of each unit, with the recordings at which its level changed."""
    from traceanalyzer.api import history_of
    from traceanalyzer.render.history import RENDERERS

    utf8_stdout()
    write_output(RENDERERS[output_format](history_of(db), db.name), output)
