"""Which rank the others wait for: judged over the ranks of one job, from what each spent its time on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

STRAGGLER_SHARE = 0.05
"""A rank that takes 5 % longer than the median outside of its collectives decides the job's pace more than noise does."""


@dataclass(frozen=True)
class RankTimes:
    """Of one rank, in nanoseconds: compute, idle, and communication that no compute covers."""

    span_ns: int
    compute_ns: int
    idle_ns: int
    exposed_communication_ns: int

    @property
    def own_ns(self) -> int:
        """What the rank needs by itself: its span without the collectives it does nothing else in."""
        return self.span_ns - self.exposed_communication_ns


def stragglers(ranks: Sequence[RankTimes], limit: float = STRAGGLER_SHARE) -> list[str]:
    """Return for each rank why it is a straggler, empty where it is none.

    Ranks that run in step have about one span; the one the others wait for spends the least of it waiting in collectives, so
    it has the largest rest. A rank is one if that rest is more than ``limit`` over the median of all ranks. The reason names
    the part, compute or idle, that grew more against its own median. One rank alone is never one.
    """
    if len(ranks) < 2:
        return [""] * len(ranks)
    middle = median(r.own_ns for r in ranks)
    compute, idle = median(r.compute_ns for r in ranks), median(r.idle_ns for r in ranks)
    waits = median(r.exposed_communication_ns for r in ranks)
    reasons = []
    for rank in ranks:
        if not middle or rank.own_ns <= middle * (1 + limit):
            reasons.append("")
            continue
        over = rank.own_ns / middle - 1
        more_compute, more_idle = rank.compute_ns - compute, rank.idle_ns - idle
        part = "compute" if more_compute >= more_idle else "idle time"
        reason = f"{over:.0%} longer than the median rank outside of collectives, mostly {part} (+{max(more_compute, more_idle) / 1000:,.0f} us)"
        if waits and rank.exposed_communication_ns < waits:
            reason += f"; it waits in them {1 - rank.exposed_communication_ns / waits:.0%} less: the others wait for it"
        reasons.append(reason)
    return reasons
