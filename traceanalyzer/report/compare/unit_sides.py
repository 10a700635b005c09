"""The units of a report as sides of a comparison."""

from __future__ import annotations

from math import isfinite

from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.analysis.compare.unit_side import SideLedger, UnitPart, UnitSide
from traceanalyzer.report.compare.times import nanoseconds, number, times
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.unit_model import UnitLedgerRow, UnitRow, UnitSeries

_MOST = 1e12


def unit_sides(report: ReportData, step_ns: int) -> list[UnitSide]:
    """Return the units of a report, none of one that was saved without them; numbers that cannot be are left out."""
    return [_unit(row, step_ns) for row in report.units if row.repeats > 0]


def _unit(row: UnitRow, step_ns: int) -> UnitSide:
    repeats = row.repeats
    work = [
        UnitPart(w.name, w.count / repeats, w.time_us * 1000 / repeats)
        for w in row.work
        if w.count > 0 and (number(w.time_us) or 0.0) >= 0 and isfinite(w.time_us)
    ]
    return UnitSide(
        name=row.name,
        method=row.method,
        repeats=repeats,
        coverage=_known(row.coverage),
        kernels=_known(row.kernels_per_repeat),
        launches=_known(row.launches_per_repeat),
        period=_times(row.period, 1),
        duration=_times(row.duration, 1),
        busy=_times(row.busy, step_ns),
        self_time=_times(row.self_time, step_ns),
        exclusive=_times(row.exclusive, step_ns),
        work=work,
        operators={name: n / repeats for name, n in row.operators.items() if 0 < n <= _MOST},
        period_ledgers=[_ledger(x) for x in row.period_ledgers],
        duration_ledgers=[_ledger(x) for x in row.duration_ledgers],
    )


def _ledger(row: UnitLedgerRow) -> SideLedger:
    classes, kernels = (
        {name: us * 1000 for name, us in found.items() if 0 <= us <= _MOST}
        for found in (row.classes_us, row.kernels_us)
    )
    return SideLedger(f"{row.device}" + (f" of {row.owner}" if row.owner else ""), row.decides, classes, kernels)


def _times(series: UnitSeries, step_ns: int) -> Times:
    n = max(0, min(series.n, int(_MOST)))
    found = times(n, series.p50_us, series.samples_us, series.lag_one, None, step_ns)
    return found if len(nanoseconds(series.samples_us)) else Times(0, 0.0)


def _known(value: float) -> float:
    return value if isfinite(value) and 0 <= value <= _MOST else 0.0
