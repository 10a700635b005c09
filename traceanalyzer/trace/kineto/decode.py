"""From the bytes of Chrome JSON to a filled store."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import chain

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.ahead import read_ahead
from traceanalyzer.trace.cores import processes
from traceanalyzer.trace.file_faults import FileFault
from traceanalyzer.trace.kineto.columns import Columns, new_store
from traceanalyzer.trace.kineto.crew import Crew, WorkerLost
from traceanalyzer.trace.kineto.fields import keep_fields
from traceanalyzer.trace.kineto.finish import finish
from traceanalyzer.trace.kineto.own_events import restore
from traceanalyzer.trace.kineto.part import DecodedPart, Merger, PartReader
from traceanalyzer.trace.kineto.row_decoder import Batch
from traceanalyzer.trace.kineto.stream import EventStream
from traceanalyzer.trace.recognise import refusing_others
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.source import Source
from traceanalyzer.trace.store import Store

_SMALL = 256
_WORTH_PIECES = 3
"""Of text with fewer pieces several processes would save less than they cost."""


def decode(source: Source, pieces: Iterator[bytes], limits: ReadLimits) -> Store:
    """Return the rows of Chrome JSON, whose expanded bytes come in pieces.

    Raises :class:`~traceanalyzer.errors.TraceFormatError` when nothing can be made of it; smaller damage is repaired or left out
    and counted in the store's salvage.
    """
    salvage = Salvage()
    columns = Columns(new_store(source.name, limits, salvage))
    merger = Merger(columns)
    with ExitStack() as ends:
        # before the thread that reads ahead: a copy of this process would lack it
        crew, pieces = _crew(refusing_others(pieces, source.given), limits)
        if crew is not None:
            ends.enter_context(crew)
        events = EventStream(read_ahead(pieces), source.given, limits, salvage)
        for found in _gathered(events.parts(crew)):
            if isinstance(found, list):
                columns.add(found)
            else:
                merger.add(*found)
    if source.cut_short and not salvage.incomplete:
        salvage.note(FileFault.GZIP_TRAILER)
    elif source.damaged_at is not None:
        salvage.incomplete = True
        salvage.note(FileFault.GZIP_DAMAGED, source.damaged_at)
    restore(columns.own_record, salvage)
    store = columns.store
    store.chrome_json = True
    store.format = f"{'gzip, ' if source.compressed else ''}JSON {events.flavour}"
    finish(columns)
    keep_fields(events.top, store)
    return store


def _crew(pieces: Iterator[bytes], limits: ReadLimits) -> tuple[Crew | None, Iterator[bytes]]:
    """Return processes that decode, None where it is not worth it or not possible, and the pieces as they were."""
    count = processes(limits.jobs)
    if count < 2:
        return None, pieces
    head: deque[bytes] = deque()
    size, worth = 0, _WORTH_PIECES * limits.chunk_bytes
    for piece in pieces:
        head.append(piece)
        size += len(piece)
        if size >= worth:
            break
    crew = None
    if size >= worth:
        with suppress(WorkerLost):
            crew = Crew(count, max(1, limits.chunk_bytes // 2), lambda: PartReader(limits))
    return crew, chain(_emptied(head), pieces)


def _emptied(pieces: deque[bytes]) -> Iterator[bytes]:
    while pieces:
        yield pieces.popleft()


Found = Batch | tuple[int, DecodedPart]


def _gathered(found: Iterator[Found]) -> Iterator[Found]:
    """Yield the same rows in fewer batches: damaged text comes event by event, and a batch costs the same however small."""
    waiting: Batch = []
    for one in found:
        if isinstance(one, list) and (waiting or len(one) < _SMALL):
            waiting += one
            if len(waiting) < _SMALL:
                continue
            yield waiting
        else:
            if waiting:
                yield waiting
            yield one
        waiting = []
    if waiting:
        yield waiting
