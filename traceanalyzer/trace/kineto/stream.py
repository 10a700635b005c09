"""Event rows from bytes, a few megabytes at a time, from sound and from damaged files.

The file is an object with ``traceEvents`` or a bare array. Text is decoded in large pieces cut between two
events; a piece that does not decode is narrowed down to the event that is broken, which is repaired or
dropped and counted, and the large pieces go on behind it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import DecodeError, Struct, ValidationError

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.kineto import boundaries
from traceanalyzer.trace.kineto.ending import Ending
from traceanalyzer.trace.kineto.own_events import EVENT_CUT, FIELDS_DAMAGED, FOOTER_CUT, STRAY_COMMA
from traceanalyzer.trace.kineto.repair import repair_event, repair_trailing_backslash
from traceanalyzer.trace.kineto.rows import TAGGED, LooseRow
from traceanalyzer.trace.salvage import Salvage

Batch = list[Struct]

_TAGGED_LIST: Any = msgspec.json.Decoder(list[__import__("typing").Union[tuple(TAGGED)]])  # type: ignore[misc]
_LOOSE_LIST = msgspec.json.Decoder(list[LooseRow])
_LOOSE_ONE = msgspec.json.Decoder(LooseRow)
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])

_ERROR_BYTE = re.compile(r"\(byte (\d+)\)")
_SEPARATORS = re.compile(rb"[\s,]*")
_SPACE = re.compile(rb"\s*")
_NARROW = 1 << 16
_WRONG_GUESSES = 4
_FOOTER_LIMIT = 64 << 20


class EventStream:
    """The events of one trace.

    Iterate over :meth:`batches`; afterwards ``top`` holds the fields beside the events as JSON text, and
    ``salvage`` what was wrong.
    """

    def __init__(self, pieces: Iterator[bytes], name: str, limits: ReadLimits, salvage: Salvage) -> None:
        self._pieces = pieces
        self._name = name
        self._limits = limits
        self.salvage = salvage
        self.top: dict[str, msgspec.Raw] = {}
        self.flavour = "object"
        self._buffer = b""
        self._base = 0
        self._eof = False
        self._ended = False
        self._is_object = False
        self._wrappers = 0
        self._lists = 1
        self._loose_first = 0
        self._span = (0, 0)
        self.ending = Ending()

    # -- pieces ---------------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Append the next piece; False at the end of the input."""
        piece = next(self._pieces, None)
        if piece is None:
            self._eof = True
            return False
        self._buffer = self._buffer + piece if self._buffer else piece
        return True

    def _consume(self, upto: int) -> None:
        self._buffer = self._buffer[upto:]
        self._base += upto

    def _skip_space(self) -> None:
        """Drop leading white space, however much of it there is."""
        while True:
            kept = self._buffer.lstrip()
            self._consume(len(self._buffer) - len(kept))
            if kept or not self._more():
                return

    # -- before the events ----------------------------------------------------------------------------

    def _open(self) -> None:
        """Find the start of the events array and keep the fields that stand before it."""
        while len(self._buffer) < 4 and self._more():
            pass
        if self._buffer.startswith(b"\xef\xbb\xbf"):
            self._consume(3)
        self._skip_space()
        if not self._buffer:
            raise TraceFormatError(
                "empty_file", f"'{self._name}' is empty", offset=0, hint="was the profiler's export finished?"
            )
        if self._buffer[:1] == b"[":
            self.flavour = "array"
            self._consume(1)
            self._unwrap_array()
        elif self._buffer[:1] == b"{":
            self._is_object = True
            self._open_object()
        else:
            raise TraceFormatError(
                "not_json",
                f"'{self._name}' is no JSON: a trace starts with '{{' or '['",
                offset=self._base,
                hint="give the Chrome JSON that torch.profiler's export_chrome_trace wrote",
            )

    def _open_object(self) -> None:
        scanned = 0
        while True:
            key, value, complete = boundaries.find_key(self._buffer, b"traceEvents")
            if value >= 0 or complete:
                break
            scanned = len(self._buffer)
            if scanned > self._limits.max_event_bytes or not self._more():
                # A damaged header: take the first thing that looks like the events.
                loose = re.search(rb'"traceEvents"\s*:\s*(?=[\[{])', self._buffer)
                if loose:
                    self.salvage.note(
                        "the part of the file before the events is damaged; the device names may be missing"
                    )
                    key, value = loose.start(), loose.end()
                break
        if value < 0:
            self._refuse_object(complete)
        while value >= len(self._buffer) and self._more():
            pass
        self._keep_fields(self._buffer[:key].rstrip().rstrip(b",") + b"}", self._base)
        opening = self._buffer[value : value + 1]
        if opening == b"{":
            # A whole trace stored under traceEvents (a wrapper's mistake).
            self._wrappers += 1
            if self._wrappers > 8:
                raise TraceFormatError(
                    "not_a_trace",
                    "traceEvents holds an object in an object, nine deep",
                    offset=self._base + value,
                    hint="unwrap the file",
                )
            self.salvage.note("traceEvents held another whole trace; it was unwrapped")
            self._consume(value)
            self._open_object()
        elif opening == b"[":
            self._consume(value + 1)
            self._unwrap_array()
        else:
            raise TraceFormatError(
                "not_a_trace",
                f"'{self._name}': traceEvents is no list of events",
                offset=self._base + value,
                hint="give the file that export_chrome_trace wrote",
            )

    def _refuse_object(self, complete: bool) -> None:
        if not complete:
            raise TraceFormatError(
                "truncated",
                f"'{self._name}' ends before its events begin",
                offset=self._base + len(self._buffer),
                hint="record it again; was the process killed while it wrote?",
            )
        raise TraceFormatError(
            "not_a_trace",
            f"'{self._name}' is JSON without traceEvents",
            offset=self._base,
            hint="give the Chrome JSON that export_chrome_trace wrote",
        )

    def _unwrap_array(self) -> None:
        """Accept ``[[event, ...]]`` with a note; refuse lists within lists within lists."""
        self._skip_space()
        if self._buffer[:1] != b"[":
            return
        while not (inner := self._buffer[1:].lstrip()) and len(self._buffer) < _NARROW and self._more():
            pass
        if inner[:1] == b"{":
            self.salvage.note("the events stood in a list inside a list; the inner list was taken")
            self._lists += 1
            self._consume(1)
        elif inner[:1] == b"[":
            raise TraceFormatError(
                "not_a_trace",
                f"'{self._name}' is lists within lists, not a list of events",
                offset=self._base,
                hint="give the file that export_chrome_trace wrote",
            )

    def _keep_fields(self, text: bytes, offset: int) -> bool:
        for candidate in (text, repair_event(text) if len(text) < _FOOTER_LIMIT else b""):
            try:
                fields = _OBJECT.decode(candidate)
            except (DecodeError, RecursionError):
                continue
            for key, value in fields.items():
                self.top.setdefault(key, value)
            return True
        self.salvage.at(offset)
        self.salvage.note(FIELDS_DAMAGED)
        return False

    # -- the events -----------------------------------------------------------------------------------

    @property
    def span(self) -> tuple[int, int]:
        """First and last byte (exclusive, expanded) of the batch just yielded."""
        return self._base + self._span[0], self._base + self._span[1]

    @property
    def batch_text(self) -> memoryview:
        """The text of the batch just yielded."""
        return memoryview(self._buffer)[self._span[0] : self._span[1]]

    def batches(self) -> Iterator[Batch]:
        """Yield lists of rows (:mod:`~traceanalyzer.trace.kineto.rows`) in file order."""
        self._open()
        self.ending.closers = b"]" * self._lists + (b"}" * (1 + self._wrappers) if self._is_object else b"")
        while True:
            yield from self._drain()
            if self._ended:
                break
            if self._eof:
                self._truncated()
                break
            if len(self._buffer) > self._limits.max_event_bytes:
                raise TraceFormatError(
                    "event_too_large",
                    f"no event boundary within {self._limits.max_event_bytes} bytes",
                    offset=self._base,
                    hint="a real trace? then raise the limit with --max-event-bytes",
                )
            self._more()
        self._close()

    def _truncated(self) -> None:
        self.salvage.incomplete = True
        rest = self._buffer.strip(b" \t\r\n,\0")
        self.salvage.at(self._base)
        if rest:
            self.salvage.excluded[EVENT_CUT] += 1
        self.ending.sound_end = self._base
        self._buffer = b""
        self._ended = True

    def _drain(self) -> Iterator[Batch]:
        """Decode what the buffer holds; leave an unfinished event in it."""
        position = 0
        window = 1 << 62
        while True:
            position = self._skip_separators(position)
            if position >= len(self._buffer):
                break
            if self._buffer[position] == 0x5D:  # ]
                self.ending.events_end = self._base + position
                self._consume(position + 1)
                self._ended = True
                return
            high = min(len(self._buffer), position + window)
            batch, reached = self._decode_window(position, high)
            if reached > position:
                self._span = position, reached
                position = reached
                if batch:
                    yield batch
                window = max(window, _NARROW) * 2 if window < 1 << 40 else window
                continue
            row, reached = self._one_event(position)
            if reached < 0:
                break  # the event is not all here yet
            self._span = position, reached
            position = reached
            if row is not None:
                yield [row]
            window = _NARROW
        self._consume(position)

    def _skip_separators(self, position: int) -> int:
        match = _SEPARATORS.match(self._buffer, position)
        assert match is not None
        commas = match[0].count(b",")
        last = commas > 0 and self._buffer[match.end() : match.end() + 1] == b"]"
        if commas > 1 or last:
            # with two of them the one that counts still stands between two events when one is added behind
            self.ending.stray_comma = last and commas == 1
            self.salvage.repaired[STRAY_COMMA] += 1
            self.salvage.at(self._base + match.start())
        return match.end()

    def _decode_window(self, position: int, high: int) -> tuple[Batch, int]:
        """Decode from ``position`` to a boundary at or before ``high``.

        Returns the rows and the position behind them, or (``[]``, ``position``) when the next event must be
        looked at alone.
        """
        whole = self._eof and high == len(self._buffer)
        cut = high if whole else boundaries.last_boundary(self._buffer, position, high)
        for _ in range(_WRONG_GUESSES):
            if cut <= position:
                break
            text = b"".join((b"[", memoryview(self._buffer)[position:cut], b"" if whole else b"]"))
            whole = False
            try:
                return self._decode(text), cut - (1 if text[-1:] == b"]" and self._buffer[cut - 1] == 0x5D else 0)
            except RecursionError:
                break
            except DecodeError as error:
                message = str(error)
                where = _ERROR_BYTE.search(message)
                at = int(where[1]) if where else -1
            if "trailing characters" in message:
                # The array ended inside this text; what follows belongs to the object around it.
                end = text.rfind(b"]", 0, at)
                try:
                    return self._decode(text[: end + 1]), position + end - 1
                except (DecodeError, RecursionError):
                    break
            if at < 0 or cut == high:
                cut = boundaries.last_boundary(self._buffer, position, cut)
            else:
                cut = boundaries.last_boundary(self._buffer, position, min(cut - 1, position + max(at - 1, 0)))
        return [], position

    def _decode(self, text: bytes) -> Batch:
        """Decode a JSON array of events. Raises DecodeError or RecursionError when its text is broken."""
        if self._loose_first < 4:
            try:
                rows: Batch = _TAGGED_LIST.decode(text)
                self._loose_first = 0
                return rows
            except ValidationError:
                # a row without category, or with one we do not know: normal in small numbers
                self._loose_first += 1
            except DecodeError as error:
                if "JSON is malformed" in str(error):
                    raise
        try:
            return list(_LOOSE_LIST.decode(text))
        except ValidationError:
            return self._decode_mixed(text)

    def _decode_mixed(self, text: bytes) -> Batch:
        rows: Batch = []
        for raw in _RAW_LIST.decode(text):
            try:
                rows.append(_LOOSE_ONE.decode(raw))
            except ValidationError:
                self.salvage.excluded["not an event (no JSON object)"] += 1
        return rows

    def _one_event(self, position: int) -> tuple[LooseRow | None, int]:
        """Read the one event at ``position``, repairing it if need be.

        Returns (row or None if it was dropped, position behind it), or (None, -1) to ask for more text.
        """
        buffer = self._buffer
        following = boundaries.next_event_start(buffer, position)
        if buffer[position] == 0x5B:  # a list among the events
            end, _ = boundaries.close_of(buffer, position, self._limits.max_depth)
            return self._drop("not an event (no JSON object)", position, end if end > 0 else following)
        if buffer[position] != 0x7B:  # not an object: skip to the next thing that is one
            return self._drop("text between events that is no event", position, following)
        end, depth = boundaries.close_of(buffer, position, self._limits.max_depth)
        if depth > self._limits.max_depth:
            if end < 0 and not self._eof and following < 0:
                return None, -1
            return self._drop(
                f"event nested deeper than {self._limits.max_depth} (--max-depth)",
                position,
                end if end > 0 else following,
            )
        if end > 0 and (row := self._try(buffer[position:end], depth)) is not None:
            return row, end
        if end < 0 and not self._eof and (following < 0 or len(buffer) - position < 1 << 20):
            return None, -1
        candidates = [end] if end > 0 and (following < 0 or end <= following) else [following, end]
        for stop in candidates:
            if stop <= position:
                continue
            text = buffer[position:stop].rstrip(b" \t\r\n,")
            for fixed in (repair_event(text), repair_event(repair_trailing_backslash(text))):
                row = self._try(fixed)
                if row is not None:
                    self.salvage.repaired["event with malformed text"] += 1
                    self.salvage.at(self._base + position)
                    return row, stop
        if end < 0 and following < 0:
            return None, -1  # cut off: the caller decides at the end of the file
        return self._drop("event with malformed text", position, following if following > 0 else end)

    @staticmethod
    def _try(text: bytes, depth: int = 0) -> LooseRow | None:
        usual = sys.getrecursionlimit()
        if depth > usual // 2:
            # the decoder recurses once a level; max_depth has already said that this depth is wanted
            sys.setrecursionlimit(usual + 2 * depth)
        try:
            return _LOOSE_ONE.decode(text)
        except (DecodeError, RecursionError):
            return None
        finally:
            sys.setrecursionlimit(usual)

    def _drop(self, reason: str, position: int, reached: int) -> tuple[None, int]:
        if reached < 0:
            if not self._eof:
                return None, -1
            closing = self._buffer.find(b"]", position)
            reached = closing if closing >= 0 else len(self._buffer)
        self.salvage.excluded[reason] += 1
        self.salvage.at(self._base + position)
        return None, reached

    # -- behind the events ----------------------------------------------------------------------------

    def _close(self) -> None:
        """Read the fields behind the events."""
        while not self._eof and len(self._buffer) <= _FOOTER_LIMIT:
            self._more()
        rest = self._buffer.strip(b" \t\r\n\0")
        if not self._is_object:
            if rest.strip(b"]"):
                self.salvage.note(f"{len(rest)} bytes behind the end of the trace were not read")
            return
        if self.salvage.incomplete:
            return
        if not rest:
            self.salvage.incomplete = True
            self.ending.footer = "open"
            self.salvage.at(self._base + len(self._buffer))
            return
        end = boundaries.end_of_open_object(rest)
        if end < 0:
            self.salvage.incomplete = True
            self.salvage.at(self._base + len(self._buffer))
            self.salvage.note(FOOTER_CUT)
            self.ending.footer = "open"
            end = len(rest)
        elif rest[end + 1 :].strip(b" \t\r\n\0}"):
            self.salvage.note(f"{len(rest) - end - 1} bytes behind the end of the trace were not read")
        fields = rest[:end].strip().strip(b",")
        if fields and not self._keep_fields(b"{" + fields + b"}", self._base) and self.ending.footer == "open":
            self.ending.footer = "damaged"
