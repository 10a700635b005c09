"""From a path to a :class:`~traceanalyzer.trace.tables.Trace`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import IO

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.ahead import read_ahead
from traceanalyzer.trace.kineto.build import build
from traceanalyzer.trace.kineto.columns import Columns
from traceanalyzer.trace.kineto.own_events import gzip_note, restore
from traceanalyzer.trace.kineto.stream import EventStream
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.sidecar_place import may_have_sidecar
from traceanalyzer.trace.source import Progress, Source
from traceanalyzer.trace.tables import Trace


def read(
    path: str | Path, limits: ReadLimits | None = None, progress: Progress | None = None, file: IO[bytes] | None = None
) -> Trace:
    """Return the tables of a trace: ``.json``, ``.json.gz`` or ``-`` for standard input.

    ``progress`` is called with the bytes read so far and the file's size. Raises
    :class:`~traceanalyzer.errors.TraceFormatError` when nothing can be made of the input; smaller damage is
    repaired or left out and stands in ``trace.meta.salvage``. A sidecar that lies beside the trace comes with it. ``file``:
    the path, opened before by somebody who looked at its beginning; a pipe cannot be opened twice.
    """
    limits = limits or ReadLimits()
    salvage = Salvage()
    source = Source(path, limits, progress, file)
    events = EventStream(read_ahead(source.pieces()), source.name, limits, salvage)
    columns = Columns(limits, salvage)
    for batch in events.batches():
        columns.add(batch)
    if source.damaged_at is not None:
        salvage.incomplete = True
        salvage.note(gzip_note(source.damaged_at))
    restore(columns.own_record, salvage)
    file_format = f"{'gzip, ' if source.compressed else ''}JSON {events.flavour}"
    trace = build(columns, events.top, source.name, file_format)
    if not may_have_sidecar(path):
        return trace
    from traceanalyzer.trace.sidecar import of_another_trace, read_sidecar

    sidecar, fault = read_sidecar(path)
    if sidecar is not None and (
        why := of_another_trace(sidecar, trace.names, [d.name for d in trace.devices], bool(len(trace.activities)))
    ):
        sidecar, fault = None, why
    return replace(trace, meta=replace(trace.meta, sidecar=sidecar, sidecar_fault=fault))
