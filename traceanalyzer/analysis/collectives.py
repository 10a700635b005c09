"""Who waits in communication for whom: collectives matched over the traces of a job's ranks.

A collective cannot end before its last rank has joined. The part of each rank's kernel before the last rank's kernel
starts is waiting for that rank; the rest is transfer. Traces are read one at a time: only :class:`RankCollectives` is kept
of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from traceanalyzer.analysis.breakdown import communication_rows
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.tables import Int64, Trace

MOST_KEPT = 500_000
"""Collectives kept of one rank; a job with more is judged by its first ones."""
END_SPREAD_NS = 50_000
END_SPREAD_SHARE = 0.2
"""Clocks are aligned by the ends of collectives. They are believed where nine of ten ends then agree within both: the larger
of 50 us and a fifth of the median collective. A ring's last step may end on one rank a few microseconds before another."""
FEWEST = 5
_POINT_TO_POINT = ("sendrecv", "send_recv", "_send", "_recv")


class NoWaits(StrEnum):
    """Why it cannot be said who waits for whom."""

    ONE_RANK = "one_rank"
    UNKNOWN_RANKS = "unknown_ranks"
    SEVERAL_FILES = "several_files"
    SEVERAL_DEVICES = "several_devices"
    NO_COLLECTIVES = "no_collectives"
    FEW_COLLECTIVES = "few_collectives"
    DIFFERENT_SEQUENCES = "different_sequences"
    CLOCKS = "clocks"


@dataclass(frozen=True)
class RankCollectives:
    """The collectives of one rank's device in order of start; times are absolute nanoseconds of that host's clock.

    ``name`` numbers ``names``, which are those of the kernels; kernels that send from one rank to one other are left out.
    ``file`` is where they come from, empty where that is of no account.
    """

    rank: int
    names: tuple[str, ...]
    name: npt.NDArray[np.int32]
    start_ns: Int64
    end_ns: Int64
    file: str = ""


@dataclass(frozen=True)
class NameWaits:
    """The collectives of one name that one rank joined last: how many, and what all other ranks together waited for it in them.

    ``rank`` is its place in the order given.
    """

    name: str
    rank: int
    last: int
    caused_ns: int


@dataclass(frozen=True)
class CommunicationWaits:
    """Of each rank, in the order given: nanoseconds in matched collectives that it waited, and that the transfer took.

    ``caused_ns[r]`` is what all other ranks waited for rank r; ``waits_ns[r, q]`` what r waited for q. ``last[r]`` counts the
    collectives that r joined last. ``spread_ns`` is how far the aligned ends of nine of ten collectives lie apart.
    ``by_name`` splits the waiting by collective and by the rank that was waited for, the largest first.
    """

    ranks: list[int]
    collectives: int
    wait_ns: Int64
    transfer_ns: Int64
    caused_ns: Int64
    last: Int64
    waits_ns: npt.NDArray[np.int64]
    spread_ns: int
    by_name: list[NameWaits] = field(default_factory=list)


@dataclass(frozen=True)
class Unjudged:
    """Why there are no waits; ``ranks`` are those the reason speaks of, ``ns`` a time it names."""

    reason: NoWaits
    ranks: list[int] = field(default_factory=list)
    ns: int = 0


def collectives_of(trace: Trace, rank: int) -> list[RankCollectives]:
    """Return the collectives of each device of a rank's trace that has any."""
    rows = trace.activities
    talks = np.flatnonzero(communication_rows(trace))
    if not len(talks):
        return []
    two_sided = np.array([_is_point_to_point(n) for n in trace.names], dtype=bool)
    talks = talks[~two_sided[rows.name[talks]]]
    device = np.array([lane.device for lane in trace.lanes], dtype=np.int64)[rows.lane[talks]]
    found = []
    for number in distinct(device).tolist():
        mine = talks[device == number]
        mine = mine[np.argsort(rows.start_ns[mine], kind="stable")][:MOST_KEPT]
        kinds, name = np.unique(rows.name[mine], return_inverse=True)
        names = tuple(trace.names[k] for k in kinds.tolist())
        base = trace.meta.base_ns
        found.append(
            RankCollectives(
                rank, names, name.reshape(-1).astype(np.int32), rows.start_ns[mine] + base, rows.end_ns[mine] + base
            )
        )
    return found


def _is_point_to_point(name: str) -> bool:
    return any(part in name.lower() for part in _POINT_TO_POINT)


def communication_waits(ranks: Sequence[RankCollectives]) -> CommunicationWaits | Unjudged:
    """Return who waited for whom in the collectives that all ranks have in common.

    The n-th collective of one rank is the n-th of every other where all ranks ran the same kernels in the same order; the
    kernels of one rank may be on several streams. Where the sequences differ (pipeline stages, several process groups), the
    kernels cannot be matched by the trace alone. Host clocks differ by an offset: it is taken from the ends of the
    collectives, which come nearly together, and judged by how well they then agree.
    """
    if len(ranks) < 2:
        return Unjudged(NoWaits.ONE_RANK)
    without = [r.rank for r in ranks if not len(r.start_ns)]
    if without:
        return Unjudged(NoWaits.NO_COLLECTIVES, without)
    first = _sequence(ranks[0])
    other = [r.rank for r in ranks[1:] if len(r.name) != len(first) or _sequence(r) != first]
    if other:
        return Unjudged(NoWaits.DIFFERENT_SEQUENCES, other)
    if len(first) < FEWEST:
        return Unjudged(NoWaits.FEW_COLLECTIVES)
    start = np.stack([r.start_ns for r in ranks])
    end = np.stack([r.end_ns for r in ranks])
    offset = np.median(end - end[0], axis=1).astype(np.int64)
    start, end = start - offset[:, None], end - offset[:, None]
    spread = int(np.quantile(end.max(axis=0) - end.min(axis=0), 0.9))
    shortest = (end - start).min(axis=0)
    if spread > max(END_SPREAD_NS, END_SPREAD_SHARE * int(np.median(shortest))):
        return Unjudged(NoWaits.CLOCKS, ns=spread)
    last = start.argmax(axis=0)
    wait = np.clip(start.max(axis=0) - start, 0, end - start)
    waits = np.zeros((len(ranks), len(ranks)), dtype=np.int64)
    for q in range(len(ranks)):
        waits[:, q] = wait[:, last == q].sum(axis=1)
    return CommunicationWaits(
        ranks=[r.rank for r in ranks],
        collectives=len(first),
        wait_ns=wait.sum(axis=1),
        transfer_ns=(end - start - wait).sum(axis=1),
        caused_ns=waits.sum(axis=0),
        last=np.bincount(last, minlength=len(ranks)).astype(np.int64),
        waits_ns=waits,
        spread_ns=spread,
        by_name=_by_name(ranks[0], last, wait.sum(axis=0), len(ranks)),
    )


def _by_name(first: RankCollectives, last: Int64, waited: Int64, ranks: int) -> list[NameWaits]:
    key = first.name.astype(np.int64) * ranks + last
    count = np.bincount(key, minlength=len(first.names) * ranks)
    caused = np.zeros(len(count), dtype=np.int64)
    np.add.at(caused, key, waited)
    found = [
        NameWaits(first.names[k // ranks], k % ranks, int(count[k]), int(caused[k]))
        for k in np.flatnonzero(count).tolist()
    ]
    return sorted(found, key=lambda w: (-w.caused_ns, w.name, w.rank))


def _sequence(rank: RankCollectives) -> list[str]:
    return [rank.names[n] for n in rank.name.tolist()]
