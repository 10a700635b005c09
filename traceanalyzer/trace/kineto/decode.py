"""From the bytes of Chrome JSON to a filled store."""

from __future__ import annotations

from collections.abc import Iterator

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.ahead import read_ahead
from traceanalyzer.trace.kineto.columns import Columns, new_store
from traceanalyzer.trace.kineto.fields import keep_fields
from traceanalyzer.trace.kineto.finish import finish
from traceanalyzer.trace.kineto.own_events import TRAILER_MISSING, gzip_note, restore
from traceanalyzer.trace.kineto.stream import Batch, EventStream
from traceanalyzer.trace.recognise import refusing_others
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.source import Source
from traceanalyzer.trace.store import Store

_SMALL = 256


def decode(source: Source, pieces: Iterator[bytes], limits: ReadLimits) -> Store:
    """Return the rows of Chrome JSON, whose expanded bytes come in pieces.

    Raises :class:`~traceanalyzer.errors.TraceFormatError` when nothing can be made of it; smaller damage is repaired or left out
    and counted in the store's salvage.
    """
    salvage = Salvage()
    events = EventStream(read_ahead(refusing_others(pieces, source.given)), source.given, limits, salvage)
    columns = Columns(new_store(source.name, limits, salvage))
    for batch in _gathered(events.batches()):
        columns.add(batch)
    if source.cut_short and not salvage.incomplete:
        salvage.note(TRAILER_MISSING)
    elif source.damaged_at is not None:
        salvage.incomplete = True
        salvage.note(gzip_note(source.damaged_at))
    restore(columns.own_record, salvage)
    store = columns.store
    store.chrome_json = True
    store.format = f"{'gzip, ' if source.compressed else ''}JSON {events.flavour}"
    finish(columns)
    keep_fields(events.top, store)
    return store


def _gathered(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Yield the same rows in fewer batches: damaged text comes event by event, and a batch costs the same however small."""
    waiting: Batch = []
    for batch in batches:
        if len(batch) >= _SMALL and not waiting:
            yield batch
            continue
        waiting += batch
        if len(waiting) >= _SMALL:
            yield waiting
            waiting = []
    if waiting:
        yield waiting
