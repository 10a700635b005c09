"""What repeats in a sequence of launches, at the size of one kernel or of a whole model; O(n log n).

A period is proposed cheaply: a launch, or a run of launches, that is rare in the sequence comes back once in each
repeat, so the distance between its occurrences is the period. Each proposal is then checked exactly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from traceanalyzer.record import record
from traceanalyzer.trace.tables import Int64

LEAST_REPEATS = 3
_TRIED = 48
"""Periods up to this are all tried: short patterns have no rare launches."""
_SHORT = 8
"""Two equal neighbours of fewer launches than this may be chance: such a pattern must repeat nearly throughout."""
_THROUGHOUT = 0.9
_HALF = 0.5
_GRAMS = (1, 8, 64, 512)
_MOST_PROPOSALS = 96
_SAMPLES = 512
_FROM_EACH_COUNT = 12
_MOST_PATTERNS = 256
_NEAR_BEST = 0.02
"""A shorter period is taken though a longer one covers this share of launches more: a stray launch makes no call."""
_OWN_LAUNCHES = 0.1
"""A step holds layers where its other launches are at least this share of a layer's; fewer are a log line now and then."""
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_Hashes = npt.NDArray[np.uint64]


@record(frozen=True)
class Pattern:
    """One repeating pattern: ``tokens`` of one repeat and ``starts`` of its whole repeats in the sequence, in order."""

    tokens: Int64
    starts: Int64

    @property
    def period(self) -> int:
        """Launches in one repeat."""
        return len(self.tokens)


def find_patterns(tokens: Int64) -> list[Pattern]:
    """Return the patterns of a sequence that repeat at least three times, the longest stretch of repeats first.

    Launches before, between and after the repeats belong to no pattern. Nothing is returned where no period covers
    enough of the sequence: half of the launches, and nearly all where the pattern is short.
    """
    period = _best_period(tokens) if len(tokens) >= LEAST_REPEATS else None
    if period is None:
        return []
    kept: list[Int64] = []
    seen: set[bytes] = set()
    for low in _stretches(tokens, period):
        repeat = tokens[low : low + period]
        if repeat.tobytes() in seen:
            continue
        seen.add(repeat.tobytes())
        own = repeat[: _smallest_period(repeat)]
        key = np.roll(own, -_least_rotation(own.tolist())).tobytes()
        if key + b"least" not in seen:
            seen.add(key + b"least")
            kept.append(own)
        if len(kept) >= _MOST_PATTERNS:
            break
    places = _places(tokens)
    found = [Pattern(p, places(int(p[0])) if len(p) == 1 else occurrences(tokens, p)) for p in kept]
    return [p for p in found if len(p.starts) >= LEAST_REPEATS]


def rotated(tokens: Int64, pattern: Pattern, place: int) -> Pattern:
    """Return the same pattern begun at another of its launches, with the repeats that it then has."""
    if not place:
        return pattern
    turned = np.roll(pattern.tokens, -place)
    return Pattern(turned, occurrences(tokens, turned))


def occurrences(tokens: Int64, pattern: Int64) -> Int64:
    """Return where the pattern lies whole in the sequence, from left to right without overlap."""
    size = len(pattern)
    if size > len(tokens):
        return np.empty(0, dtype=np.int64)
    hashes = _hashes(np.concatenate([pattern, tokens]), size)
    starts, free = [], 0
    for at in np.flatnonzero(hashes[size:] == hashes[0]).tolist():
        if at >= free:
            starts.append(at)
            free = at + size
    found = np.array(starts, dtype=np.int64)
    # equal hashes may differ: the repeats themselves decide
    same: Int64 = found[(tokens[found[:, None] + np.arange(size)] == pattern).all(axis=1)]
    return same


def _best_period(tokens: Int64) -> int | None:
    """Return the shortest period that covers about as much as any does; None where none covers enough."""
    n = len(tokens)
    longest = n // LEAST_REPEATS
    periods = sorted({*range(1, min(_TRIED, longest) + 1), *_proposals(tokens, longest)})
    covered = {p: c for p in periods if (c := _covered(tokens, p)) >= _wanted(n, p) * n}
    best = max(covered.values(), default=0)
    found = next((p for p, c in covered.items() if c >= best - _NEAR_BEST * n), None)
    if found is None or found < _SHORT:
        return found
    # the layers of a model repeat inside its steps: the step is the call where it has launches of its own besides them
    least, inner = max(3.0, _OWN_LAUNCHES * found), covered[found]
    longer: list[int] = [p for p, c in covered.items() if p >= 2 * found and (c - inner) * p >= least * c]
    return longer[0] if longer else found


def _wanted(n: int, period: int) -> float:
    if period >= _SHORT:
        return _HALF
    # one irregular call in a short trace breaks two comparisons of each of its launches
    return min(_THROUGHOUT, 1 - 2.5 * period / n) if n < 40 * period else _THROUGHOUT


def _proposals(tokens: Int64, longest: int) -> list[int]:
    """Return distances between occurrences of rare launches and rare runs of launches, most votes first."""
    votes: dict[int, int] = {}
    for size in _GRAMS:
        if size > longest:
            break
        order = np.argsort(grams := _hashes(tokens, size), kind="stable")
        begins = np.concatenate([[0], np.flatnonzero(np.diff(grams[order]) != 0) + 1])
        counts = np.diff(np.concatenate([begins, [len(grams)]]))
        for which in _sample(counts):
            places = order[begins[which] : begins[which] + counts[which]]
            for step in range(1, min(4, len(places) - 1) + 1):
                distance, times = np.unique(places[step:] - places[:-step], return_counts=True)
                period, common = int(distance[np.argmax(times)]), int(times.max())
                if _TRIED < period <= longest and common >= 2:
                    votes[period] = votes.get(period, 0) + common
    return sorted(votes, key=lambda p: (-votes[p], p))[:_MOST_PROPOSALS]


def _sample(counts: Int64) -> list[int]:
    """Return some items of each number of occurrences from three up, the rarest first."""
    usable = np.flatnonzero(counts >= LEAST_REPEATS)
    order = usable[np.argsort(counts[usable], kind="stable")]
    if not len(order):
        return []
    place = np.arange(len(order))
    change = np.concatenate([[True], counts[order[1:]] != counts[order[:-1]]])
    chosen: list[int] = order[place - np.maximum.accumulate(np.where(change, place, 0)) < _FROM_EACH_COUNT].tolist()
    return chosen[:_SAMPLES]


def _runs(tokens: Int64, period: int) -> tuple[Int64, Int64]:
    """Return begin and length of the stretches in which each launch equals the one a period later, if long enough."""
    equal = np.concatenate([[False], tokens[period:] == tokens[:-period], [False]])
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    begins, lengths = edges[::2], edges[1::2] - edges[::2]
    long = lengths >= (2 * period if period < _SHORT else period)
    return begins[long], lengths[long]


def _covered(tokens: Int64, period: int) -> int:
    """Return how many launches lie in stretches that have this period."""
    return int((_runs(tokens, period)[1] + period).sum())


def _stretches(tokens: Int64, period: int) -> list[int]:
    """Return where the stretches with this period begin, the longest first."""
    begins, lengths = _runs(tokens, period)
    order: list[int] = begins[np.argsort(-lengths, kind="stable")].tolist()
    return order


def _smallest_period(repeat: Int64) -> int:
    """Return the smallest period of a sequence that repeats this; it divides the period (Fine and Wilf)."""
    n = len(repeat)
    return next(d for d in range(1, n + 1) if (n % d == 0 and (repeat[d:] == repeat[:-d]).all()) or d == n)


def _least_rotation(values: list[int]) -> int:
    """Return where the least of all rotations begins (Booth), equal for rotations of one pattern."""
    n, i, j, k = len(values), 0, 1, 0
    while i < n and j < n and k < n:
        a, b = values[(i + k) % n], values[(j + k) % n]
        if a == b:
            k += 1
            continue
        if a > b:
            i += k + 1
        else:
            j += k + 1
        j += i == j
        k = 0
    return min(i, j)


def _hashes(tokens: Int64, size: int) -> _Hashes:
    """Return a hash of each run of ``size`` tokens; equal runs have equal hashes, others may rarely collide."""
    mixed = (tokens.astype(np.uint64) + np.uint64(1)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(29)
    if size == 1:
        return mixed
    powers = np.full(len(tokens), _MULTIPLIER, dtype=np.uint64)
    powers[0] = 1
    powers = np.cumprod(powers, dtype=np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed * powers, dtype=np.uint64)])
    # lifted to one power of the multiplier, wherever the run lies
    return np.asarray((sums[size:] - sums[:-size]) * powers[::-1][: len(tokens) - size + 1])


def _places(tokens: Int64) -> Callable[[int], Int64]:
    order = np.argsort(tokens, kind="stable")
    ordered = tokens[order]

    def of(token: int) -> Int64:
        low, high = np.searchsorted(ordered, (token, token + 1))
        found: Int64 = order[int(low) : int(high)]
        return found

    return of
