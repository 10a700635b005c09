"""``traceanalyze fleet DIR|GLOB... -o RESULTS`` and ``traceanalyze fleet show RESULTS``."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceanalyzer.commands.limits import bound_options
from traceanalyzer.commands.numbers import Size
from traceanalyzer.commands.output import screen, utf8_stdout, write_output
from traceanalyzer.doctor.gate import LEVELS
from traceanalyzer.errors import ExitCode
from traceanalyzer.interrupts import cleaning_up
from traceanalyzer.options import AnalysisOptions, ReadLimits
from traceanalyzer.render.base import RenderSettings, names, render
from traceanalyzer.render.format import plural
from traceanalyzer.render.formats import FLEET, FLEET_QUERY

if TYPE_CHECKING:
    from traceanalyzer.fleet.run import Progress

_SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
_QUIET_SECONDS = 30.0
"""Without a terminal a line is written this often."""


class _Fleet(click.Group):
    """``fleet DIR`` is ``fleet run DIR``: what is no subcommand is a folder or a pattern."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(name="fleet", cls=_Fleet, context_settings=_SETTINGS)
def command() -> None:
    """Analyse thousands of traces into Parquet tables, and ask questions of them.

    \b
    traceanalyze fleet DIR... -o RESULTS        the same as fleet run
    traceanalyze fleet show RESULTS
    """


@command.command(name="run", context_settings=_SETTINGS)
@click.argument("traces", metavar="DIR|GLOB...", nargs=-1, required=True)
@click.option(
    "-o",
    "--output",
    metavar="RESULTS",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder of the results; made, or gone on with.",
)
@click.option("--jobs", type=click.IntRange(1, 1024), metavar="N", help="Traces at a time (default: one per core).")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=1800.0,
    show_default=True,
    metavar="SECONDS",
    help="Longest time for one trace.",
)
@click.option(
    "--memory",
    type=Size(),
    metavar="SIZE",
    help="Most memory of the process of one trace, e.g. 4GiB (default: nine tenths of this machine's, shared by the jobs).",
)
@click.option(
    "--commit", metavar="ID", help="The commit that was measured (default: what each capture kept in its sidecar)."
)
@click.option("--fresh", is_flag=True, help="Forget what RESULTS holds.")
@click.option("--retry-faults", is_flag=True, help="Try files again that were faults before.")
@click.option(
    "--fail-on",
    type=click.Choice(LEVELS),
    help="Exit with 1 on a finding of this level or above in any trace of RESULTS.",
)
@click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="Run on a dask.distributed cluster, e.g. tcp://head:8786; its workers read the same paths.",
)
@bound_options
@click.option("--progress/--no-progress", default=True, help="Progress on standard error.")
def run(
    traces: tuple[str, ...], output: Path, jobs: int | None, timeout: float, memory: int | None, commit: str | None, fresh: bool, retry_faults: bool,
    fail_on: str | None, scheduler: str | None, max_bytes: int, max_rows: int, max_depth: int, max_event_bytes: int, progress: bool,
) -> None:  # fmt: skip
    """Analyse each trace of folders (with their subfolders) or patterns in a process of its own, into Parquet tables.

    A trace that cannot be read, kills its process or takes too long is a row of the table faults, and the job goes on.
    Run the same command again to go on after a stop: files that are done and have not changed are skipped.
    """
    from traceanalyzer.fleet.pool import PoolOptions
    from traceanalyzer.fleet.run import FleetOptions, run_fleet
    from traceanalyzer.trace.cores import usable_cores

    cores = usable_cores()
    count = jobs or cores
    limits = ReadLimits(
        max_bytes=max_bytes, max_rows=max_rows, max_depth=max_depth, max_event_bytes=max_event_bytes,
        jobs=1 if scheduler is not None else max(1, cores // count),  # cores that no other trace takes
    )  # fmt: skip
    bound = memory if memory is not None else _share_of_memory(count) if scheduler is None else 0
    options = FleetOptions(
        output,
        PoolOptions(count, timeout, bound),
        AnalysisOptions(limits=limits),
        commit,
        fresh,
        retry_faults,
        scheduler,
    )
    with cleaning_up(), _progress(progress) as tell:
        found = run_fleet(traces, options, tell)
    faults = sum(found.faults.values())
    kinds = ", ".join(f"{code} {n}" for code, n in found.faults.most_common(4))
    before = f" ({found.skipped_faults:,} of them faults: --retry-faults)" if found.skipped_faults else ""
    click.echo(
        f"{plural(found.total, 'trace')}: {found.analysed:,} analysed, {found.skipped:,} done before{before}, "
        f"{plural(faults, 'fault')}{f' ({kinds})' if kinds else ''}; next: traceanalyze fleet show {output}",
        err=True,
    )
    if fail_on is not None and any(found.levels[level] for level in LEVELS[LEVELS.index(fail_on) :]):
        sys.exit(int(ExitCode.FINDINGS))


@command.command(name="show", context_settings=_SETTINGS)
@click.argument("results", type=click.Path(path_type=Path))
@click.option("--format", "output_format", type=click.Choice(names(FLEET)), default="text", show_default=True)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of standard output.")
@click.option(
    "--kernel", metavar="NAME", help="One kernel over devices and commits: part of its name, whatever the case."
)
@click.option("--sql", metavar="QUERY", help="The answer to a query of your own; tables and columns: docs/fleet.md.")
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Rows per table.")
def show(results: Path, output_format: str, output: str | None, kernel: str | None, sql: str | None, top: int) -> None:
    """What limits the runs of RESULTS, which rank is late and where, the worst inflation, and what cannot be judged.

    --sql takes one SELECT (DuckDB) over the tables runs, devices, kernels, operations, steps, ledger, findings, collectives and
    faults; it can read nothing else.
    """
    from traceanalyzer.fleet.questions import answer, query

    utf8_stdout()
    with cleaning_up():
        found: Any = query(results, sql) if sql is not None else answer(results, kernel, top)
    settings = RenderSettings(top=top, width=screen(output)[0])
    write_output(
        render(FLEET_QUERY if sql is not None else FLEET, output_format, found, settings), output, form=output_format
    )


def _share_of_memory(jobs: int) -> int:
    """Return nine tenths of the memory that this process may have, by job; 0 where that is not known."""
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 0
    for place in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            whole = min(whole, int(Path(place).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return int(whole * 0.9 / jobs)


@contextmanager
def _progress(enabled: bool) -> Iterator[Callable[[Progress], None]]:
    """Yield a function that shows how far the fleet is: a bar on a terminal, else a line now and then."""
    if not enabled:
        yield lambda _: None
        return
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    with Bar(
        TextColumn("traces"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[faults]} faults"), TimeElapsedColumn(), TextColumn("ETA"),
        TimeRemainingColumn(elapsed_when_finished=True), console=Console(stderr=True), transient=True,
    ) as bar:  # fmt: skip
        task = bar.add_task("", total=None, faults=0)

        def tell(found: Progress) -> None:
            # what was done before took no time: it would make the rest look short
            bar.update(
                task,
                total=found.total - found.skipped,
                completed=found.done - found.skipped,
                faults=sum(found.faults.values()),
            )

        yield tell


class _Lines:
    """A line on standard error every half minute, for the logs of a job."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()

    def __call__(self, found: Progress) -> None:
        now = time.monotonic()
        if now - self._last < _QUIET_SECONDS:
            return
        self._last = now
        ran = found.done - found.skipped
        left = found.total - found.done
        eta = f", about {left * (now - self._began) / ran / 60:.0f} min left" if ran else ""
        click.echo(
            f"fleet: {found.done:,} of {found.total:,} traces, {sum(found.faults.values()):,} faults{eta}", err=True
        )
