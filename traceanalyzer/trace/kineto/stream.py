"""Event rows from bytes, a few megabytes at a time, from sound and from damaged files.

The file is an object with ``traceEvents`` or a bare array. Text is decoded in large pieces cut between two
events; a piece that does not decode is narrowed down to the event that is broken, which is repaired or
dropped and counted, and the large pieces go on behind it. What is read does not depend on where the pieces are cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import DecodeError, Raw
from msgspec.json import Decoder

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.file_faults import FileFault
from traceanalyzer.trace.kineto import boundaries
from traceanalyzer.trace.kineto.crew import Crew
from traceanalyzer.trace.kineto.ending import Ending
from traceanalyzer.trace.kineto.field_reader import Fields, Stop
from traceanalyzer.trace.kineto.handed_out import HandedOut
from traceanalyzer.trace.kineto.one_value import Resync, State, decode_event, error_byte, look
from traceanalyzer.trace.kineto.row_decoder import Batch, RowDecoder
from traceanalyzer.trace.kineto.rows import LooseRow
from traceanalyzer.trace.kineto.text_window import TextWindow
from traceanalyzer.trace.possessive import compiled
from traceanalyzer.trace.row_faults import Damage, RowFault
from traceanalyzer.trace.salvage import Salvage

_SEPARATORS = compiled(rb"[\s,]*+")
_PLAIN_VALUES = compiled(
    rb'(?:(?:-?(?:0|[1-9]\d{0,30}+)(?:\.\d{1,30}+)?(?:[eE][+-]?\d{1,30}+)?|true|false|null|\[\]|"[\x20\x21\x23-\x5b\x5d-\x7e]{0,60}+")'
    rb"[ \t\r\n]{0,16}+,[ \t\r\n]{0,16}+){1,128}(?=[^\s,\]])"
)
"""Sound values that are no events, one comma behind each, before something else: a list of numbers is passed over at once."""
_VALUES = Decoder(list[Raw])
_CUT, _NO_EVENT, _STRAY_COMMA = Damage(RowFault.CUT), Damage(RowFault.NO_EVENT), Damage(RowFault.STRAY_COMMA)
_TOO_LARGE, _MALFORMED, _NO_EVENT_TEXT = (
    Damage(RowFault.TOO_LARGE),
    Damage(RowFault.MALFORMED),
    Damage(RowFault.NO_EVENT_TEXT),
)
_WIDEST = 1 << 62
_NARROWEST = 1 << 10
_LONGEST_PAUSE = 32
"""Events that are read one by one, at the most, before the next guess that several are sound."""
_WRONG_GUESSES = 4
_BROKEN = (Stop.DAMAGED, Stop.CUT, Stop.CUT_INSIDE)
_RECORD_AGAIN = "give the Chrome JSON that torch.profiler's export_chrome_trace wrote"


class EventStream:
    """The events of one trace.

    Iterate over :meth:`batches`; afterwards ``top`` holds the known fields outside of the events as JSON text, and
    ``salvage`` what was wrong.
    """

    def __init__(self, pieces: Iterator[bytes], name: str, limits: ReadLimits, salvage: Salvage) -> None:
        self._text = TextWindow(pieces)
        self._resync = Resync(self._text, limits.max_event_bytes, limits.max_depth)
        self._name = name
        self._limits = limits
        self.salvage = salvage
        self.top: dict[str, Raw] = {}
        self.flavour = "object"
        self._ended = False
        self._is_object = False
        self._wrappers = 0
        self._lists = 1
        self._commas = 0
        self._first_comma = 0
        self._window = _WIDEST
        self._alone, self._pause = 0, 1
        self._span = (0, 0)
        self.ending = Ending()
        self._decoder = RowDecoder(salvage)

    # -- before the events ----------------------------------------------------------------------------

    def _open(self) -> None:
        """Find the start of the events array and keep the fields before it."""
        text = self._text
        if text.have(3) and text.data.startswith(b"\xef\xbb\xbf"):
            text.consume(3)
        if not text.skip_blanks():
            raise TraceFormatError(
                "empty_file", f"'{self._name}' is empty", offset=0, hint="was the profiler's export finished?"
            )
        if text.data[:1] == b"[":
            self.flavour = "array"
            text.consume(1)
            self._unwrap_array()
        elif text.data[:1] == b"{":
            self._is_object = True
            text.consume(1)
            self._open_object()
        else:
            raise TraceFormatError(
                "not_json",
                f"'{self._name}' is no JSON: a trace starts with '{{' or '['",
                offset=text.base,
                hint=_RECORD_AGAIN,
            )

    def _open_object(self) -> None:
        text, salvage = self._text, self.salvage
        while True:
            fields = Fields(text, self._limits, salvage)
            begin = text.base
            stop = fields.read(until_events=True)
            if stop in _BROKEN and text.skip_to(boundaries.EVENTS_KEY):
                # A damaged header: take the first thing that looks like the events.
                salvage.note(FileFault.HEADER_DAMAGED)
                salvage.note(FileFault.FIELDS_DAMAGED)
                salvage.at(begin - 1)
                text.consume(text.data.index(b":") + 1)
                text.skip_blanks()
            elif stop is not Stop.EVENTS:
                self._refuse_object(stop, begin - 1)
            for key, value in fields.found.items():
                self.top.setdefault(key, value)
            opening = text.data[:1]
            if opening == b"[":
                text.consume(1)
                self._unwrap_array()
                return
            if opening != b"{":
                raise TraceFormatError(
                    "not_a_trace",
                    f"'{self._name}': traceEvents is no list of events",
                    offset=text.base,
                    hint=_RECORD_AGAIN,
                )
            # A whole trace stored under traceEvents (a wrapper's mistake).
            self._wrappers += 1
            if self._wrappers > 8:
                raise TraceFormatError(
                    "not_a_trace",
                    "traceEvents holds an object in an object, nine deep",
                    offset=text.base,
                    hint="unwrap the file",
                )
            salvage.note(FileFault.TRACE_IN_TRACE)
            text.consume(1)

    def _refuse_object(self, stop: Stop, begin: int) -> None:
        if stop is not Stop.CLOSED:
            raise TraceFormatError(
                "truncated",
                f"'{self._name}' ends before its events begin",
                offset=self._text.base + len(self._text.data),
                hint="record it again; was the process killed while it wrote?",
            )
        raise TraceFormatError(
            "not_a_trace",
            f"'{self._name}' is JSON without traceEvents",
            offset=begin,
            hint=_RECORD_AGAIN,
        )

    def _unwrap_array(self) -> None:
        """Accept ``[[event, ...]]`` with a note; refuse lists within lists within lists."""
        text = self._text
        if not text.skip_blanks() or text.data[:1] != b"[":
            return
        most = self._limits.max_event_bytes
        while not (inner := text.data[1:most].lstrip()) and len(text.data) < most and text.more():
            pass
        if inner[:1] == b"{":
            self.salvage.note(FileFault.LIST_IN_LIST)
            self._lists += 1
            text.consume(1)
        elif inner[:1] == b"[":
            raise TraceFormatError(
                "not_a_trace",
                f"'{self._name}' is lists within lists, not a list of events",
                offset=text.base,
                hint=_RECORD_AGAIN,
            )

    # -- the events -----------------------------------------------------------------------------------

    @property
    def span(self) -> tuple[int, int]:
        """First and last byte (exclusive, expanded) of the batch just yielded."""
        return self._text.base + self._span[0], self._text.base + self._span[1]

    @property
    def batch_text(self) -> memoryview:
        """The text of the batch just yielded: its events and what is between them."""
        return memoryview(self._text.data)[self._span[0] : self._span[1]]

    def batches(self) -> Iterator[Batch]:
        """Yield lists of rows (:mod:`~traceanalyzer.trace.kineto.rows`) in file order."""
        for found in self.parts(None):
            assert isinstance(found, list)
            yield found

    def parts(self, crew: Crew | None) -> Iterator[Batch | tuple[int, Any]]:
        """Yield, in file order, lists of rows, and what workers have read: the number of the worker and its answer."""
        self._open()
        given = HandedOut(self._text, crew, self._limits.max_event_bytes) if crew is not None else None
        self.ending.closers = b"]" * self._lists + (b"}" * (1 + self._wrappers) if self._is_object else b"")
        while True:
            if given is not None:
                self._text.consume(self._skip_separators(0))
                if given.wanted(0):
                    yield from given.answers()
            yield from self._drain()
            if self._ended:
                break
            if self._text.eof:
                self._truncated()
                break
            self._text.more()
        self._close()

    def _truncated(self) -> None:
        text = self._text
        self.salvage.incomplete = True
        self.salvage.at(text.base)
        if text.data.strip(b" \t\r\n,\0"):
            self.salvage.excluded[_CUT] += 1
        self.ending.sound_end = text.base
        text.consume(len(text.data))

    def _drain(self) -> Iterator[Batch]:
        """Decode what is here; leave an unfinished event in it."""
        text = self._text
        position = 0
        while True:
            position = self._skip_separators(position)
            if position >= len(text.data):
                break
            if text.data[position] == 0x5D:  # ]
                self.ending.events_end = text.base + position
                text.consume(position + 1)
                self._ended = True
                return
            if text.data[position] != 0x7B and (plain := _PLAIN_VALUES.match(text.data, position)):
                self.salvage.excluded[_NO_EVENT] += len(_VALUES.decode(b"[" + plain[0].rstrip(b", \t\r\n") + b"]"))
                position = plain.end()
                continue
            if self._alone:  # in the midst of damage a guess costs more than it brings
                self._alone -= 1
                batch, reached = Batch(), position
            else:
                batch, reached = self._decode_window(position)
                if reached <= position:
                    self._alone, self._pause = self._pause - 1, min(2 * self._pause, _LONGEST_PAUSE)
            if reached > position:
                self._span, self._pause = (position, reached), 1
                position = reached
                if batch:
                    yield batch
                self._window = min(self._window * 2, _WIDEST)
                continue
            row, reached = self._one_event(position)
            self._window = _NARROWEST
            if reached == position:
                break  # the event is not all here yet
            if reached < 0:
                text.consume(position)
                if not self._skip_long():
                    return
                position = 0
                continue
            self._span = position, reached
            position = reached
            if row is not None:
                yield [row]
        text.consume(position)

    def _skip_separators(self, position: int) -> int:
        """Pass over blanks and commas; what they come to is told where something else follows them."""
        text = self._text
        if not self._commas and text.data[position : position + 2] in (b",{", b'{"'):
            return position + (text.data[position] == 0x2C)
        match = _SEPARATORS.match(text.data, position)
        assert match is not None
        if match.end() > position:
            if not self._commas:
                self._first_comma = text.base + position
            self._commas += match[0].count(b",")
        if match.end() == len(text.data):
            return match.end()
        last = self._commas > 0 and text.data[match.end()] == 0x5D
        if self._commas > 1 or last:
            # with two of them the one that counts is still between two events when one is added behind
            self.ending.stray_comma = last and self._commas == 1
            self.salvage.repaired[_STRAY_COMMA] += 1
            self.salvage.at(self._first_comma)
        self._commas = 0
        return match.end()

    def _decode_window(self, position: int) -> tuple[Batch, int]:
        """Decode from ``position`` to the last boundary between two events that the window holds.

        Returns the rows and the position behind them, or (``[]``, ``position``) when the next event must be
        looked at alone.
        """
        data = self._text.data
        high = min(len(data), position + self._window, position + self._limits.max_event_bytes)
        cut = boundaries.last_boundary(data, position, high)
        for _ in range(_WRONG_GUESSES):
            if cut <= position:
                break
            text = b"".join((b"[", memoryview(data)[position:cut], b"]"))
            try:
                return self._decoder.decode(text), cut
            except RecursionError:
                break
            except DecodeError as error:
                at = error_byte(error)
                ended = "trailing characters" in str(error)
            if ended:
                # The array ended inside this text; what follows belongs to the object around it.
                end = text.rfind(b"]", 0, at - 1)
                try:
                    return self._decoder.decode(text[: end + 1]), position + len(text[1:end].rstrip())
                except (DecodeError, RecursionError):
                    break
            cut = boundaries.last_boundary(data, position, min(cut - 1, position + max(at - 1, 0)) if at >= 0 else cut)
        return [], position

    def _one_event(self, position: int) -> tuple[LooseRow | None, int]:
        """Read the one event at ``position``, repairing it if need be.

        Returns (row or None if it was dropped, position behind it). The position is ``position`` itself to ask for more
        text, and -1 for a value that does not end within the limit: it begins the text then, and is dropped.
        """
        data, limit = self._text.data, self._limits.max_event_bytes
        is_object = data[position] == 0x7B
        state, end = look(self._text, position, limit)
        if state is State.MORE:
            return None, position
        if state is State.LONG:
            return None, -1
        if state is State.SOUND:
            if is_object:
                return decode_event(data[position:end]), end
            self.salvage.excluded[_NO_EVENT] += 1
            return None, end
        found = self._resync.settle(position, event=is_object, deep=state is State.DEEP)
        if found is None:
            return None, position
        if found.row is not None:
            if found.mended:
                self.salvage.repaired[_MALFORMED] += 1
                self.salvage.at(self._text.base + position)
            return found.row, found.reached
        if found.reached < 0:
            if len(data) - position >= limit:
                return None, -1
            if is_object and not found.deep:
                return None, position  # cut off at the end of the file
            if not data[position:].strip(b" \t\r\n,\0"):
                return None, position
            closing = data.find(b"]", position + 1)
            found.reached = closing if closing >= 0 else len(data)
        if found.deep:
            reason = Damage(RowFault.TOO_DEEP, limit=self._limits.max_depth)
        else:
            reason = _MALFORMED if is_object else _NO_EVENT_TEXT
        self.salvage.excluded[reason] += 1
        self.salvage.at(self._text.base + position)
        return None, found.reached

    def _skip_long(self) -> bool:
        """Drop the value that begins the text and does not end within the limit; False where the file ends in it."""
        text, limit = self._text, self._limits.max_event_bytes
        self.salvage.at(text.base)
        self.salvage.note(FileFault.EVENT_TOO_LARGE, text.base, limit)
        begin = text.base
        sound = look(text, 0, limit)[0] is State.LONG
        if text.skip_value() if sound else text.skip_to(boundaries.EVENT_START):
            self.salvage.excluded[_TOO_LARGE] += 1
            return True
        self._truncated()
        self.salvage.excluded[_CUT] += 1
        self.ending.sound_end = begin
        self._ended = True
        return False

    # -- behind the events ----------------------------------------------------------------------------

    def _close(self) -> None:
        """Read the fields behind the events."""
        text, salvage, ending = self._text, self.salvage, self.ending
        if ending.events_end is None:
            return
        for _ in range(self._lists - 1):
            if text.skip_blanks() and text.data[:1] == b"]":
                text.consume(1)
        if not self._is_object:
            length, _ = text.rest(b" \t\r\n\0]")
            if length:
                salvage.note(FileFault.BYTES_BEHIND, number=length)
            return
        begin = text.base
        fields = Fields(text, self._limits, salvage)
        stop = fields.read(until_events=False)
        damaged = stop in (Stop.DAMAGED, Stop.CUT_INSIDE)
        if stop is Stop.DAMAGED:
            stop = Stop.CLOSED if text.skip_value(1) else Stop.CUT
        if stop is not Stop.CLOSED:
            salvage.incomplete = True
            salvage.at(text.base + len(text.data))
            ending.footer = "damaged" if damaged else "open"
            if fields.number:
                salvage.note(FileFault.FOOTER_CUT)
        if damaged:
            salvage.at(begin)
            salvage.note(FileFault.FIELDS_DAMAGED)
        if not damaged or stop is Stop.CLOSED:  # an annotated copy keeps these fields, so its report has them, too
            for key, value in fields.found.items():
                self.top.setdefault(key, value)
        if stop is not Stop.CLOSED:
            return
        length, _ = text.rest(b" \t\r\n\0}")
        if length:
            salvage.note(FileFault.BYTES_BEHIND, number=length)
