"""Questions that the numbers of a bench raise by themselves: do they halve where the bytes halve, are they above the peak?

A memory-bound kernel takes half the time for half the bytes. Where it does not, something else bounds it, or the benchmark
is to be questioned. Both are worth a line; neither is a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceanalyzer.report.bench.model import BenchRow, Question
from traceanalyzer.trace.sidecar import DeviceFacts

LEAST_BYTES_RATIO = 0.67
"""Rows are compared where one moves at most this share of the other's bytes: a dtype of half the size."""
TOLERANCE = 0.25
"""Share by which the ratio of times may differ from that of bytes before it is asked about, with the whole interval beyond."""
ABOVE_PEAK = 1.02
"""Rates up to this times the peak are rounding."""


def questions(rows: Sequence[BenchRow], device: DeviceFacts) -> list[Question]:
    """Return the questions in the order of the rows; rows with a wrong result or without device time raise none."""
    usable = [r for r in rows if r.bytes_moved and r.device.p50_us and r.result.passed is not False]
    found = []
    for row in usable:
        wider = _wider(row, usable)
        if wider is not None:
            found += _on_bytes(row, wider)
        share = row.share_of_peak_bandwidth
        if share is not None and share > ABOVE_PEAK:
            cached = device.l2_bytes is not None and (row.bytes_moved or 0) <= device.l2_bytes
            found.append(Question("from_cache" if cached else "above_peak", row.label, "", 1.0, round(share, 4)))
    return found


def _wider(row: BenchRow, rows: Sequence[BenchRow]) -> BenchRow | None:
    """Return the row that differs in nothing but its dtype and moves the most bytes, if those are enough more."""
    alike = [r for r in rows if r is not row and _but_for_dtype(r) == _but_for_dtype(row)]
    widest = max(alike, key=lambda r: r.bytes_moved or 0, default=None)
    if widest is None or (row.bytes_moved or 0) > LEAST_BYTES_RATIO * (widest.bytes_moved or 0):
        return None
    return widest


def _but_for_dtype(row: BenchRow) -> tuple[object, ...]:
    return (row.implementation, row.direction, tuple((k, v) for k, v in row.axes if k != "dtype"))


def _on_bytes(row: BenchRow, wider: BenchRow) -> list[Question]:
    mine, theirs = row.device, wider.device
    if not mine.p50_us or not theirs.p50_us or mine.protocol != theirs.protocol:
        return []
    expected = (row.bytes_moved or 0) / (wider.bytes_moved or 1)
    found = mine.p50_us / theirs.p50_us
    low, high = mine.ci95_us or (mine.p50_us, mine.p50_us)
    under, over = theirs.ci95_us or (theirs.p50_us, theirs.p50_us)
    if over and low / over > expected * (1 + TOLERANCE):
        return [Question("bytes_not_time", row.label, wider.label, round(expected, 4), round(found, 4))]
    if under and high / under < expected * (1 - TOLERANCE):
        return [Question("more_than_bytes", row.label, wider.label, round(expected, 4), round(found, 4))]
    return []
