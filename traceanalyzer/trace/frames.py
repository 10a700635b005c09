"""Calls of Python functions: half of a trace may be such rows, and they are looked into only where nothing else tells what a thread did.

They are kept as they come, about 13 bytes a row, and never sorted as a whole: who asks names the time that is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.record import record

Array = npt.NDArray[Any]
Int64 = npt.NDArray[np.int64]
Bool = npt.NDArray[np.bool_]

_SMALL = 4096
_NEVER = np.iinfo(np.int64).max


@record()
class Narrow:
    """A column of 64-bit integers, as their distances from the smallest where these have 32 bits."""

    base: int
    offsets: Array

    @classmethod
    def of(cls, values: Int64) -> Narrow:
        """Return the column of some values."""
        low = int(values.min()) if len(values) else 0
        if len(values) and int(values.max()) - low < 1 << 32:
            return cls(low, (values - low).astype(np.uint32))
        return cls(0, values)

    def values(self) -> Int64:
        """Return the values."""
        return np.asarray(self.offsets.astype(np.int64) + self.base)


@record()
class FrameBatch:
    """Frames in the order of the file: ``lane`` is a row of ``lanes``, which has the codes of a process and a thread (two columns)."""

    start: Narrow
    dur: Narrow
    name: Array
    lane: Array
    lanes: Array

    @classmethod
    def of(cls, start_ns: Int64, dur_ns: Int64, pid: Array, tid: Array, name: Array) -> FrameBatch:
        """Return the batch of some columns."""
        key = (pid.astype(np.int64) << 32) | tid
        if len(key) and bool((key == key[0]).all()):
            keys, lane = key[:1], np.zeros(len(key), dtype=np.uint8)
        else:
            keys, place = np.unique(key, return_inverse=True)
            lane = place.reshape(-1).astype(np.uint8 if len(keys) <= 1 << 8 else np.uint32)
        lanes = np.stack([keys >> 32, keys & 0xFFFFFFFF], axis=1).astype(np.int32)
        return cls(Narrow.of(start_ns), Narrow.of(dur_ns), name, lane, lanes)

    def __len__(self) -> int:
        return len(self.name)

    def take(self, rows: Any) -> FrameBatch:
        """Return the batch of some rows, without the lanes of others."""
        lane = self.lane[rows]
        used, place = np.unique(lane, return_inverse=True)
        return FrameBatch(
            Narrow(self.start.base, self.start.offsets[rows]), Narrow(self.dur.base, self.dur.offsets[rows]), self.name[rows],
            place.reshape(-1).astype(lane.dtype), self.lanes[used],
        )  # fmt: skip

    def coded(self, names: Array, pids: Array, tids: Array) -> FrameBatch:
        """Return the batch with other codes: ``names[c]`` instead of ``c``, and so on."""
        lanes = np.stack([pids[self.lanes[:, 0]], tids[self.lanes[:, 1]]], axis=1).astype(np.int32)
        return FrameBatch(self.start, self.dur, names[self.name].astype(np.int32), self.lane, lanes)


def _joined(batches: list[FrameBatch]) -> FrameBatch:
    if len(batches) == 1:
        return batches[0]
    return FrameBatch.of(
        *(np.concatenate(c) for c in zip(*(
            (b.start.values(), b.dur.values(), b.lanes[b.lane, 0], b.lanes[b.lane, 1], b.name) for b in batches
        ), strict=True)),
    )  # fmt: skip


def joined(batches: Iterable[FrameBatch]) -> Iterable[FrameBatch]:
    """Yield the same rows in no more batches than their number asks for: damaged text gives them a few at a time."""
    waiting: list[FrameBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += len(batch)
        if size >= _SMALL:
            yield _joined(waiting)
            waiting, size = [], 0
    if size:
        yield _joined(waiting)


@record(frozen=True)
class FrameRows:
    """Some frames, sorted by start, the longer first, then by thread and name; ``name`` is a row of :attr:`PythonFrames.names`."""

    name: Array
    start_ns: Int64
    end_ns: Int64
    thread: Array

    def __len__(self) -> int:
        return len(self.name)


@record(frozen=True)
class PythonFrames:
    """The frames of a trace. ``threads`` has, for each batch, the number of the thread of each of its lanes."""

    batches: list[FrameBatch] = field(default_factory=list)
    threads: list[Array] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        spans = [_span(b) for b in self.batches]
        object.__setattr__(self, "_spans", spans)

    def __len__(self) -> int:
        return sum(map(len, self.batches))

    def extent(self, of_thread: Bool) -> tuple[int, int] | None:
        """Return the first start and the last end among frames of some threads, None where they have none."""
        first, last = _NEVER, -_NEVER
        for batch, threads, (lane_first, lane_last) in zip(self.batches, self.threads, self._all_spans(), strict=True):
            del batch
            mine = of_thread[threads]
            if mine.any():
                first, last = min(first, int(lane_first[mine].min())), max(last, int(lane_last[mine].max()))
        return (first, last) if last > -_NEVER else None

    def per_thread(self, of_names: Bool) -> Int64:
        """Return how many frames with one of some names each thread has."""
        most = 1 + max((int(t.max()) for t in self.threads if len(t)), default=0)
        found = np.zeros(most, dtype=np.int64)
        for batch, threads in zip(self.batches, self.threads, strict=True):
            counts = np.bincount(batch.lane[of_names[batch.name]], minlength=len(threads))
            np.add.at(found, threads, counts)
        return found

    def touching(self, start: Int64, end: Int64, of_names: Bool | None = None) -> FrameRows:
        """Return the frames that have an instant in common with intervals, which are disjoint and sorted; of some names only."""
        parts: list[tuple[Array, ...]] = []
        for batch, threads, (lane_first, lane_last) in zip(self.batches, self.threads, self._all_spans(), strict=True):
            low = int(np.searchsorted(end, int(lane_first.min()), side="right"))
            high = int(np.searchsorted(start, int(lane_last.max()), side="left"))
            if low >= high:
                continue
            mine: Any = slice(None) if of_names is None else np.flatnonzero(of_names[batch.name])
            begin = batch.start.offsets[mine].astype(np.int64) + batch.start.base
            stop = begin + batch.dur.offsets[mine] + batch.dur.base
            # the first interval that ends behind the frame's start is the first that it can meet
            meets = np.append(start[low:high], _NEVER)[np.searchsorted(end[low:high], begin, side="right")]
            hit = np.flatnonzero(meets < stop)
            if len(hit):
                at = hit if of_names is None else mine[hit]
                parts.append((batch.name[at], begin[hit], stop[hit].astype(np.int64), threads[batch.lane[at]]))
        if not parts:
            none = np.empty(0, dtype=np.int64)
            return FrameRows(none.astype(np.int32), none, none, none.astype(np.int32))
        name, begin, stop, thread = (np.concatenate(c) for c in zip(*parts, strict=True))
        order = np.lexsort((name, thread, -stop, begin))
        return FrameRows(name[order], begin[order], stop[order], thread[order])

    def rows(self) -> FrameRows:
        """Return all frames."""
        every = np.array([-_NEVER], dtype=np.int64), np.array([_NEVER], dtype=np.int64)
        return self.touching(*every)

    def _all_spans(self) -> list[tuple[Int64, Int64]]:
        spans: list[tuple[Int64, Int64]] = self._spans  # type: ignore[attr-defined]  # set when it was made
        return spans


def _span(batch: FrameBatch) -> tuple[Int64, Int64]:
    """Return the first start and last end of each lane."""
    start = batch.start.values()
    end = start + batch.dur.offsets + batch.dur.base
    if len(batch.lanes) == 1:
        return start.min(keepdims=True), end.max(keepdims=True).astype(np.int64)
    first, last = np.full(len(batch.lanes), _NEVER), np.full(len(batch.lanes), -_NEVER)
    np.minimum.at(first, batch.lane, start)
    np.maximum.at(last, batch.lane, end)
    return first, last
