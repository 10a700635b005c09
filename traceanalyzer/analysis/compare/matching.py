"""Which work of one side is which of the other: by name, then by a plainer name, then by grid and place.

A step pairs only what it identifies on both sides; what stays ambiguous stays apart. Each pair says how it was found.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traceanalyzer.analysis.compare.sides import ComparedWork
from traceanalyzer.trace.names import simplify

SHARED_WORK = 0.5
"""Guessing by shape or place needs sides that are mostly the same work: this share of either's time matched by name."""
FEW_KERNELS = 3
"""A unit of at most so many kernels is a kernel under test; one of more is a step of a run."""

_SUFFIX = re.compile(r"_\d[\dcde]*$")  # 12, 0d1d2de: no nested repeats, names are hostile
_DIGITS = re.compile(r"\d+")
_LONGEST = 8192


@dataclass(frozen=True)
class Pair:
    """Row numbers of the two sides, None where one has no counterpart; ``how`` it was found."""

    base: int | None
    head: int | None
    how: str


def without_suffix(name: str) -> str:
    """Return a name without the numbers that compilers append: ``triton_poi_fused_add_0``, ``kernel_0d1d2de``."""
    plain = name[:_LONGEST]
    for _ in range(4):
        shorter = _SUFFIX.sub("", plain)
        if shorter == plain or not shorter:
            break
        plain = shorter
    return plain


def without_arguments(name: str) -> str:
    """Return a name without template arguments, parameters, return type and number suffix."""
    out, depth = [], 0
    for char in simplify(name):
        if char == "<":
            depth += 1
        elif char == ">" and depth:
            depth -= 1
        elif not depth:
            out.append(char)
    plain = "".join(out).strip()
    return without_suffix(plain) if plain else name


def without_numbers(name: str) -> str:
    """Return a name with every number masked: tile sizes and algorithm numbers of libraries."""
    return _DIGITS.sub("#", simplify(name))


class _Matcher:
    """Takes from two lists what each step identifies."""

    def __init__(self, base: Sequence[ComparedWork], head: Sequence[ComparedWork]) -> None:
        self.sides = (base, head)
        self.left = (dict.fromkeys(range(len(base))), dict.fromkeys(range(len(head))))
        self.pairs: list[Pair] = []

    def take(self, base: int, head: int, how: str) -> None:
        del self.left[0][base], self.left[1][head]
        self.pairs.append(Pair(base, head, how))

    def groups(self, key: Callable[[ComparedWork], object]) -> list[tuple[list[int], list[int]]]:
        found: dict[object, tuple[list[int], list[int]]] = {}
        for side in (0, 1):
            for row in self.left[side]:
                found.setdefault(key(self.sides[side][row]), ([], []))[side].append(row)
        return [(a, b) for a, b in found.values() if a and b]

    def unique(self, key: Callable[[ComparedWork], object], how: str) -> None:
        """Pair what is alone with its key on both sides."""
        for a, b in self.groups(key):
            if len(a) == 1 and len(b) == 1:
                self.take(a[0], b[0], how)

    def in_order(self, key: Callable[[ComparedWork], object], how: str) -> None:
        """Pair groups of equal size whose members ran equally often, in order of their first start."""
        for a, b in self.groups(key):
            first, second = self._ordered(0, a), self._ordered(1, b)
            counts = [[self.sides[side][r].times.count for r in rows] for side, rows in ((0, first), (1, second))]
            if first and len(first) == len(second) and counts[0] == counts[1]:
                for x, y in zip(first, second, strict=True):
                    self.take(x, y, how)

    def _ordered(self, side: int, rows: list[int]) -> list[int]:
        starts = {r: s for r in rows if (s := self.sides[side][r].first_us) is not None}
        return sorted(rows, key=lambda r: starts[r]) if len(starts) == len(rows) else []

    def between_anchors(self, how: str) -> None:
        """Pair what alone has its grid between the same two matched neighbours, in order of first start."""
        of_base = {p.base: n for n, p in enumerate(self.pairs)}
        of_head = {p.head: n for n, p in enumerate(self.pairs)}
        places: list[dict[tuple[object, ...], list[int]]] = [{}, {}]
        for side, anchors in ((0, of_base), (1, of_head)):
            works = self.sides[side]
            order = self._ordered(side, list(range(len(works))))
            known = [anchors.get(r) for r in order]
            before: int | None = None
            neighbours = []
            for anchor in known:
                neighbours.append(before)
                before = anchor if anchor is not None else before
            after: int | None = None
            for at in range(len(order) - 1, -1, -1):
                if known[at] is not None:
                    after = known[at]
                elif works[order[at]].config and (neighbours[at] is not None or after is not None):
                    key: tuple[object, ...] = (
                        neighbours[at],
                        after,
                        works[order[at]].config,
                        works[order[at]].times.count,
                    )
                    places[side].setdefault(key, []).append(order[at])
        for key, rows in places[0].items():
            others = places[1].get(key, [])
            if len(rows) == 1 and len(others) == 1:
                self.take(rows[0], others[0], how)

    def shares(self) -> tuple[float, float]:
        """Return the share of each side's time that is paired."""
        result = []
        for side in (0, 1):
            total = sum(w.total_us for w in self.sides[side])
            left = sum(self.sides[side][r].total_us for r in self.left[side])
            result.append(1 - left / total if total > 0 else 0.0)
        return result[0], result[1]

    def done(self) -> list[Pair]:
        """Return the pairs, then what is gone, then what is new, each in its side's order."""
        pairs = sorted(self.pairs, key=lambda p: p.base if p.base is not None else 0)
        pairs += [Pair(r, None, "") for r in self.left[0]]
        return pairs + [Pair(None, r, "") for r in self.left[1]]


def match_kernels(base: Sequence[ComparedWork], head: Sequence[ComparedWork]) -> list[Pair]:
    """Return kernels (one per name and configuration) paired, and those without counterpart."""
    m = _Matcher(base, head)
    m.unique(lambda w: (w.name, w.config), "name")
    if not any(w.config for w in base) or not any(w.config for w in head):
        m.unique(lambda w: w.name, "name")  # one side's profiler records no configuration
    m.unique(lambda w: w.name, "name; another configuration")
    m.in_order(lambda w: w.name, "name and order; other configurations")
    m.unique(lambda w: (without_suffix(w.name), w.config), "name without number")
    m.unique(lambda w: without_suffix(w.name), "name without number; another configuration")
    m.unique(lambda w: (without_arguments(w.name), w.config), "name without template arguments")
    if min(m.shares()) >= SHARED_WORK:
        m.unique(lambda w: without_arguments(w.name), "name without template arguments; another configuration")
        m.unique(lambda w: (without_numbers(w.name), w.times.count), "name without numbers")
        m.between_anchors("grid and place between the same neighbours")
    return m.done()


def match_operations(
    base: Sequence[ComparedWork], head: Sequence[ComparedWork], paired: Sequence[tuple[str, str]] = ()
) -> list[Pair]:
    """Return operations paired by name, and those without counterpart.

    ``paired``: names of units of base and head that are compared; operations of these names are each other's.
    """
    m = _Matcher(base, head)
    for mine, theirs in paired:
        found = [[r for r in m.left[n] if (base, head)[n][r].name == name] for n, name in enumerate((mine, theirs))]
        if len(found[0]) == len(found[1]) == 1:
            m.take(found[0][0], found[1][0], "name" if mine == theirs else "the unit it is")
    m.unique(lambda w: w.name, "name")
    m.unique(lambda w: without_suffix(w.name), "name without number")
    m.unique(lambda w: without_arguments(w.name), "name without template arguments")
    return m.done()
