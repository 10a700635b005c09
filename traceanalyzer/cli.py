"""The command line: the only place that turns an error into a line and an exit code."""

from __future__ import annotations

import errno
import math
import os
import sys
from collections.abc import Sequence
from typing import Any, ClassVar

import click

from traceanalyzer import interrupts
from traceanalyzer._version import __version__
from traceanalyzer.errors import DEBUG_VARIABLE, ExitCode, OptionError, TraceAnalyzerError, fault_line

EXIT_CODES = """\b
Exit codes:
  0  report, comparison or capture made
  1  a finding at or above --fail-on LEVEL; a regression; a captured result that is wrong
  2  bad input: the file, the options
  3  cannot judge: the report was made, its verdict is cannot-judge; a capture that never became steady
  4  capture unavailable: the function failed, or torch, triton or the device is missing
  5  a fault of traceanalyzer itself: one line asks for a report; TRACEANALYZER_DEBUG=1 shows the traceback
"""
_COMMANDS = "traceanalyzer.commands."
_RUN_PROGRAMS = ("capture", "bench")
"""Commands that run programs of the user, which inherit the environment."""
_LEAST_BYTES, _ENOUGH_BYTES = 140 << 20, 400 << 20
"""With less than the first numpy does not load; with the second it does, whatever it was built with."""
_STARVED, _RAISE = "the limit on this process's memory is too small", "raise it (ulimit -v)"


class _Group(click.Group):
    """Loads a command's module only when it is called, so that --help stays fast."""

    # by the question that a reader has; each command with its module, its function and what it answers
    commands_by_question: ClassVar[dict[str, dict[str, tuple[str, str, str]]]] = {
        "Can I trust it?": {
            "report": (_COMMANDS + "report", "command", "Verdict, what limits the run, kernels and findings of a trace."),
            "check": (_COMMANDS + "check", "command", "Only the findings, for continuous integration."),
            "lint": (_COMMANDS + "lint", "command", "What a benchmark script gets wrong, before it runs."),
            "rules": (_COMMANDS + "rules", "rules", "List every rule."),
            "rule": (_COMMANDS + "rules", "rule", "Explain one rule."),
            "predict": (_COMMANDS + "predict", "command", "What each timing protocol would read, from numbers alone."),
        },
        "What limits it?": {
            "annotate": (_COMMANDS + "annotate", "command", "Add causes and evidence to a trace, for Perfetto."),
            "ranks": (_COMMANDS + "ranks", "command", "Compare the ranks of a distributed job."),
            "fleet": (_COMMANDS + "fleet", "command", "Analyse thousands of traces, and ask questions of them."),
        },
        "Is B faster?": {
            "compare": (_COMMANDS + "compare", "command", "Is HEAD faster than BASE, and by which protocol?"),
            "history": (_COMMANDS + "history", "command", "Keep the periods of runs in a file; show trend and changes."),
            "bench": (_COMMANDS + "bench", "command", "Compare implementations of a function over shapes and dtypes."),
        },
        "Record": {
            "capture": (_COMMANDS + "capture", "command", "Record a benchmark under every protocol, and report on it."),
        },
        "Learn": {
            "demo": (_COMMANDS + "demo", "command", "Report on a trace that is part of this installation."),
        },
    }  # fmt: skip
    commands_by_name: ClassVar[dict[str, tuple[str, str, str]]] = {
        name: place for commands in commands_by_question.values() for name, place in commands.items()
    }

    # called by programs of this project, in no list
    hidden_commands: ClassVar[dict[str, tuple[str, str]]] = {"action": (_COMMANDS + "action", "command")}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        found = self.commands_by_name.get(cmd_name) or self.hidden_commands.get(cmd_name)
        if found is None:
            return None
        from importlib import import_module

        if cmd_name not in _RUN_PROGRAMS:
            # nothing here multiplies matrices: a pool of threads for it takes time and memory at each start
            os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
        if _limit_bytes() < _LEAST_BYTES:  # OpenBLAS would end the process with 1, the code of a finding
            raise OptionError("out_of_memory", _STARVED, hint=_RAISE)
        command = getattr(import_module(found[0]), found[1])
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        widest = max(map(len, self.commands_by_name))
        for question, commands in self.commands_by_question.items():
            formatter.write(f"\n{question}\n")
            formatter.indent()
            formatter.write_dl([(name.ljust(widest), text) for name, (_, _, text) in commands.items()])
            formatter.dedent()

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches
            from pathlib import Path

            name = args[0]
            near = get_close_matches(name, self.commands_by_name, 1)
            hint = ""
            if near:
                hint = f" Did you mean '{near[0]}'?"
            elif Path(name).suffix in (".json", ".gz"):
                hint = f" To report on a file: traceanalyze report {name}"
            raise click.UsageError(error.format_message() + hint, ctx) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except TraceAnalyzerError as error:
            if ctx.params.get("debug") or os.environ.get(DEBUG_VARIABLE):
                _traceback()
            click.echo(f"traceanalyze: {error.one_line()}", err=True)
            sys.exit(int(error.exit_code))
        except MemoryError:
            click.echo("traceanalyze: out_of_memory: the trace does not fit; record a shorter window", err=True)
            sys.exit(int(ExitCode.BAD_INPUT))


@click.command(cls=_Group, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="traceanalyze")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Say whether a GPU benchmark can be trusted, from its profiler trace.

    Start with: traceanalyze report trace.json, or with no trace of your own: traceanalyze demo
    """


def run(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit code. Whatever goes wrong is one line on standard error.

    A fault of ours ends in 5 and is never taken for a finding (1); a signal ends in 128 and its number, in silence.
    """
    debug = "--debug" in arguments or bool(os.environ.get(DEBUG_VARIABLE))
    try:
        code = _invoked(arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 128 + (interrupts.came() or 2)
    except BrokenPipeError:
        code = 0  # `| head` has enough of a help text
    except Exception as error:
        if _starved(error):
            click.echo(f"traceanalyze: out_of_memory: {_STARVED}; {_RAISE}", err=True)
            return int(ExitCode.BAD_INPUT)
        if interrupts.came():  # an import that was struck may fail in another way
            return 128 + interrupts.came()
        if debug:
            _traceback()
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EIO, errno.EBADF, errno.EFBIG):
            click.echo(f"traceanalyze: cannot_write: standard output: {error.strerror}; make room for it", err=True)
            code = int(ExitCode.BAD_INPUT)
        else:
            click.echo(f"traceanalyze: {fault_line(error)}", err=True)
            code = int(ExitCode.INTERNAL)
    return code


def _limit_bytes() -> float:
    """Return how much memory this process may address."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if soft == resource.RLIM_INFINITY else soft


def _starved(error: BaseException) -> bool:
    """Whether something failed because the process may have too little memory: each library tells that in its own way."""
    return isinstance(error, ImportError | SystemError | RuntimeError | OSError) and _limit_bytes() < _ENOUGH_BYTES


def _invoked(arguments: Sequence[str]) -> int:
    if "_TRACEANALYZE_COMPLETE" in os.environ:
        cli.main(list(arguments), prog_name="traceanalyze")
    try:
        # not click's own main(): that writes to a terminal on Ctrl-C and ends a closed pipe with 1, the code of a finding
        with cli.make_context("traceanalyze", list(arguments)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.Abort:
        return 130
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _traceback() -> None:
    import traceback

    click.echo(traceback.format_exc(), err=True, nl=False)
