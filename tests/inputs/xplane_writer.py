"""Writes XPlane files, field by field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def message(field: int, content: bytes | str) -> bytes:
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


class Plane:
    """One plane; names of events and stats get their numbers as they come."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines: list[bytes] = []

    def _stat(self, name: str, value: Any) -> bytes:
        key = self._stats.setdefault(name, len(self._stats) + 1)
        found = number(1, key)
        return found + (number(4, value) if isinstance(value, int) else message(5, value))

    def event(self, name: str, offset_ps: int, duration_ps: int, **stats: Any) -> bytes:
        key = self._events.setdefault(name, len(self._events) + 1)
        found = number(1, key) + number(2, offset_ps) + number(3, duration_ps)
        return found + b"".join(message(4, self._stat(n, v)) for n, v in stats.items())

    def line(self, tid: int, name: str, timestamp_ns: int, events: Iterable[bytes]) -> Plane:
        content = number(1, tid) + message(2, name) + number(3, timestamp_ns)
        self._lines.append(content + b"".join(message(4, e) for e in events))
        return self

    def encode(self) -> bytes:
        content = number(1, 1) + message(2, self.name) + b"".join(message(3, line) for line in self._lines)
        for field, names in ((4, self._events), (5, self._stats)):
            for name, key in names.items():
                content += message(field, number(1, key) + message(2, number(1, key) + message(2, name)))
        return message(1, content)
