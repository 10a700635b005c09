"""Whether two sides are one recording: then nothing was compared, whatever their numbers."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.compare.sides import Side
from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.analysis.compare.unit_side import UnitSide


def same_rows(base: Side, head: Side) -> bool:
    """Return whether both sides have the same rows: kernels, operations and units with the same times, begun at the same instants."""
    if base.starts_us != head.starts_us or not base.starts_us or bool(base.runs) != bool(head.runs):
        return False
    works = ((*s.ops, *s.kernels) for s in (base, head))
    mine, theirs = ([(w.name, w.config, w.first_us, *_content(w.times)) for w in side] for side in works)
    units, others = ([_contents(u) for u in s.units] for s in (base, head))
    return mine == theirs and units == others and bool(mine or units)


def _contents(unit: UnitSide) -> list[object]:
    series = [_content(t) for t in (unit.period, unit.duration, unit.busy, unit.self_time, unit.exclusive)]
    return [unit.name, unit.method, *series, unit.work, unit.period_ledgers, unit.duration_ledgers]


def _content(times: Times) -> tuple[object, ...]:
    return times.count, times.p50_ns, np.asarray(times.values).tolist()
