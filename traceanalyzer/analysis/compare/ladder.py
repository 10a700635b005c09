"""Who would win under each protocol: the ladder of two operations on one machine, and where the order flips."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from traceanalyzer.analysis import stats
from traceanalyzer.analysis.compare.sides import ComparedWork
from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.analysis.protocols import PROTOCOLS, Symbols, ladder
from traceanalyzer.analysis.symbols import TYPICAL

SELF_TIME = "profiler_self_time"
_MACHINE = ("latency", "record", "sync", "gap", "clear", "clear_dispatch")


@dataclass(frozen=True)
class Ladders:
    """Both ladders in microseconds, and who wins each protocol: ``base``, ``head`` or ``tie`` (within the noise).

    ``one_machine``: latency, record, sync, gap and clear are the same on both sides, so that only dispatch and kernels
    tell them apart. ``measured``: protocols whose readings a capture measured on both sides. ``flips`` are protocols that rank against the self-time.
    """

    base_us: dict[str, float | None]
    head_us: dict[str, float | None]
    winners: dict[str, str]
    measured: frozenset[str]
    one_machine: bool
    base_symbols: Symbols | None
    head_symbols: Symbols | None
    flips: tuple[str, ...]


def ladders(base: ComparedWork, head: ComparedWork, self_winner: str, one_machine: bool, least: float) -> Ladders:
    """Return both ladders. ``self_winner`` is decided by the interval; other protocols need ``least`` relative difference
    beyond the uncertainty of their dispatch and kernels."""
    b, h = base.symbols, head.symbols
    if b is not None and h is not None and one_machine:
        machine = _shared(base, head)
        b, h = _on(machine, b), _on(machine, h)
    base_us, head_us = _readings(b), _readings(h)
    noise = dict.fromkeys(PROTOCOLS, _noise(base) + _noise(head))
    measured = set()
    for protocol in PROTOCOLS:
        x, y = base.measured.get(protocol), head.measured.get(protocol)
        if x is not None and y is not None:
            base_us[protocol], head_us[protocol] = x.p50_ns / 1000, y.p50_ns / 1000
            measured.add(protocol)
            noise[protocol] = _half_width_us(x) + _half_width_us(y)  # what was measured has scatter of its own
    base_us[SELF_TIME], head_us[SELF_TIME] = _own(base), _own(head)
    winners = {
        p: _winner(base_us[p], head_us[p], least, noise[p])
        for p in PROTOCOLS
        if base_us[p] is not None and head_us[p] is not None
    }
    if base_us[SELF_TIME] is not None and head_us[SELF_TIME] is not None:
        winners[SELF_TIME] = self_winner
    against = {"base": "head", "head": "base"}.get(self_winner)
    flips = tuple(p for p, w in winners.items() if p != SELF_TIME and w == against)
    return Ladders(base_us, head_us, winners, frozenset(measured), one_machine, b, h, flips)


def _own(work: ComparedWork) -> float | None:
    return work.times.p50_ns / 1000 if work.measure == "self-time" else None


def _readings(symbols: Symbols | None) -> dict[str, float | None]:
    if symbols is None:
        return dict.fromkeys(PROTOCOLS)
    return {p: v / 1000 for p, v in ladder(symbols).items()}


def _on(machine: dict[str, float], s: Symbols) -> Symbols:
    return replace(
        s, latency=machine["latency"], record=machine["record"], sync=machine["sync"], gap=machine["gap"], clear=machine["clear"],
        clear_dispatch=machine["clear_dispatch"],
    )  # fmt: skip


def _shared(base: ComparedWork, head: ComparedWork) -> dict[str, float]:
    """Return the machine's symbols for both: the mean where both saw one, the one that was seen, else the typical value."""
    found = {}
    for name in _MACHINE:
        seen = [float(getattr(w.symbols, name)) for w in (base, head) if w.symbols is not None and name in w.seen]
        found[name] = sum(seen) / len(seen) if seen else TYPICAL[name]
    return found


def _noise(work: ComparedWork) -> float:
    """Return the half-width in us of what a reading is made of: the intervals of dispatch and self-time."""
    total = 0.0
    for values in (np.asarray(work.dispatch_samples_us), np.asarray(work.times.values) / 1000):
        interval = stats.median_interval(values.astype(np.float64)) if len(values) else None
        total += (interval[1] - interval[0]) / 2 if interval is not None else 0.0
    return total


def _half_width_us(times: Times) -> float:
    """Return the half-width of the interval of a measured reading, 0 where none is known."""
    interval = times.interval_ns or (stats.median_interval(times.values) if len(times.values) else None)
    return (interval[1] - interval[0]) / 2000 if interval is not None else 0.0


def _winner(base: float | None, head: float | None, least: float, noise_us: float) -> str:
    if base is None or head is None:
        return "tie"
    if abs(head - base) <= max(least * min(base, head), noise_us):
        return "tie"
    return "head" if head < base else "base"
