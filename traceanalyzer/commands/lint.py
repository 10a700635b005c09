"""``traceanalyze lint``: what a benchmark script gets wrong before anything runs."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import click

from traceanalyzer.commands.files import FILE
from traceanalyzer.commands.output import utf8_stdout, write_output
from traceanalyzer.commands.progress import step_progress
from traceanalyzer.errors import CaptureUnavailable, ExitCode, OptionError
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.render.base import names, render
from traceanalyzer.render.formats import LINT

LEVELS = ("warning", "note", "never")
EPILOG = """\b
Exit codes:
  0  nothing at or above --fail-on
  1  a problem at or above --fail-on
  2  bad input: a path or an option that is not there, a file named here that is no Python 3
  4  libcst is not installed
"""


_FEW = 20
"""So many files take no time that is worth a line."""


@click.command(
    name="lint", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.argument("paths", type=FILE, nargs=-1, metavar="PATH...")
@click.option("--fix", is_flag=True, help="Fix what can be fixed: insert or move barriers, use the right clock.")
@click.option("--diff", is_flag=True, help="Print what --fix would change, and change nothing.")
@click.option("--select", multiple=True, metavar="CODES", help="Only these rules: codes, prefixes (TL1) or names.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Not these rules.")
@click.option(
    "--fail-on", type=click.Choice(LEVELS), default="warning", show_default=True, help="Exit with 1 from this level on."
)
@click.option("--list", "list_rules", is_flag=True, help="List the rules and exit.")
@click.option("--format", "output_format", type=click.Choice(names(LINT)), default="text", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
def command(
    paths: tuple[str, ...], fix: bool, diff: bool, select: tuple[str, ...], ignore: tuple[str, ...], fail_on: str, list_rules: bool,
    output_format: str, output: str | None,
) -> None:  # fmt: skip
    """Check benchmark scripts for mistakes of timing. PATH is a Python file, a notebook or a folder; nothing is run.

    A line that ends in "# ta: ignore[TL101]" (or "# ta: ignore") is left alone.
    """
    if find_spec("libcst") is None:
        raise CaptureUnavailable(
            "no_libcst",
            "lint needs the package libcst",
            hint="pip install libcst, or install this project's extra 'lint'",
        )
    from traceanalyzer.lint.engine import lint_file
    from traceanalyzer.lint.files import script_files
    from traceanalyzer.lint.registry import LINT_RULES, chosen
    from traceanalyzer.render.lint import LintReport

    utf8_stdout()
    if list_rules:
        for rule in LINT_RULES:
            summary = (rule.__doc__ or "").strip().splitlines()[0]
            click.echo(f"{rule.code} {rule.name:26} {rule.level:8}{'fix ' if rule.fixable else '    '}{summary}")
        return
    if not paths:
        raise OptionError("no_paths", "no file or folder was given", hint="traceanalyze lint bench.py")
    rules = chosen(select, ignore)
    if diff and output_format != "text":
        raise OptionError("diff_is_text", "--diff prints a diff, and no other format", hint="leave out --format")
    results, mended, diffs = [], 0, []
    found = list(script_files(paths))
    with cleaning_up(), step_progress(len(found) > _FEW) as tell:
        for number, path in enumerate(found, 1):
            tell("checking", number, len(found))
            done = lint_file(path, rules, fix or diff, write=not diff)
            results.append(done.result)
            mended += done.used
            diffs.append(done.diff)
    report = LintReport(results, mended, [type(r) for r in rules], "".join(diffs) if diff else "")
    write_output(render(LINT, output_format, report), output, form=output_format)
    named = {str(Path(p)) for p in paths}
    if any(r.fault and r.path in named for r in results):
        sys.exit(int(ExitCode.BAD_INPUT))
    failing = {"warning": {"warning"}, "note": {"warning", "note"}, "never": set()}[fail_on]
    if any(p.level in failing for r in results for p in r.problems):
        sys.exit(int(ExitCode.FINDINGS))
