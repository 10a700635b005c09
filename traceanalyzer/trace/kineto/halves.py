"""Begin and end events to pairs, by time and by what they say; their order in the file is no evidence.

The end of a row carries the name and arguments of its begin where the file says them in both; else it closes the row that was
opened last, as the format defines it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.kineto.ids import id_text
from traceanalyzer.trace.kineto.rows import KinetoRow
from traceanalyzer.trace.tables import Int64

Half = tuple[RowKind, str, KinetoRow]


class _Open:
    """The rows of one thread that have begun and not ended."""

    def __init__(self) -> None:
        self._stacks: dict[tuple[object, ...], list[int]] = {}
        self._open: set[int] = set()

    def begin(self, number: int, half: Half) -> None:
        self._open.add(number)
        for key in (_exact(half), _named(half), ()):
            self._stacks.setdefault(key, []).append(number)

    def end(self, half: Half) -> int | None:
        """Return the row that an end event closes, None where none that it can close is open."""
        keys = [_exact(half)] if bytes(half[2].args) else []
        keys.append(_named(half) if half[2].name else ())
        for key in keys:
            stack = self._stacks.get(key, [])
            while stack and stack[-1] not in self._open:
                stack.pop()
            if stack:
                number = stack.pop()
                self._open.remove(number)
                return number
        return None

    def __len__(self) -> int:
        return len(self._open)


def _exact(half: Half) -> tuple[object, ...]:
    return half[0], half[2].name, bytes(half[2].args)


def _named(half: Half) -> tuple[object, ...]:
    return half[0], half[2].name


def paired(halves: Sequence[Half], times: Int64) -> tuple[list[tuple[int, int]], int]:
    """Return (begin, end) pairs of places in ``halves``, and how many halves have no other.

    Where several events of a thread have one time, what was open before ends first, then rows begin, then those of no
    length end.
    """
    threads: dict[tuple[str, str], list[int]] = {}
    for number, (_, _, row) in enumerate(halves):
        threads.setdefault((id_text(bytes(row.pid)), id_text(bytes(row.tid))), []).append(number)
    pairs: list[tuple[int, int]] = []
    lonely = 0
    for members in threads.values():
        members.sort(key=lambda n: (int(times[n]), halves[n][2].name, bytes(halves[n][2].args)))
        opened = _Open()
        for _, together in groupby(members, key=lambda n: int(times[n])):
            at_once = list(together)
            ends = [n for n in at_once if halves[n][1] == "E"]
            waiting = []
            for number in ends:
                begun = opened.end(halves[number])
                if begun is None:
                    waiting.append(number)
                else:
                    pairs.append((begun, number))
            for number in at_once:
                if halves[number][1] == "B":
                    opened.begin(number, halves[number])
            for number in waiting:
                begun = opened.end(halves[number])
                if begun is None:
                    lonely += 1
                else:
                    pairs.append((begun, number))
        lonely += len(opened)
    return pairs, lonely
