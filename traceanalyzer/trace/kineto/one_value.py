"""One JSON value out of the text: where it ends, and whether it is sound, cut off, too long or damaged.

The decoder itself finds the end of a sound value, in growing windows, so that a short value costs little and a long one is
looked at twice at most. Of a damaged value only strings and brackets are walked, and no further than a budget that grows with
the file: text that is nothing but damage is read in linear time.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import msgspec
from msgspec import DecodeError, Raw, ValidationError

from traceanalyzer.trace.kineto.boundaries import EVENT_START, LONGEST_START
from traceanalyzer.trace.kineto.repair import repair_event, repair_trailing_backslash
from traceanalyzer.trace.kineto.rows import LooseRow
from traceanalyzer.trace.kineto.text_window import TextWindow, close_of

_RAW = msgspec.json.Decoder(Raw)
_LOOSE = msgspec.json.Decoder(LooseRow)
_FIRST_WINDOW = 1 << 10
_MARGIN = 64  # a number or a surrogate pair that the window cuts is an error this near to its end
_BEHIND_NEXT = 1 << 16
_FIRST_BUDGET = 1 << 16
_BUDGET_PER_BYTE = 1
_LONGEST_MENDED = 4 << 20


class State(IntEnum):
    """What a value is; MORE asks for more text, LONG is sound as far as the limit and does not end before it."""

    SOUND = 0
    MORE = 1
    LONG = 2
    DEEP = 3
    DAMAGED = 4


@dataclass(slots=True)
class Settled:
    """What a damaged value comes to: ``reached`` is the position behind it, -1 where nothing tells.

    ``row`` is the event, None where there is none to be had; ``mended`` says that its text had to be changed, ``deep`` that it
    is nested deeper than allowed.
    """

    reached: int
    row: LooseRow | None = None
    mended: bool = False
    deep: bool = False


def error_byte(error: DecodeError) -> int:
    """Return the position that the decoder's message names; -1 for text that only ends too early.

    For characters behind a value it is the position behind the first of them.
    """
    return _byte_of(str(error))


def _byte_of(told: str) -> int:
    # a pattern takes three times as long, and text that is nothing but damage asks once a few bytes
    start = told.rfind("(byte ")
    return int(told[start + 6 : told.index(")", start)]) if start >= 0 else -1


def look(text: TextWindow, position: int, limit: int) -> tuple[State, int]:
    """Return the state of the value at ``position`` and, where it is sound, the position behind it."""
    data, size = text.data, len(text.data)
    decoder: Any = _LOOSE if data[position] == 0x7B else _RAW
    view = memoryview(data)
    window = _FIRST_WINDOW
    while True:
        high = min(size, position + min(window, limit))
        last = high == size
        try:
            decoder.decode(view[position:high])
        except ValidationError:
            return State.DAMAGED, -1
        except RecursionError:
            return State.DEEP, -1
        except DecodeError as error:
            told = str(error)
            at = _byte_of(told)
            if "trailing characters" in told:
                return State.SOUND, position + len(data[position : position + at - 1].rstrip())
            if 0 <= at < high - position - _MARGIN:
                return State.DAMAGED, -1
            if not last and high - position < limit:
                window *= 8
                continue
            if high - position >= limit:
                return State.LONG, -1
            return (State.DAMAGED if text.eof else State.MORE), -1
        if data[position] in b'{["' or (last and text.eof):
            return State.SOUND, position + len(data[position:high].rstrip())
        if not last and high - position < limit:  # a number may go on
            window *= 8
            continue
        if last and not text.eof:
            return State.MORE, -1
        return State.LONG, -1


class Resync:
    """Finds the end of damaged events, and the next text that looks like an event behind them."""

    def __init__(self, text: TextWindow, limit: int, max_depth: int) -> None:
        self._text = text
        self._limit = limit
        self._max_depth = max_depth
        self._next = -1
        self._none_from: int | None = None
        self._spent = 0

    def following(self, after: int) -> int:
        """Return where the next text that looks like the start of an event lies, -1 where none is here."""
        text = self._text
        if self._next >= text.base + after:
            return self._next - text.base
        if self._none_from is not None and text.base + after >= self._none_from:
            return -1
        match = EVENT_START.search(text.data, after)
        if match is None:
            if text.eof:
                self._none_from = text.base + after
            return -1
        self._next = text.base + match.start(1)
        return match.start(1)

    def settle(self, position: int, *, event: bool, deep: bool) -> Settled | None:
        """Return what a damaged value at ``position`` comes to; None asks for more text.

        ``event``: it begins like an event and may be mended to one. ``deep``: the decoder gave it up for its depth alone.
        """
        text = self._text
        size = len(text.data)
        following = self.following(position + 1)
        if following < 0 and not text.eof and size - position < self._limit + LONGEST_START:
            return None
        if following >= position + self._limit:
            following = -1
        stop = following if following > 0 else position + self._limit
        budget = _FIRST_BUDGET + _BUDGET_PER_BYTE * (text.base + position) - self._spent
        if budget > 0:
            stop = min(stop + min(budget, _BEHIND_NEXT), position + self._limit)
        if stop > size:
            if not text.eof:
                return None
            stop = size
        # a few bytes of an event without a bracket that closes are neither an event nor deep: there is nothing to walk
        hopeless = event and stop - position <= self._max_depth and _closes_nowhere(text.data, position, stop)
        end, depth = (-1, 0) if hopeless else close_of(text.data, position, stop)
        found = None
        too_deep = depth > self._max_depth
        if event and not (hopeless or too_deep):
            found = self._mend(position, end, following, depth, deep)
        if found is None:
            reached = following if end <= position else end
            if not too_deep and position < following < reached:
                reached = following
            found = Settled(reached if reached > position else -1, deep=too_deep)
        if following > 0 and (walked := (end if end > 0 else stop) - max(found.reached, following)) > 0:
            self._spent += walked
        return found

    def _mend(self, position: int, end: int, following: int, depth: int, deep: bool) -> Settled | None:
        data = self._text.data
        for stop in (end,) if following < 0 or 0 < end <= following else (following, end):
            if stop <= position:
                continue
            body = data[position:stop].rstrip(b" \t\r\n,")
            if not body.endswith(b"}"):
                continue
            # as it is, only a text that was too deep for the decoder can be an event
            if deep and stop == end and (row := _decode(body, depth)) is not None:
                return Settled(stop, row)
            if len(body) > _LONGEST_MENDED:
                continue
            for fixed in _repaired(body):
                row = _decode(fixed, depth)
                if row is not None:
                    return Settled(stop, row, mended=True)
        return None


def _closes_nowhere(data: bytes, start: int, stop: int) -> bool:
    return data.find(b"}", start, stop) < 0 and data.find(b"]", start, stop) < 0


def decode_event(text: bytes) -> LooseRow:
    """Return the event of a text that :func:`look` has found sound."""
    return _LOOSE.decode(text)


def _repaired(body: bytes) -> Iterator[bytes]:
    """Yield the ways to repair an event, a different text each."""
    yield repair_event(body)
    other = repair_trailing_backslash(body) if b'\\"' in body else body
    if other != body:
        yield repair_event(other)


def _decode(text: bytes, depth: int) -> LooseRow | None:
    usual = sys.getrecursionlimit()
    deep = depth > usual // 2
    if deep:
        # the decoder recurses once a level; max_depth has already said that this depth is wanted
        sys.setrecursionlimit(usual + 2 * depth)
    try:
        return _LOOSE.decode(text)
    except (DecodeError, RecursionError):
        return None
    finally:
        if deep:
            sys.setrecursionlimit(usual)


def mended_field(text: bytes) -> Raw | None:
    """Return a field's value with its text made valid; None where it cannot be."""
    try:
        return _RAW.decode(repair_event(text)) if len(text) <= _LONGEST_MENDED else None
    except (DecodeError, RecursionError):
        return None
