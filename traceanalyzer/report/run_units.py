"""The units of a run, frozen into rows of a report; made only where a comparison may follow."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from traceanalyzer.analysis import stats, steadiness
from traceanalyzer.analysis.compare.statistics import median_dependence
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.units.find import units
from traceanalyzer.analysis.units.model import UnitLedger
from traceanalyzer.report.unit_model import UnitLedgerRow, UnitRow, UnitSeries, UnitWork
from traceanalyzer.trace.tables import Int64

PER_SERIES = 256
"""Most samples of one time of a unit: five times of at most 17 units stay under 22,000 numbers."""


def unit_rows(analysis: Analysis, clean: Callable[[str], str]) -> list[UnitRow]:
    """Return the units of a trace, the whole trace last; names are cleaned of folders."""
    return [
        UnitRow(
            name=clean(u.name),
            method=u.method,
            repeats=u.repeats,
            coverage=round(u.coverage, 6),
            kernels_per_repeat=u.kernels_per_repeat,
            launches_per_repeat=float(np.median(u.launches)) if len(u.launches) else 0.0,
            period=_series(u.period_ns),
            duration=_series(u.duration_ns),
            busy=_series(u.busy_ns),
            self_time=_series(u.self_ns),
            exclusive=_series(u.exclusive_ns),
            work=[UnitWork(clean(w.name), w.count, w.time_ns / 1000) for w in u.work],
            operators={clean(name): count for name, count in u.operators.items()},
            period_ledgers=[_ledger(analysis, x, clean) for x in u.period_ledgers],
            duration_ledgers=[_ledger(analysis, x, clean) for x in u.duration_ledgers],
        )
        for u in units(analysis)
    ]


def _ledger(analysis: Analysis, ledger: UnitLedger, clean: Callable[[str], str]) -> UnitLedgerRow:
    device = analysis.trace.devices[ledger.device]
    kernels: dict[str, float] = {}
    for name, ns in ledger.kernels.items():
        shown = clean(name)  # two names may differ in a folder alone
        kernels[shown] = kernels.get(shown, 0.0) + ns
    return UnitLedgerRow(
        device.number,
        device.owner,
        ledger.decides,
        {c: ns / 1000 for c, ns in ledger.classes.items()},
        {name: ns / 1000 for name, ns in kernels.items()},
    )


def typical_repeats(analysis: Analysis, clean: Callable[[str], str]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return of each unit, by name and method, the repeat of median length: start and end in ns from the trace's origin."""
    found = {}
    origin = analysis.trace.meta.origin_ns
    for unit in units(analysis):
        starts, lengths = (unit.first_ns, unit.period_ns) if len(unit.period_ns) else (unit.opened_ns, unit.duration_ns)
        if not len(lengths):
            continue
        at = int(np.argsort(lengths, kind="stable")[(len(lengths) - 1) // 2])
        begin = int(starts[at]) - origin
        found[clean(unit.name), unit.method] = (begin, begin + int(lengths[at]))
    return found


def _series(values: Int64) -> UnitSeries:
    n = min(len(values), PER_SERIES)
    at = np.linspace(0, len(values) - 1, n).round().astype(np.int64) if n else np.empty(0, dtype=np.int64)
    middle, lag = stats.median(values), steadiness.lag_one(values)
    if lag is not None and n < len(values):
        # those who read the thinned values cannot see it
        lag = max(lag, median_dependence(values))
    return UnitSeries(
        n=len(values),
        p50_us=None if middle is None else round(middle / 1000, 6),
        samples_us=[v / 1000 for v in values[at].tolist()],
        lag_one=None if lag is None else round(lag, 6),
    )
