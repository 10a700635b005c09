"""The four ratios of a pair of units: period, device busy time, own kernel time, launches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from traceanalyzer.analysis.compare.comparability import SAME_WORK
from traceanalyzer.analysis.compare.few import FEW, LONG_STEPS, PRIOR_SCATTER, compare_few
from traceanalyzer.analysis.compare.ledger_terms import LedgerChange, ledger_change
from traceanalyzer.analysis.compare.matching import FEW_KERNELS
from traceanalyzer.analysis.compare.pairing import UnitPair
from traceanalyzer.analysis.compare.populations import WIDEST, Populations, populations
from traceanalyzer.analysis.compare.statistics import Ratio, Times, compare_medians, verdict_of
from traceanalyzer.analysis.compare.unit_side import UnitSide
from traceanalyzer.analysis.units.model import CAPTURED, WHOLE

METRICS = ("period", "busy", "self")
LEAST_PERIODS = 2
_SAME_LAUNCHES = 0.05
OVERLAP = 0.01
"""Exclusive time under self-time by more than this: rows of one stream overlap, and self-time holds waiting."""


@dataclass(frozen=True)
class MeasuredRatio:
    """One time of both units. ``basis`` says what a period is: ``start-to-start``, ``window`` or ``span``.

    ``few``: ``ratio.interval`` is the range of all values. ``two`` are populations that a side falls into where the interval
    would have been wider than anybody can use; it is then None.
    """

    name: str
    base: Times
    head: Times
    ratio: Ratio
    verdict: str
    few: bool
    basis: str = ""
    two: tuple[Populations | None, Populations | None] = (None, None)


@dataclass(frozen=True)
class UnitResult:
    """A pair of units, compared. ``metric`` is what the headline speaks of; ``step``: a step of a run, no kernel under test."""

    pair: UnitPair
    measured: dict[str, MeasuredRatio]
    launches: tuple[float, float]
    metric: str
    step: bool
    overlapping: bool
    mean_ratio: float | None
    ledger: LedgerChange = field(default_factory=lambda: LedgerChange([]))

    @property
    def headline(self) -> MeasuredRatio | None:
        """What the headline speaks of, None where neither side has it."""
        return self.measured.get(self.metric)


def unit_result(
    pair: UnitPair, same_within: float, metric: str | None = None, stream: int = 0, same_machine: bool = True
) -> UnitResult:
    """Return the ratios of a pair; ``metric`` overrides what the headline speaks of.

    ``same_machine``: no other kind of device is a reason for a difference.
    """
    base, head = pair.base, pair.head
    scale = pair.work.scale
    kind, first, second = _periods(base, head)
    series = {
        "period": (first, second, kind),
        "busy": (base.busy, head.busy, ""),
        "self": (base.exclusive, head.exclusive, ""),
    }
    found = {}
    alike = same_machine and _same_launches(pair)
    single = LONG_STEPS if alike and WHOLE not in (base.method, head.method) else PRIOR_SCATTER
    for n, (name, (x, y, basis)) in enumerate(series.items()):
        if x.count and y.count:
            found[name] = _measured(
                name, x, _scaled(y, scale), same_within, stream * len(series) + n, basis, alike, single
            )
    if "other-work" in pair.caveats:
        found = {name: replace(m, verdict="UNDECIDED") for name, m in found.items()}
    step = not (base.method == head.method == CAPTURED) and max(base.kernels, head.kernels) > FEW_KERNELS
    if WHOLE in (base.method, head.method):
        step = True
    overlapping = any(u.exclusive.p50_ns < (1 - OVERLAP) * u.self_time.p50_ns for u in (base, head))
    chosen = metric or ("period" if step else "busy")
    if chosen not in found and metric is None:
        chosen = next((m for m in ("period", "busy", "self") if m in found), chosen)
    mean = _mean_ratio(found.get("period"))
    launches = (base.launches, head.launches / scale)
    ledger = ledger_change(base, head, kind == "start-to-start", pair.work.pairs, scale)
    return UnitResult(pair, found, launches, chosen, step, overlapping, mean, ledger)


def _periods(base: UnitSide, head: UnitSide) -> tuple[str, Times, Times]:
    """Return a period that both sides have: from start to start on the device, else the windows of the host, else the span."""
    if min(base.period.count, head.period.count) >= LEAST_PERIODS:
        return "start-to-start", base.period, head.period
    return "span" if WHOLE in (base.method, head.method) else "window", base.duration, head.duration


def _scaled(times: Times, scale: float) -> Times:
    if scale == 1.0:
        return times
    return replace(times, p50_ns=times.p50_ns / scale, values=np.asarray(times.values, dtype=np.float64) / scale)


def _same_launches(pair: UnitPair) -> bool:
    """Return whether both sides launch the same work in as many calls, so that only chance or the machine tells them apart."""
    launches = (pair.base.launches, pair.head.launches / pair.work.scale)
    return pair.work.least >= SAME_WORK and min(launches) >= (1 - _SAME_LAUNCHES) * max(launches)


def _measured(
    name: str, base: Times, head: Times, within: float, stream: int, basis: str, alike: bool, single: float
) -> MeasuredRatio:
    if min(base.count, head.count) < FEW and max(len(base.values), len(head.values)):
        # the device's own time and a whole trace hold no single long step
        ratio, verdict = compare_few(base, head, within, alike, single if name == "period" else PRIOR_SCATTER)
        return MeasuredRatio(name, base, head, ratio, verdict, True, basis)
    ratio = compare_medians(base, head, within, 100 + stream)
    verdict = verdict_of(ratio, within)
    two: tuple[Populations | None, Populations | None] = (None, None)
    if ratio.interval is not None and ratio.interval[1] > WIDEST * max(ratio.interval[0], 1e-12):
        two = populations(base), populations(head)
        ratio = replace(ratio, interval=None, reason=_wide(two))
    return MeasuredRatio(name, base, head, ratio, verdict, False, basis, two)


def _wide(two: Sequence[Populations | None]) -> str:
    sides = [side for side, p in zip(("base", "head"), two, strict=True) if p is not None]
    return f"the times of {' and '.join(sides)} are two populations" if sides else "the times scatter too widely"


def _mean_ratio(period: MeasuredRatio | None) -> float | None:
    """Return the ratio of mean periods: what the run as a whole takes, long steps included."""
    if period is None or not len(period.base.values) or not len(period.head.values):
        return None
    x, y = float(np.mean(period.base.values)), float(np.mean(period.head.values))
    return y / x if x > 0 and math.isfinite(y) else None
