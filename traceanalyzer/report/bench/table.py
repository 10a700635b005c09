"""From the rows of a bench to its table: which column is compared, speed-ups with intervals, losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceanalyzer._version import __version__
from traceanalyzer.analysis.compare.statistics import Times, compare_medians, verdict_of
from traceanalyzer.report.bench.model import SCHEMA, BenchRow, BenchTable, Column, Loss, Outcome, Reading, SpeedUp
from traceanalyzer.report.bench.questions import questions
from traceanalyzer.trace.sidecar import DeviceFacts

CLOCKS_DIFFER = 0.05
"""Share of the SM clock by which sessions may differ before the table says so: a kernel's time goes with its clock."""
_OUTCOMES: dict[str, Outcome] = {"FASTER": "slower", "SLOWER": "faster", "SAME": "same", "UNDECIDED": "undecided"}
"""compare_medians judges the alternative against this row; the words are this row's."""

Samples = Mapping[tuple[str, str], Sequence[float]]
"""(row label, protocol) -> readings in order, in nanoseconds."""


@dataclass(frozen=True)
class BenchSubject:
    """What is measured and where."""

    operator: str
    summary: str
    preset: str
    sizes: dict[str, str]
    implementation: str
    against: list[str]
    device: DeviceFacts


def bench_table(
    subject: BenchSubject, rows: list[BenchRow], samples: Samples, versions: dict[str, str], notes: Sequence[str] = ()
) -> BenchTable:
    """Return the table of rows that have no speed-ups yet."""
    column: Column = "device" if any(r.device.p50_us is not None for r in rows) else "end-to-end"
    compared = [_compared(row, rows, subject.against, column, samples) for row in rows]
    return BenchTable(
        schema=SCHEMA,
        version=__version__,
        operator=subject.operator,
        summary=subject.summary,
        preset=subject.preset,
        sizes=subject.sizes,
        implementation=subject.implementation,
        against=subject.against,
        device=subject.device,
        versions=versions,
        column=column,
        rows=compared,
        losses=[loss for row in compared if row.implementation == subject.implementation for loss in _losses(row)],
        wrong=[row.label for row in compared if row.result.passed is False],
        notes=[*notes, *_clocks(rows), *_memory(rows)],
        questions=questions(compared, subject.device),
    )


def _compared(row: BenchRow, rows: list[BenchRow], against: list[str], column: Column, samples: Samples) -> BenchRow:
    peers = {r.implementation: r for r in rows if r.case == row.case}
    others = [name for name in against if name != row.implementation and name in peers]
    return replace(row, speed_ups=[_speed_up(row, peers[name], column, samples) for name in others])


def _speed_up(row: BenchRow, other: BenchRow, column: Column, samples: Samples) -> SpeedUp:
    mine, theirs = _of(row, column), _of(other, column)
    counts = row.result.passed is not False and other.result.passed is not False
    reason = ""
    for side, reading in ((row, mine), (other, theirs)):
        if reading.p50_us is None:
            reason = f"{side.implementation} has no {column} time: {side.missing or reading.reason}"
            break
    if not reason and mine.protocol != theirs.protocol:
        reason = f"the device times come from {mine.protocol} and {theirs.protocol}, which are not alike"
    if reason:
        return SpeedUp(other.implementation, column, None, None, None, counts, reason)
    found = compare_medians(_times(row, mine, samples), _times(other, theirs, samples))
    outcome = _OUTCOMES[verdict_of(found)] if found.ratio is not None else None
    return SpeedUp(other.implementation, column, found.ratio, found.interval, outcome, counts, found.reason)


def _of(row: BenchRow, column: Column) -> Reading:
    return row.device if column == "device" else row.end_to_end


def _times(row: BenchRow, reading: Reading, samples: Samples) -> Times:
    values = np.rint(np.array(samples.get((row.label, reading.protocol), ()), dtype=np.float64)).astype(np.int64)
    interval = (reading.ci95_us[0] * 1000, reading.ci95_us[1] * 1000) if reading.ci95_us else None
    return Times(reading.n, (reading.p50_us or 0.0) * 1000, values, None, interval)


def _losses(row: BenchRow) -> list[Loss]:
    return [
        Loss(row.direction, row.dtype, s.against, s.ratio, s.ci95, s.outcome, row.case)
        for s in row.speed_ups
        if s.counts and s.ratio is not None and s.ratio < 1 and s.outcome in ("slower", "undecided")
    ]


def _memory(rows: list[BenchRow]) -> list[str]:
    measured = [r for r in rows if r.measured]
    if not measured or any(r.peak_memory_bytes is not None for r in measured):
        return []
    return [f"peak memory is n/a: the framework counts none on {measured[0].device_kind}"]


def _clocks(rows: list[BenchRow]) -> list[str]:
    known = sorted((r.sm_clock_mhz, r.label) for r in rows if r.sm_clock_mhz)
    if not known or known[0][0] >= (1 - CLOCKS_DIFFER) * known[-1][0]:
        return []
    (low, slow), (high, fast) = known[0], known[-1]
    return [
        f"the SM clock differed between sessions, from {low} MHz ({slow}) to {high} MHz ({fast}): times of rows with other clocks are no fair comparison"
    ]
