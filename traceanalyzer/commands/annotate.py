"""``traceanalyze annotate TRACE -o OUT``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from traceanalyzer import number_text
from traceanalyzer.commands.files import FILE
from traceanalyzer.commands.limits import limit_options
from traceanalyzer.commands.output import refuse_input_as_output
from traceanalyzer.commands.progress import reading_progress
from traceanalyzer.commands.streamed_output import write_stream
from traceanalyzer.errors import OptionError, TraceFormatError
from traceanalyzer.options import AnalysisOptions, ReadLimits
from traceanalyzer.trace.row_faults import RowFault

if TYPE_CHECKING:
    from traceanalyzer.api import Annotations
    from traceanalyzer.trace.kineto.splice import Splice
    from traceanalyzer.trace.tables import Trace


@click.command(name="annotate", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("trace", type=FILE)
@click.option("-o", "--output", metavar="OUT", required=True, help="The copy: .json, or .json.gz to compress it.")
@click.option(
    "--max-steps",
    type=click.IntRange(0),
    default=400_000,  # about 50 MB of text, which viewers still open
    show_default=True,
    help="Most counter steps added, and most causes; more are thinned out (peaks and the longest stay), which is reported.",
)
@click.option(
    "--change",
    metavar="KEY",
    help="Write instead the timeline of the run with one change, as a trace: a key of worth in the JSON report, e.g. no_synchronise.",
)
@limit_options
@click.option("--progress/--no-progress", default=True, help="Progress bar on standard error when it is a terminal.")
def command(
    trace: str, output: str, max_steps: int, change: str | None, max_bytes: int, max_rows: int, max_depth: int, max_event_bytes: int, jobs: int, progress: bool
) -> None:  # fmt: skip
    """Write a copy of TRACE with the report's causes and evidence in it, for Perfetto or chrome://tracing.

    Added after the last event, in a process called traceanalyzer: the verdict, the cause of each idle interval, a mark
    and an arrow for each row a finding points at, and counters of queue depth and idle time per stream. The original
    events stay as they are, byte for byte; reading the copy gives the same report.

    With --change OUT holds no original events but the replayed units as the queue model says they would run.
    """
    from traceanalyzer.api import annotations_of, read
    from traceanalyzer.trace.kineto.splice import Sought, Splice

    if trace == "-" or _is_pipe(trace):
        what = "standard input" if trace == "-" else "the pipe"
        raise OptionError("needs_a_file", "annotate reads its input twice", hint=f"save {what} to a file first")
    if output == "-":
        raise OptionError(
            "needs_a_file", "annotate writes a file, and a sidecar next to it", hint="give a file name to -o"
        )
    refuse_input_as_output(output, trace)
    limits = ReadLimits(
        max_bytes=max_bytes, max_rows=max_rows, max_depth=max_depth, max_event_bytes=max_event_bytes, jobs=jobs
    )
    before = _state(trace)
    with reading_progress(progress) as callback:
        tables = read(trace, limits, callback)
    if change is not None:
        _write_counterfactual(tables, change, AnalysisOptions(limits=limits), output)
        return
    if not tables.meta.chrome_json:
        raise OptionError(
            "not_chrome_json",
            f"'{tables.meta.name}' is {tables.meta.format}; annotate adds events to Chrome JSON alone",
            hint="see its evidence with traceanalyze report --format html",
        )
    found = annotations_of(tables, AnalysisOptions(limits=limits), max_steps)
    with reading_progress(progress) as callback:
        splice = Splice(trace, limits, [Sought(m.start_ns, m.dur_ns, m.name) for m in found.marks], callback)
        size = write_stream(_copy(splice, found, tables, before, trace), output)
    for line in (*_facts(splice, found, tables, output, size), *_with_sidecar(trace, tables, output)):
        click.echo(line, err=True)


def _write_counterfactual(tables: Trace, change: str, options: AnalysisOptions, output: str) -> None:
    from traceanalyzer.api import counterfactual_of
    from traceanalyzer.render.counterfactual_trace import render_counterfactual
    from traceanalyzer.render.escape import terminal

    found = counterfactual_of(tables, change, options)
    size = write_stream(render_counterfactual(found), output)
    click.echo(
        f"{terminal(Path(output).name)}: {size:,} bytes; {found.units} units as they would be with {terminal(found.change)}: "
        f"{number_text.duration(1000 * found.period_us)} from unit to unit, recorded {number_text.duration(1000 * found.now_us)}",
        err=True,
    )


def _is_pipe(trace: str) -> bool:
    try:
        return Path(trace).is_fifo()
    except (OSError, ValueError):
        return False


def _state(trace: str) -> tuple[int, int] | None:
    try:
        found = Path(trace).stat()
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns


def _copy(
    splice: Splice, found: Annotations, tables: Trace, before: tuple[int, int] | None, trace: str
) -> Iterator[bytes]:
    import msgspec

    from traceanalyzer.render.annotated_trace import render_events

    yield from splice.original()
    seen = splice.seen
    if _state(trace) != before:
        raise TraceFormatError(
            "changed", f"'{tables.meta.name}' was changed while it was read", hint="run annotate again"
        )
    if seen.replaced != tables.meta.annotations:
        raise OptionError(
            "annotated_elsewhere",
            f"'{tables.meta.name}' holds annotations of ours where no annotate puts them",
            hint="annotate the original trace",
        )
    yield splice.separator
    yield from render_events(found, seen.places, msgspec.json.encode(seen.record))
    yield b"\n"
    yield from splice.rest()


def _with_sidecar(trace: str, tables: Trace, output: str) -> Iterator[str]:
    """Put the sidecar next to the copy, so that its report has what the capture knew; never over another file."""
    from traceanalyzer.render.escape import terminal
    from traceanalyzer.trace.sidecar import sidecar_path

    source, target = sidecar_path(Path(trace)), sidecar_path(Path(output))
    if tables.meta.sidecar is None or not Path(output).is_file():
        return
    name = terminal(target.name)
    try:
        content = source.read_bytes()
        try:
            with target.open("xb") as file:
                file.write(content)
        except FileExistsError:
            # a FIFO would be waited for, a folder or a broken link cannot be read: none of them is a sidecar
            if not target.is_file():
                yield f"{name} exists already and is no file: the copy's report will have no sidecar"
            elif target.read_bytes() != content:
                yield f"{name} exists already and is another sidecar: the copy's report will show that one"
            return
        yield f"{name}: the sidecar of the original, next to the copy"
    except OSError as error:
        yield f"{name}: {error.strerror}; put the original's sidecar there for the same report"


def _facts(splice: Splice, found: Annotations, tables: Trace, output: str, size: int) -> Iterator[str]:
    """Yield what was done, one line a fact."""
    from traceanalyzer.render.escape import terminal
    from traceanalyzer.render.format import plural

    seen, meta = splice.seen, tables.meta
    rows = (
        f"{plural(len(found.marks), 'evidence row')} of {plural(len({id(m.finding) for m in found.marks}), 'finding')}"
    )
    steps = sum(len(t.at_ns) for t in found.counters)
    pieces = sum(len(t.dur_ns) for t in found.causes)
    yield f"{terminal(Path(output).name)}: {size:,} bytes; {rows}, {plural(pieces, 'cause')} of idle time, {plural(steps, 'counter step')} on {plural(len(found.counters), 'track')}"
    if found.no_counters:
        yield f"no counters: {found.no_counters}"
    if found.thinned:
        yield f"thinned to --max-steps: {'; '.join(map(terminal, found.thinned))}"
    missing = len(found.marks) - len(seen.places)
    if missing:
        yield f"no arrow to {plural(missing, 'evidence row')}: an idle interval, or a row made of a begin and an end event"
    if seen.replaced:
        yield f"replaced {plural(seen.replaced, 'event')} of an earlier annotate"
    if seen.record.incomplete:
        cut = f", {seen.dropped_bytes:,} bytes of a cut event or field left out" if seen.dropped_bytes > 0 else ""
        yield f"the trace breaks off; the copy is closed where it does{cut}"
    repaired = sum(meta.salvage.repaired.values()) + sum(
        n for damage, n in meta.salvage.excluded.items() if damage.fault in (RowFault.MALFORMED, RowFault.NO_EVENT)
    )
    if repaired:
        yield f"{plural(repaired, 'damaged event')} of the original kept in the copy, unchanged; a strict viewer may refuse it"
    if found.marks and seen.earliest_ns is not None and seen.earliest_ns < meta.origin_ns:
        early = meta.origin_ns - seen.earliest_ns
        yield (
            f"a viewer counts from an event {early / 1000:,.3f} us before the report's zero: its times are the report's at_us plus that"
        )
