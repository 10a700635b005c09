"""How much of two units' work is the same: their kernels and copies by name, how often each runs, weighted by time.

Names are matched as they are, then without the numbers that compilers append and without template arguments, then with
every number masked; a step matches only what the steps before left over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from traceanalyzer.analysis.compare.matching import without_arguments, without_numbers, without_suffix
from traceanalyzer.analysis.compare.unit_side import UnitPart

_LEAST = 1e-9


@dataclass(frozen=True)
class PartPair:
    """A kernel or copy that both sides have, or that one has (None: new or gone). Counts and times (ns) are per repeat."""

    base: UnitPart | None
    head: UnitPart | None

    @property
    def saved_ns(self) -> float:
        """What the head spends less in it per repeat."""
        return (self.base.time_ns if self.base else 0.0) - (self.head.time_ns if self.head else 0.0)


@dataclass(frozen=True)
class SharedWork:
    """``share`` of each side's time that has a counterpart; ``scale``: how often the head does the base's work.

    Where one kernel runs more often on one side than on the other, the runs beyond are new or gone.
    """

    share: tuple[float, float]
    scale: float
    pairs: list[PartPair]

    @property
    def least(self) -> float:
        """The share on the side that has less in common."""
        return min(self.share)


def shared_work(base: Sequence[UnitPart], head: Sequence[UnitPart], scaled: bool = False) -> SharedWork:
    """Return what two units share. ``scaled``: the head is divided by how often it does the base's work."""
    scale = _scale(base, head) if scaled else 1.0
    left = [[_Left(p, p.count, p.time_ns) for p in base], [_Left(p, p.count / scale, p.time_ns / scale) for p in head]]
    keys: tuple[Callable[[str], str], ...] = (str, without_suffix, without_arguments, _masked)
    pairs: list[PartPair] = []
    for key in keys:
        groups: dict[str, tuple[list[_Left], list[_Left]]] = {}
        for side in (0, 1):
            for part in left[side]:
                if part.count > _LEAST:
                    groups.setdefault(key(part.part.name), ([], []))[side].append(part)
        for mine, theirs in groups.values():
            if mine and theirs:
                pairs += _matched(mine, theirs)
    totals = [sum(p.time_ns for p in base), sum(p.time_ns for p in head) / scale]
    found = (
        sum(p.base.time_ns for p in pairs if p.base is not None),
        sum(p.head.time_ns for p in pairs if p.head is not None),
    )
    pairs += [PartPair(p.rest, None) for p in left[0] if p.count > _LEAST]
    pairs += [PartPair(None, p.rest) for p in left[1] if p.count > _LEAST]
    share = [f / t if t > 0 else 0.0 for f, t in zip(found, totals, strict=True)]
    return SharedWork((share[0], share[1]), scale, _merged(pairs))


def shared_operators(base: Mapping[str, float], head: Mapping[str, float]) -> float:
    """Return the share of operator calls per repeat that have a counterpart, on the side that has fewer in common; 0 of none."""
    if not base or not head:
        return 0.0
    both = sum(min(n, head.get(name, 0.0)) for name, n in base.items())
    return both / max(sum(base.values()), sum(head.values()))


class _Left:
    """A part whose runs are used up as they are matched."""

    def __init__(self, part: UnitPart, count: float, time_ns: float) -> None:
        self.part, self.count, self.time_ns = part, count, time_ns

    def take(self, count: float) -> UnitPart:
        time = self.time_ns * count / self.count
        self.count -= count
        self.time_ns -= time
        return UnitPart(self.part.name, count, time)

    @property
    def rest(self) -> UnitPart:
        return UnitPart(self.part.name, self.count, self.time_ns)


def _matched(base: list[_Left], head: list[_Left]) -> list[PartPair]:
    """Match the runs of a group, the longest parts first."""
    found = []
    mine = sorted(base, key=lambda p: -p.time_ns)
    theirs = sorted(head, key=lambda p: -p.time_ns)
    i = j = 0
    while i < len(mine) and j < len(theirs):
        count = min(mine[i].count, theirs[j].count)
        found.append(PartPair(mine[i].take(count), theirs[j].take(count)))
        i += mine[i].count <= _LEAST
        j += theirs[j].count <= _LEAST
    return found


def _merged(pairs: list[PartPair]) -> list[PartPair]:
    """Return the pairs with those of the same two names added up, by the time saved, largest change first."""
    sums: dict[tuple[str | None, str | None], list[PartPair]] = {}
    for p in pairs:
        sums.setdefault((p.base.name if p.base else None, p.head.name if p.head else None), []).append(p)
    merged = [PartPair(_sum([p.base for p in g]), _sum([p.head for p in g])) for g in sums.values()]
    return sorted(merged, key=lambda p: -abs(p.saved_ns))


def _sum(parts: Sequence[UnitPart | None]) -> UnitPart | None:
    known = [p for p in parts if p is not None]
    if not known:
        return None
    return UnitPart(known[0].name, sum(p.count for p in known), sum(p.time_ns for p in known))


def _masked(name: str) -> str:
    return without_numbers(without_arguments(name))


def _scale(base: Sequence[UnitPart], head: Sequence[UnitPart]) -> float:
    """Return the median, by time, of how often the head runs what the base runs once; 1 where that is within a tenth."""
    theirs: dict[str, float] = {}
    for p in head:
        theirs[without_arguments(p.name)] = theirs.get(without_arguments(p.name), 0.0) + p.count
    mine: dict[str, tuple[float, float]] = {}
    for p in base:
        count, time = mine.get(without_arguments(p.name), (0.0, 0.0))
        mine[without_arguments(p.name)] = (count + p.count, time + p.time_ns)
    ratios = sorted((theirs[n] / count, time) for n, (count, time) in mine.items() if n in theirs and count > 0)
    total, reached = sum(t for _, t in ratios), 0.0
    for ratio, time in ratios:
        reached += time
        if 2 * reached >= total:
            return 1.0 if abs(ratio - 1) <= 0.1 else ratio
    return 1.0
