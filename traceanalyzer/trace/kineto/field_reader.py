"""The fields of a trace outside of its events: the few that are known are kept, the others are passed over.

A field that is longer than the limit is left out and told with its place; the others are still read.
"""

from __future__ import annotations

import re
from enum import Enum

import msgspec
from msgspec import DecodeError, Raw

from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.file_faults import FileFault
from traceanalyzer.trace.kineto.boundaries import EVENTS_KEY
from traceanalyzer.trace.kineto.one_value import State, look, mended_field
from traceanalyzer.trace.kineto.text_window import TextWindow, close_of
from traceanalyzer.trace.possessive import compiled
from traceanalyzer.trace.salvage import Salvage

KNOWN_FIELDS = frozenset(
    {
        "deviceProperties", "baseTimeNanoseconds", "distributedInfo", "simulated", "with_stack", "record_shapes",
        "profile_memory", "with_flops", "with_modules", "cuda_runtime_version", "cuda_driver_version", "cupti_version",
        "hip_runtime_version", "hip_driver_version", "roctracer_version", "pytorch_version", "triton_version",
    }
)  # fmt: skip
"""Fields whose values are kept. Others may name machines or users."""

_SEPARATORS = compiled(rb"[\s,]*+")
_KEY = compiled(rb'"((?:[^"\\\x00-\x1f]|\\["\\/bfnrtu])*+)"\s*+:\s*+', re.S)
_LONGEST_KEY = 1 << 16


class Stop(Enum):
    """Where reading the fields of an object came to its end."""

    EVENTS = "the value of traceEvents"
    CLOSED = "behind the brace that closes the object"
    CUT = "the file ends between two fields"
    CUT_INSIDE = "the file ends in a field"
    DAMAGED = "text that is no field"


class Fields:
    """Reads the fields of an object whose opening brace is behind us."""

    def __init__(self, text: TextWindow, limits: ReadLimits, salvage: Salvage) -> None:
        self._text = text
        self._limit = limits.max_event_bytes
        self._salvage = salvage
        self._at = 0
        self.found: dict[str, Raw] = {}
        self.number = 0

    def read(self, *, until_events: bool) -> Stop:
        """Read field by field up to the end of the object, or to the value of ``traceEvents``; the text begins there then."""
        self._at = 0
        while (stop := self._field(until_events)) is None:
            if self._at > len(self._text.data) // 2:  # seldom enough that dropping text stays linear
                self._drop()
        self._drop()
        return stop

    def _drop(self) -> None:
        self._text.consume(self._at)
        self._at = 0

    def _more(self) -> bool:
        self._drop()
        return self._text.more()

    def _field(self, until_events: bool) -> Stop | None:
        text = self._text
        while True:
            match = _SEPARATORS.match(text.data, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(text.data):
                break
            if not self._more():
                return Stop.CUT
        if text.data[self._at] == 0x7D:  # }
            self._at += 1
            return Stop.CLOSED
        while (key := _KEY.match(text.data, self._at)) is None or key.end() == len(text.data):
            if text.data[self._at] != 0x22 or len(text.data) - self._at > _LONGEST_KEY:
                return Stop.DAMAGED
            if not self._more():
                cut = key is not None or close_of(text.data, self._at, len(text.data))[0] in (-1, len(text.data))
                return Stop.CUT_INSIDE if cut else Stop.DAMAGED
        self._at = key.end()
        try:
            name: str = msgspec.json.decode(b'"' + key[1] + b'"', type=str)
        except DecodeError:
            name = ""
        if until_events and name == "traceEvents":
            return Stop.EVENTS
        self.number += 1
        return self._value(name, until_events)

    def _value(self, name: str, until_events: bool) -> Stop | None:
        text = self._text
        while (seen := look(text, self._at, self._limit))[0] is State.MORE:
            self._more()
        state, end = seen
        if state is State.SOUND:
            self._keep(name, Raw(text.data[self._at : end]) if name in KNOWN_FIELDS else None, end)
            return None
        if state is State.LONG:
            self._drop()
            self._salvage.at(text.base)
            self._salvage.note(FileFault.FIELD_TOO_LARGE, text.base, self._limit)
            return None if text.skip_value() else Stop.CUT_INSIDE
        # Damaged or too deep: it is mended where it closes, which is before the events if they follow.
        self._drop()
        while True:
            events = EVENTS_KEY.search(text.data) if until_events else None
            if events is not None or len(text.data) >= self._limit or not text.more():
                break
        stop = events.start() if events else min(len(text.data), self._limit)
        end, _ = close_of(text.data, 0, stop)
        if end > 0 and state is State.DEEP:
            self._keep(name, None, end)
            return None
        if end > 0 and (value := mended_field(text.data[:end])) is not None:
            self._keep(name, value if name in KNOWN_FIELDS else None, end)
            return None
        return Stop.CUT_INSIDE if end < 0 and events is None and text.eof and stop == len(text.data) else Stop.DAMAGED

    def _keep(self, name: str, value: Raw | None, end: int) -> None:
        if value is not None:
            self.found[name] = value
        self._at = end
