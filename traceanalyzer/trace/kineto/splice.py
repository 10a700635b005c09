"""Copies a trace with events of ours behind its last one; every byte of the original events stays as it is.

The copy is made in one pass and in bounded memory: text is passed on as soon as the reader has seen that it is whole
events. What an earlier annotate added is left out. A trace that breaks off is closed. Nothing here knows what the added
events say.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import DecodeError, Raw, Struct

from traceanalyzer.errors import OptionError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.ahead import read_ahead
from traceanalyzer.trace.categories import RowKind, kind_of
from traceanalyzer.trace.file_faults import FileFault, FileNote
from traceanalyzer.trace.kineto.decimal_times import column_to_ns
from traceanalyzer.trace.kineto.own_events import Record
from traceanalyzer.trace.kineto.repair import decode_text
from traceanalyzer.trace.kineto.rows import TAGGED, LooseRow
from traceanalyzer.trace.kineto.stream import EventStream
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.row_faults import Damage, RowFault
from traceanalyzer.trace.salvage import Salvage
from traceanalyzer.trace.source import Progress, Source
from traceanalyzer.trace.store import BAD_TIME

_RAW_LIST = msgspec.json.Decoder(list[Raw])
_DRAWN_AS_ROWS = ("X", "B")
_OURS = [row_type for row_type, kind in TAGGED.items() if kind is RowKind.OURS]
_UNREAD = frozenset(row_type for row_type, kind in TAGGED.items() if kind in (RowKind.SKIP, RowKind.OURS))


class _Timed(Struct, gc=False):
    ph: str = ""
    ts: Raw = Raw(b"")


_TIMED_LIST = msgspec.json.Decoder(list[_Timed])


@dataclass(frozen=True)
class Sought:
    """A row of the trace to be found in its text, by absolute start and length in nanoseconds; the name decides among several."""

    start_ns: int
    dur_ns: int | None
    name: str


@dataclass(frozen=True)
class SplicePlace:
    """Where a viewer draws a row: process, thread and time as JSON text, exactly as the file writes them."""

    pid: bytes
    tid: bytes
    ts: bytes


@dataclass
class Seen:
    """What the pass over the original met.

    ``places`` of the sought rows, by their number; a row that was not found is absent. ``earliest_ns`` is the earliest
    time of any event that viewers draw, None without one. ``replaced`` counts events of an earlier annotate left out.
    ``dropped_bytes`` of text at the end of a broken trace could not be kept.
    """

    places: dict[int, SplicePlace] = field(default_factory=dict)
    earliest_ns: int | None = None
    replaced: int = 0
    dropped_bytes: int = 0
    record: Record = field(default_factory=Record)


class Splice:
    """One pass over a trace file: :meth:`original`, then the added events, then :meth:`rest`."""

    def __init__(
        self, path: str | Path, limits: ReadLimits, sought: Sequence[Sought], progress: Progress | None = None
    ) -> None:
        self._source = Source(path, limits, progress)
        self._salvage = Salvage()
        self._held: deque[bytes] = deque()
        self._held_from = 0
        self._pieces = self._tapped()
        self._stream = EventStream(self._pieces, self._source.name, limits, self._salvage)
        self._sought = _SoughtRows(sought)
        self._own_from: int | None = None
        self._own_record = b""
        self._last = b""
        self._new_line = False
        self.seen = Seen(self._sought.places)

    def _tapped(self) -> Iterator[bytes]:
        for piece in read_ahead(self._source.pieces()):
            self._held.append(piece)
            yield piece

    def _release(self, upto: int) -> Iterator[bytes]:
        """Yield the text held up to a byte of the original."""
        while self._held and self._held_from < upto:
            piece = self._held.popleft()
            if self._held_from + len(piece) > upto:
                cut = upto - self._held_from
                self._held.appendleft(piece[cut:])
                piece = piece[:cut]
            self._held_from += len(piece)
            self._last = piece.rstrip()[-1:] or self._last
            self._new_line = piece[-1:] == b"\n"
            yield piece

    def _skip(self, upto: int) -> int:
        """Leave out the text held up to a byte of the original; return how much it was without blanks."""
        kept = self._last, self._new_line
        dropped = sum(len(piece.strip(b" \t\r\n,\0")) for piece in self._release(upto))
        self._last, self._new_line = kept
        return dropped

    def original(self) -> Iterator[bytes]:
        """Yield the original up to where events are added. ``seen`` is complete afterwards.

        Raises OptionError when events of an earlier annotate are not together behind all others: they cannot be
        replaced then.
        """
        for batch in self._stream.batches():
            self._look(batch)
            yield from self._release(self._own_from if self._own_from is not None else self._stream.span[1])
        ending, salvage = self._stream.ending, self._salvage
        trailer_missing = self._source.cut_short and not salvage.incomplete
        damaged = None if trailer_missing else self._source.damaged_at
        end = ending.sound_end if ending.events_end is None else ending.events_end
        yield from self._release(end if self._own_from is None else self._own_from)
        self._skip(end)
        seen = self.seen
        seen.record = Record(
            incomplete=salvage.incomplete or damaged is not None,
            event_cut=salvage.excluded[Damage(RowFault.CUT)] > 0,
            footer_cut=FileNote(FileFault.FOOTER_CUT) in salvage.notes,
            fields_damaged=ending.footer == "damaged" and FileNote(FileFault.FIELDS_DAMAGED) in salvage.notes,
            stray_comma=ending.stray_comma,
            gzip_byte=damaged,
            trailer_missing=trailer_missing,
            damaged_byte=salvage.first_offset,
        )
        if self._own_record:
            seen.record = _merged(seen.record, self._own_record)

    @property
    def separator(self) -> bytes:
        """What has to come before the first added event; nothing where an earlier annotate has left it."""
        return b",\n" if self._last not in (b"[", b",") else b"" if self._new_line else b"\n"

    def rest(self) -> Iterator[bytes]:
        """Yield what follows the events, closed where the original breaks off."""
        ending = self._stream.ending
        if ending.events_end is None:
            self.seen.dropped_bytes = self._skip(1 << 62)
            yield ending.closers + b"\n"
            return
        lists = ending.closers.count(b"]")
        if ending.footer == "damaged":
            self.seen.dropped_bytes = self._skip(1 << 62) - 1
            yield ending.closers + b"\n"
            return
        pieces = self._release(1 << 62)
        if ending.footer == "open":
            # a cut footer was held in memory to be read, so it may be put together here, too
            yield b"".join(pieces).rstrip(b" \t\r\n,\0") + ending.closers[lists:] + b"\n"
            return
        yield from pieces
        for _ in self._pieces:
            yield from self._release(1 << 62)

    # -- looking at the rows ------------------------------------------------------------------------------

    def _look(self, batch: list[Struct]) -> None:
        ours = [_is_ours(row) for row in batch]
        if any(ours) or self._own_from is not None:
            self._found_ours(batch, ours)
            batch = [row for row, mine in zip(batch, ours, strict=True) if not mine]
        if batch:
            self._sought.look(batch)
            self._earliest()

    def _found_ours(self, batch: list[Struct], ours: list[bool]) -> None:
        first = 0 if self._own_from is not None else ours.index(True)
        if not all(ours[first:]):
            raise OptionError(
                "annotated_elsewhere",
                f"'{self._source.name}' holds annotations of ours among its other events, where no annotate of ours puts them",
                hint="annotate the original trace",
            )
        self.seen.replaced += len(batch) - first
        if self._own_from is None:
            begin = self._stream.span[0]
            self._own_from = begin + _start_of(bytes(self._stream.batch_text), first)
            self._own_record = bytes(getattr(batch[first], "args", b""))

    def _earliest(self) -> None:
        text = self._stream.batch_text
        try:
            rows = _TIMED_LIST.decode(b"".join((b"[", text, b"]")))
        except (DecodeError, RecursionError):
            return  # rows with a damaged or odd field: their times are not those a viewer starts at
        times = column_to_ns([row.ts for row in rows if row.ph not in ("M", "") and bytes(row.ts)])
        times = times[times != BAD_TIME]
        if len(times):
            first = int(times.min())
            self.seen.earliest_ns = first if self.seen.earliest_ns is None else min(first, self.seen.earliest_ns)


def _is_ours(row: Struct) -> bool:
    if isinstance(row, LooseRow):
        category = bytes(row.cat)
        return bool(category) and kind_of(decode_text(category)[0]) is RowKind.OURS
    return type(row) in _OURS


def _start_of(text: bytes, number: int) -> int:
    """Return where the event of this number begins in a batch's text."""
    if number == 0:
        return 0
    position = 0
    for place, event in enumerate(_RAW_LIST.decode(b"[" + text.rstrip(b"]").rstrip() + b"]")):
        position = text.index(bytes(event), position)
        if place == number:
            break
        position += len(bytes(event))
    return position


def _merged(now: Record, text: bytes) -> Record:
    """Return what is wrong with the original of an annotated trace: what its record says, and what befell the copy."""
    try:
        before = msgspec.json.decode(text, type=Record)
    except (DecodeError, RecursionError):
        return now
    damaged = [byte for byte in (now.damaged_byte, before.damaged_byte) if byte is not None]
    return Record(
        incomplete=now.incomplete or before.incomplete,
        event_cut=now.event_cut or before.event_cut,
        footer_cut=now.footer_cut or before.footer_cut,
        fields_damaged=now.fields_damaged or before.fields_damaged,
        stray_comma=now.stray_comma or before.stray_comma,
        trailer_missing=now.trailer_missing or before.trailer_missing,
        gzip_byte=before.gzip_byte if now.gzip_byte is None else now.gzip_byte,
        damaged_byte=min(damaged, default=None),
    )


class _SoughtRows:
    """Finds the sought rows among the batches."""

    def __init__(self, sought: Sequence[Sought]) -> None:
        self._sought = sought
        self._starts = distinct(np.array([s.start_ns for s in sought], dtype=np.int64))
        self._by_start: dict[int, list[int]] = {}
        for number, one in enumerate(sought):
            self._by_start.setdefault(one.start_ns, []).append(number)
        self._exact: set[int] = set()
        self.places: dict[int, SplicePlace] = {}

    def look(self, batch: Iterable[Any]) -> None:
        """Take the places of the sought rows that are in this batch."""
        if not len(self._starts):
            return
        rows = [row for row in batch if type(row) not in _UNREAD]
        starts = column_to_ns([row.ts for row in rows])
        for at in np.flatnonzero(np.isin(starts, self._starts)).tolist():
            row = rows[at]
            loose = isinstance(row, LooseRow)
            ph = decode_text(bytes(row.ph))[0] if loose else row.ph
            if ph not in _DRAWN_AS_ROWS:
                continue
            dur_ns = int(column_to_ns([row.dur])[0]) if ph == "X" else None
            name = decode_text(bytes(row.name))[0] if loose else row.name
            for number in self._by_start[int(starts[at])]:
                self._offer(number, row, name, dur_ns)

    def _offer(self, number: int, row: Any, name: str, dur_ns: int | None) -> None:
        sought = self._sought[number]
        if dur_ns is not None and sought.dur_ns is not None and dur_ns != sought.dur_ns:
            return
        exact = name == sought.name
        if number in self._exact or (number in self.places and not exact):
            return
        if exact:
            self._exact.add(number)
        self.places[number] = SplicePlace(bytes(row.pid) or b'""', bytes(row.tid) or b'""', bytes(row.ts))
