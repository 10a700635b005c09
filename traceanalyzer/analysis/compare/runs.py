"""Several runs as one side: the runs are the unit of chance, so that what differs from run to run is in the interval.

Each run gives one value per metric, the median over its repeats. Values of repeats are not pooled: a hundred steps of one
run say nothing about the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceanalyzer.analysis.compare.shared_work import shared_work
from traceanalyzer.analysis.compare.sides import Side, SideCondition
from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.analysis.compare.unit_side import SideLedger, UnitSide

LEAST_RUNS = 2
SAME_UNIT = 0.9
"""A unit of another run is the same where this share of both units' kernel and copy time has a counterpart by name."""
_SERIES = ("period", "duration", "busy", "self_time", "exclusive")


@dataclass(frozen=True)
class Run:
    """One run of a side. ``reason``: why it is left out, empty where it is used; medians (ns) of the compared unit by metric."""

    file: str
    reason: str = ""
    period_ns: float | None = None
    duration_ns: float | None = None
    busy_ns: float | None = None
    self_ns: float | None = None


def run_of(side: Side) -> Side:
    """Return a run with one value per series in place of its repeats: what a comparison of runs keeps of it."""
    return replace(side, ops=[], kernels=[], units=[_medians(u) for u in side.units])


def side_of_runs(name: str, first: Side, runs: Sequence[Side]) -> Side:
    """Return the first run with the medians of all ``runs`` (itself among them) as the values of its units.

    A unit that fewer than two runs have is dropped.
    """
    units = []
    for unit in first.units:
        found = [u for r in runs if not _differs(first, r) if (u := _same(unit, r)) is not None]
        if len(found) >= LEAST_RUNS:
            units.append(_pooled(unit, found))
    used = [r for r in runs if not _differs(first, r)]
    clocks = [r.clock_mhz for r in used if r.clock_mhz]
    return replace(
        first,
        name=name,
        units=units,
        runs=len(runs),
        starts_us=[t for r in runs for t in r.starts_us],
        conditions=_shared_conditions(first, used),
        clock_mhz=float(np.median(clocks)) if clocks else None,
        throttled=", ".join(sorted({r.throttled for r in used if r.throttled})),
    )


def _shared_conditions(first: Side, runs: Sequence[Side]) -> list[SideCondition]:
    """Return the conditions of the first run; one that differs from run to run has every value."""
    found = []
    for c in first.conditions:
        values = dict.fromkeys(o.value for r in runs for o in r.conditions if o.what == c.what and o.value)
        found.append(replace(c, value=" or ".join(values)))
    return found


def runs_of_unit(name: str, method: str, first: Side, runs: Sequence[Side]) -> list[Run]:
    """Return what each run gives for the unit of the first run with this name and method, or why it gives nothing."""
    unit = next((u for u in first.units if (u.name, u.method) == (name, method)), None)
    return [_run(unit, first, r) for r in runs]


def _run(unit: UnitSide | None, first: Side, run: Side) -> Run:
    if why := _differs(first, run):
        return Run(run.name, why)
    found = _same(unit, run) if unit is not None else None
    if found is None:
        return Run(run.name, "it does not repeat the unit of the first run")
    values = [t.p50_ns if t.count else None for t in (found.period, found.duration, found.busy, found.exclusive)]
    return Run(run.name, "", *values)


def _differs(first: Side, run: Side) -> str:
    """Return why a run does not go with the first: nothing to judge, or a condition that refuses a ratio."""
    if run.broken:
        return run.broken
    mine = {c.what: c.value for c in first.conditions if c.refuses and c.value}
    theirs = [c for c in run.conditions if c.refuses and c.value and mine.get(c.what, c.value) != c.value]
    return f"its {theirs[0].what} is not that of the first run" if theirs else ""


def _same(unit: UnitSide, run: Side) -> UnitSide | None:
    alike = [
        (u.name == unit.name, shared_work(unit.work, u.work).least, u) for u in run.units if u.method == unit.method
    ]
    alike = [a for a in alike if a[1] >= SAME_UNIT]
    return max(alike, key=lambda a: a[:2])[2] if alike else None


def _medians(unit: UnitSide) -> UnitSide:
    return _with_series(unit, {name: _times([t] if (t := getattr(unit, name)).count else []) for name in _SERIES})


def _pooled(unit: UnitSide, runs: Sequence[UnitSide]) -> UnitSide:
    """Return the unit with one value per run; work is that of the run of median length (of an even number the shorter of the two in the middle).

    The ledgers are the means of the one or two runs in the middle, so that they add up to the median of the runs.
    """
    series = {}
    for name in _SERIES:
        found = [t for u in runs if (t := getattr(u, name)).count]
        series[name] = _times(found if len(found) == len(runs) else [])
    by_period, by_duration = (middle_runs([getattr(u, key).p50_ns for u in runs]) for key in ("period", "duration"))
    pooled = replace(
        unit,
        work=runs[(by_period if series["period"].count else by_duration)[0]].work,
        period_ledgers=_mean_ledgers([runs[at].period_ledgers for at in by_period]),
        duration_ledgers=_mean_ledgers([runs[at].duration_ledgers for at in by_duration]),
        of_runs=True,
    )
    return _with_series(pooled, series)


def middle_runs(values: Sequence[float]) -> list[int]:
    """Return the places of the one or two values in the middle, the smaller first: their mean is the median."""
    order = sorted(range(len(values)), key=lambda at: values[at])
    return order[(len(order) - 1) // 2 : len(order) // 2 + 1]


def _mean_ledgers(found: Sequence[Sequence[SideLedger]]) -> list[SideLedger]:
    """Return the mean by device; none where the runs do not have the same devices."""
    if any([x.device for x in ledgers] != [x.device for x in found[0]] for ledgers in found):
        return []
    return [
        replace(same[0], classes=_mean([x.classes for x in same]), kernels=_mean([x.kernels for x in same]))
        for same in zip(*found, strict=True)
    ]


def _mean(found: Sequence[dict[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for part in found for name in part)
    return {name: sum(part.get(name, 0.0) for part in found) / len(found) for name in names}


def _with_series(unit: UnitSide, s: dict[str, Times]) -> UnitSide:
    return replace(
        unit,
        period=s["period"],
        duration=s["duration"],
        busy=s["busy"],
        self_time=s["self_time"],
        exclusive=s["exclusive"],
    )


def _times(found: Sequence[Times]) -> Times:
    values = np.asarray([t.p50_ns for t in found], dtype=np.float64)
    return Times(len(values), float(np.median(values)) if len(values) else 0.0, values)
