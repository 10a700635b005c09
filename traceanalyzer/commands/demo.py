"""``traceanalyze demo``: the report on a trace that is part of the installation."""

from __future__ import annotations

from importlib.resources import as_file, files

import click

from traceanalyzer.commands.output import screen, utf8_stdout, write_output
from traceanalyzer.render.base import RenderSettings, render
from traceanalyzer.render.formats import REPORT
from traceanalyzer.render.sections import SECTIONS

TRACE = "cpu_bound_loop.json"


@click.command(name="demo", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--full", is_flag=True, help="Print every section of the report.")
@click.option(
    "--section", "sections", multiple=True, type=click.Choice([s.name for s in SECTIONS]), metavar="NAME",
    help="Print this section of the report in full (repeatable).",
)  # fmt: skip
@click.option("--save", metavar="FILE", help="Write the trace itself to FILE, to try other commands on it.")
def command(full: bool, sections: tuple[str, ...], save: str | None) -> None:
    """Report on a simulated benchmark: a kernel of 10 us that Python launches every 40 us.

    Ends with the commands to try next.
    """
    from traceanalyzer.api import analyze

    source = files("traceanalyzer").joinpath("demo", TRACE)
    if save is not None:
        write_output(source.read_text(encoding="utf-8"), save)
        click.echo(f"wrote the trace; report on it with: traceanalyze report {save}", err=True)
        return
    width, color = screen()
    settings = RenderSettings(width=width, color=color, full=full, sections=sections)
    with as_file(source) as path:
        data = analyze(path).data
    lines = [render(REPORT, "text", data, settings), "Try next:"]
    rule = data.findings[0].rule if data.findings else "TA201"
    lines += [
        f"  {text:44}{why}".rstrip()
        for text, why in (
            ("traceanalyze demo --section findings", "every finding with its numbers and rows"),
            (f"traceanalyze rule {rule}", "what that rule checks, and what to do"),
            ("traceanalyze demo --save trace.json", "the trace, for Perfetto and other commands"),
            ("traceanalyze report YOUR_TRACE.json", "your own run"),
        )
    ]
    utf8_stdout()
    write_output("\n".join(lines) + "\n", None)
