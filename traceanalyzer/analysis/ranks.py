"""Which rank the others wait for: judged over the ranks of one job, from what each spent its time on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from traceanalyzer import number_text

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


@dataclass(frozen=True)
class Late:
    """A rank that is late: how far its time outside of collectives is over the median, and how much more of which part it has."""

    over: float
    part: str
    more_ns: int
    waits_less: float
    """Part of the median wait in collectives that it does not wait; 0 where it waits as long."""


def late_ranks(ranks: Sequence[RankTimes], limit: float = STRAGGLER_SHARE) -> list[Late | None]:
    """Return for each rank how it is late, None where it is not.

    Ranks that run in step have about one span; the one the others wait for spends the least of it waiting in collectives, so
    it has the largest rest. A rank is late if that rest is more than ``limit`` over the median of all ranks. The part,
    ``compute`` or ``idle``, is the one that grew more against its own median. One rank alone is never late.
    """
    if len(ranks) < 2:
        return [None] * len(ranks)
    middle = median(r.own_ns for r in ranks)
    compute, idle = median(r.compute_ns for r in ranks), median(r.idle_ns for r in ranks)
    waits = median(r.exposed_communication_ns for r in ranks)
    found: list[Late | None] = []
    for rank in ranks:
        if not middle or rank.own_ns <= middle * (1 + limit):
            found.append(None)
            continue
        more_compute, more_idle = rank.compute_ns - compute, rank.idle_ns - idle
        less = 1 - rank.exposed_communication_ns / waits if waits else 0.0
        found.append(
            Late(
                rank.own_ns / middle - 1, "compute" if more_compute >= more_idle else "idle", int(max(more_compute, more_idle)), max(0.0, less)
            )
        )  # fmt: skip
    return found


def stragglers(ranks: Sequence[RankTimes], limit: float = STRAGGLER_SHARE) -> list[str]:
    """Return for each rank the sentence on how it is late, empty where it is not."""
    return ["" if late is None else _sentence(late) for late in late_ranks(ranks, limit)]


def _sentence(late: Late) -> str:
    part = "compute" if late.part == "compute" else "idle time"
    text = f"{number_text.percent(late.over)} longer than the median rank outside of collectives, mostly {part} (+{number_text.duration(late.more_ns)})"
    return text + (
        f"; it waits in them {number_text.percent(late.waits_less)} less: the others wait for it"
        if late.waits_less
        else ""
    )
