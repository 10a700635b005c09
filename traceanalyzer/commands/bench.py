"""``traceanalyze bench``: a function against its alternatives, in one table."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer.commands.call_counts import call_options
from traceanalyzer.commands.numbers import Duration, Percentage
from traceanalyzer.commands.output import screen, utf8_stdout, write_output
from traceanalyzer.errors import CaptureUnavailable, ExitCode, OptionError
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.render.base import RenderSettings, names, render
from traceanalyzer.render.formats import BENCH, MERGED

TABLE_NAME = "bench.json"

if TYPE_CHECKING:
    from traceanalyzer.capture.bench import BenchTable

EPILOG = """\b
Exit codes:
  0  the table was made; what cannot run here is n/a with its reason
  1  the table was made, and a result in it is wrong: its times are struck through
  2  bad input: no such kernel, preset, dtype or implementation
  4  nothing could be measured, or it was interrupted; rows measured until then are printed
"""


@click.command(
    name="bench", epilog=EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.argument("operands", nargs=-1, required=True, metavar="FILE.py:FUNCTION | KERNEL | --merge TABLE.json...")
@click.option("--merge", is_flag=True, help="Measure nothing: show saved tables of several machines as one.")
@click.option(
    "--axis", "axes", multiple=True, metavar="NAME=VALUES",
    help="Values of an axis of FUNCTION, with commas, e.g. n=1024,4096.  [default: those of AXES in its file]",
)  # fmt: skip
@click.option(
    "--preset", default="", metavar="NAME", help="Sizes of the inputs.  [default: the first that is not tiny]"
)
@click.option("--dtypes", default="", metavar="NAMES", help="With commas.  [default: all of the kernel]")
@click.option("--directions", default="", metavar="NAMES", help="forward, backward.  [default: all of the kernel]")
@click.option(
    "--implementation", default="", metavar="NAME", help="What is compared.  [default: the kernel's first, triton]"
)
@click.option("--against", metavar="NAMES", help="Alternatives, with commas; an empty text for none.  [default: all]")
@click.option("-o", "--output", "out", metavar="DIR", help="Keep trace and sidecar of each row here, and bench.json.")
@call_options
@click.option(
    "--protocols", default="wall_sync_once,do_bench,graph_unrolled,profiler_self_time", show_default=True, metavar="KEYS",
    help="Protocols, with commas; all for every one. The two columns need the first and the last.",
)  # fmt: skip
@click.option(
    "--device", type=click.Choice(["auto", "cuda", "xpu", "cpu"]), default="auto", show_default=True,
    help="Where to run; cuda includes ROCm.",
)  # fmt: skip
@click.option("--seed", default=0, show_default=True, type=int, help="Of the inputs; the same for every row.")
@click.option(
    "--budget", default=10.0, show_default=True, type=Duration("s", positive=True), metavar="TIME",
    help="Seconds for the readings of one row; slow ones get fewer calls.",
)  # fmt: skip
@click.option(
    "--timeout", default=300.0, show_default=True, type=Duration("s", positive=True), metavar="TIME", help="Stop a row that takes longer."
)  # fmt: skip
@click.option(
    "--limit", type=Duration("s", positive=True), metavar="TIME", help="Seconds for all rows; those not reached are n/a."
)  # fmt: skip
@click.option(
    "--precision", type=Percentage(), metavar="PERCENT",
    help="Measure again with more calls until the 95 % interval of every time is within so much to either side, e.g. 1%.",
)  # fmt: skip
@click.option(
    "--lock-clocks", is_flag=True,
    help="Hold the SM clock of the NVIDIA GPU during the measurement, where permitted; given back at the end, at Ctrl-C too.",
)  # fmt: skip
@click.option("--format", "output_format", type=click.Choice(names(BENCH)), default="text", show_default=True)
@click.option("--progress/--no-progress", default=True, help="Progress on standard error when it is a terminal.")
def command(
    operands: tuple[str, ...], merge: bool, axes: tuple[str, ...], preset: str, dtypes: str, directions: str, implementation: str, against: str | None, out: str | None, iters: int,
    warmup: int, protocols: str, device: str, seed: int, budget: float, timeout: float, limit: float | None, precision: float | None,
    lock_clocks: bool, output_format: str, progress: bool,
) -> None:  # fmt: skip
    """Compare implementations of a function in one table: device time, end-to-end time, memory, error and a verdict per row.

    FILE.py:FUNCTION is yours: AXES in its file (or --axis) names what it is measured over, IMPLEMENTATIONS (or --against)
    what it is measured against, FUNCTION_inputs makes its arguments (docs/bench.md). KERNEL is one of this project: empty,
    vector_add, softmax, rms_norm, matmul or msda. Every row is a capture session, measured in turns with the others of its
    case and compared with the reference at higher precision in the same run; speed-ups compare device time with device time.
    Without a GPU the rows that a CPU can run are measured end to end and labelled cpu.

    --merge shows the bench.json of several machines in one table: machines by rows, cases by columns.
    """
    if merge:
        _show_merged(operands, output_format)
        return
    if len(operands) > 1:
        raise OptionError(
            "too_many_functions", f"{len(operands)} functions were given", hint="give one; --merge takes saved tables"
        )
    operator = operands[0]
    from traceanalyzer.capture import require_torch
    from traceanalyzer.capture.bench import BenchAsked, bench, nothing_measured
    from traceanalyzer.capture.protocols import chosen_protocols
    from traceanalyzer.commands.progress import step_progress

    if precision is not None and not precision > 0:
        raise OptionError("bad_precision", "--precision must be above 0", hint="e.g. --precision 1%")
    require_torch()
    folder = Path(out) if out is not None else None
    if folder is not None and folder.exists() and not folder.is_dir():
        raise OptionError("cannot_write", f"'{folder.name}' is a file", hint="give a folder with -o")
    asked = BenchAsked(
        operator, preset, _names(dtypes), _names(directions), implementation, None if against is None else _names(against), device, seed,
        chosen_protocols((protocols,)), warmup, iters, budget, timeout, limit, _axes(axes), None if precision is None else precision / 100,
    )  # fmt: skip
    with cleaning_up(), _clocks(lock_clocks) as lock, step_progress(progress) as show:
        asked = replace(asked, notes=(lock,) if lock else ())
        table = bench(asked, folder, observe=show, keep=lambda so_far: _keep(so_far, folder))
    _keep(table, folder)
    utf8_stdout()
    write_output(render(BENCH, output_format, table, RenderSettings(width=screen()[0])), None, form=output_format)
    if any(row.missing_kind == "interrupted" for row in table.rows):
        raise CaptureUnavailable("interrupted", "interrupted; the rows measured until then are in the table")
    if (error := nothing_measured(table)) is not None:
        raise error
    if table.wrong:
        click.echo(
            f"traceanalyze: wrong_result: {', '.join(table.wrong)}: the result does not match the reference; its times are struck through",
            err=True,
        )
        sys.exit(int(ExitCode.FINDINGS))


def _clocks(lock: bool) -> AbstractContextManager[str]:
    """Return the context that locks the clock and says so, or one that does and says nothing."""
    if not lock:
        return nullcontext("")
    from traceanalyzer.capture.clock_lock import locked_clocks

    return locked_clocks()


def _show_merged(files: tuple[str, ...], output_format: str) -> None:
    from traceanalyzer.api import merge_benches

    found = merge_benches([Path(name) for name in files])
    utf8_stdout()
    write_output(render(MERGED, output_format, found, RenderSettings(width=screen()[0])), None, form=output_format)


def _axes(words: tuple[str, ...]) -> dict[str, tuple[int | float | str, ...]]:
    from traceanalyzer.capture.bench import parse_value

    found: dict[str, tuple[int | float | str, ...]] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip() or not _names(values):
            raise OptionError("bad_axis", f"--axis {word!r} is no NAME=VALUES", hint="write --axis n=1024,4096")
        found[name.strip()] = tuple(parse_value(v) for v in _names(values))
    return found


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _keep(table: BenchTable, folder: Path | None) -> None:
    if folder is not None and folder.is_dir():
        write_output(render(BENCH, "json", table), str(folder / TABLE_NAME))
