"""Which unit of one side is compared with which of the other, and on what evidence they are the same work.

Never because nothing else is left: a name, what was captured for the same inputs, or shared work pairs two units.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from traceanalyzer.analysis.compare.matching import SHARED_WORK, without_arguments
from traceanalyzer.analysis.compare.shared_work import SharedWork, shared_operators, shared_work
from traceanalyzer.analysis.compare.unit_side import UnitSide
from traceanalyzer.analysis.units.model import ASKED, CAPTURED, MARK, NAMED, PATTERN, REPLAY, STEP, WHOLE
from traceanalyzer.errors import OptionError

LITTLE = 0.2
"""Below this share of work in common, and without a name in common, not even the whole traces are compared."""
HOLDS = 0.5
"""A unit that holds less of the device's time than this comes after one that holds more."""
SAME_OPERATORS = 0.8
"""Units that run this share of their operator calls both are the same work whatever their kernels are called."""
_MOST = 24
_ANYONES = ("enumerate(DataLoader)", "Optimizer.")
"""Names that PyTorch gives whatever the model: alone they are no evidence."""
_NAMED = (STEP, NAMED, MARK)


@dataclass(frozen=True)
class UnitPair:
    """Two units that are compared. ``evidence``: asked, name, inputs, work, operators or whole. ``caveats`` are codes of doubts.

    ``operators``: share of the framework's operator calls that both have. ``other-work``: the name is one that every run has, and neither
    kernels nor operators are shared; ``little-work``: under half of the work is shared;
    ``other-kernels``: only the operators are shared, the kernels have other names; ``little-time``: a unit holds under half of its device's time;
    ``scaled``: one side does the work more often, and its times are divided by that.
    """

    base: UnitSide
    head: UnitSide
    evidence: str
    work: SharedWork
    caveats: tuple[str, ...] = ()
    operators: float = 0.0


@dataclass(frozen=True)
class Pairing:
    """The pairs of units; none and a ``refused`` code where the two sides cannot be told to be the same work.

    Codes: ``captures`` (other operations were captured), ``work`` (too little in common). ``share`` is the whole traces'. ``units``
    names what each side repeats, for ``--unit``.
    """

    pairs: list[UnitPair]
    refused: str = ""
    share: tuple[float, float] = (0.0, 0.0)
    units: tuple[list[str], list[str]] = field(default_factory=lambda: ([], []))


def pair_units(
    base: Sequence[UnitSide], head: Sequence[UnitSide], asked: tuple[str, str] | None = None,
    inputs: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]] = ({}, {}),
) -> Pairing:  # fmt: skip
    """Return which units are compared. ``inputs`` are those of captured operations, by operation.

    Raises OptionError where ``asked`` names a unit that a side does not have.
    """
    names = (unit_names(base), unit_names(head))
    if asked is not None:
        return Pairing([_pair(unit_called(base, asked[0], "base"), unit_called(head, asked[1], "head"), "asked")])
    if not base or not head:
        return Pairing([], "", (0.0, 0.0), names)
    captured = [[u for u in side if u.method == CAPTURED] for side in (base, head)]
    if captured[0] and captured[1]:
        return _of_captures(captured[0], captured[1], inputs, names)
    ranges = [[u for u in side if u.method == ASKED] for side in (base, head)]
    if ranges[0] and ranges[1]:
        return Pairing([_pair(ranges[0][0], ranges[1][0], "name")], units=names)
    found = _by_name(base, head)
    if found is None or min(found.base.coverage, found.head.coverage) < HOLDS:
        found = _by_work(base, head) or found
    if found is not None:
        return Pairing([found], units=names)
    whole = _whole(base, head)
    if whole.work.least >= SHARED_WORK or (whole.work.least >= LITTLE and _alike(base, head)):
        return Pairing([whole], units=names)
    if (by_operators := _by_operators(base, head)) is not None:
        return Pairing([by_operators], units=names)
    return Pairing([], "work", whole.work.share, names)


def unit_names(side: Sequence[UnitSide]) -> list[str]:
    """Return the names of a side's units, the whole trace left out."""
    return list(dict.fromkeys(u.name for u in side if u.method != WHOLE))


def distinct_part(name: str, names: Sequence[str]) -> str:
    """Return a short part of a name that no other of the names contains and that ``--unit`` takes: without equals signs or blanks."""
    pieces = [p for p in re.split(r"[=\s\x00-\x1f\x7f]", name) if p]
    for length in (24, 40, 200):
        for piece in sorted(pieces, key=lambda p: -min(len(p), length)):
            part = piece[:length]
            if sum(part in n for n in names) == 1:
                return part
    return max(pieces or [name], key=len)[:40]


def unit_called(side: Sequence[UnitSide], name: str, which: str) -> UnitSide:
    """Return the unit of that name, else the only one whose name contains it. Raises OptionError."""
    exact = [u for u in side if u.name == name]
    near = exact or [u for u in side if name and name in u.name]
    if exact or len({u.name for u in near}) == 1:
        return near[0]
    what = f"{which} has no unit called '{name}'" if not near else f"several units of {which} contain '{name}'"
    listed = ", ".join(f"'{n[:60]}'" for n in unit_names(near or side)[:8]) or "none but the whole trace"
    raise OptionError("unknown_unit", what, hint=f"units of {which}: {listed}")


def _pair(base: UnitSide, head: UnitSide, evidence: str, scaled: bool = False) -> UnitPair:
    work = shared_work(base.work, head.work, scaled)
    operators = shared_operators(base.operators, head.operators)
    caveats = []
    anyones = base.method == STEP or (base.method == MARK and base.name.startswith(_ANYONES))
    if evidence == "name" and anyones and work.least < LITTLE and operators < SHARED_WORK:
        caveats.append("other-work")
    if max(work.least, operators) < SHARED_WORK:
        caveats.append("little-work")
    if min(base.coverage, head.coverage) < HOLDS:
        caveats.append("little-time")
    if evidence == "operators":
        caveats.append("other-kernels")
    if work.scale != 1.0:
        caveats.append("scaled")
    return UnitPair(base, head, evidence, work, tuple(caveats), operators)


def _of_captures(
    base: list[UnitSide], head: list[UnitSide], inputs: tuple[dict[str, dict[str, str]], dict[str, dict[str, str]]],
    names: tuple[list[str], list[str]],
) -> Pairing:  # fmt: skip
    theirs = {u.name: u for u in head}
    found = [_pair(u, theirs[u.name], "name") for u in base if u.name in theirs]
    if not found and len(base) == len(head) == 1:
        mine, other = (i.get(u[0].name) for i, u in zip(inputs, (base, head), strict=True))
        pair = _pair(base[0], head[0], "inputs")
        if (mine and mine == other) or pair.work.least >= SHARED_WORK:
            evidence = "inputs" if mine and mine == other else "work"
            found = [UnitPair(pair.base, pair.head, evidence, pair.work, pair.caveats)]
    return Pairing(found, "" if found else "captures", units=names)


def _by_name(base: Sequence[UnitSide], head: Sequence[UnitSide]) -> UnitPair | None:
    """Return the pair of one name that holds most of the device's time; the repeats of a range before those between marks."""
    found: list[tuple[tuple[float, int, float], UnitSide, UnitSide]] = []
    for mine in base:
        for other in head:
            if mine.method == other.method and _same_name(mine, other):
                least = min(mine.coverage, other.coverage)
                order = {STEP: 2, NAMED: 1}.get(mine.method, 0)
                found.append(((least >= HOLDS, order if least >= HOLDS else 0, least), mine, other))
    if not found:
        return None
    _, mine, other = max(found, key=lambda f: f[0])
    return _pair(mine, other, "name")


def _same_name(base: UnitSide, head: UnitSide) -> bool:
    if base.method in _NAMED:
        return base.name == head.name
    few = base.method == PATTERN and max(base.kernels, head.kernels) <= 1
    return few and without_arguments(base.name) == without_arguments(head.name)


def _by_work(base: Sequence[UnitSide], head: Sequence[UnitSide]) -> UnitPair | None:
    """Return the pair with most work in common, among those that hold most of the device's time; at least half of it.

    A unit with several repeats comes before one with a single repeat, one with a few parts in a thousand more in common does not.
    """
    best: tuple[tuple[bool, bool, float, float], UnitPair] | None = None
    for mine in base[:_MOST]:
        for other in head[:_MOST]:
            if WHOLE in (mine.method, other.method) or (mine.method == MARK) != (
                other.method == MARK and mine.method == MARK
            ):
                continue
            pair = _pair(mine, other, "work")
            if pair.work.least < SHARED_WORK:
                continue
            least = min(mine.coverage, other.coverage)
            order = (least >= HOLDS, min(mine.repeats, other.repeats) > 1, round(pair.work.least, 1), least)
            if best is None or order > best[0]:
                best = (order, pair)
    return best[1] if best is not None else None


def _by_operators(base: Sequence[UnitSide], head: Sequence[UnitSide]) -> UnitPair | None:
    """Return the pair of units that run the same operators of the framework equally often, where most kernels have other names.

    Among those that hold most of the device's time; whole traces too, which have to run them as often.
    """
    best: tuple[tuple[bool, float, float], UnitPair] | None = None
    for mine in base[:_MOST]:
        for other in head[:_MOST]:
            if (mine.method == WHOLE) != (other.method == WHOLE) or min(mine.coverage, other.coverage) < HOLDS:
                continue
            shared = shared_operators(mine.operators, other.operators)
            if shared < SAME_OPERATORS:
                continue
            order = (mine.method != WHOLE, round(shared, 1), min(mine.coverage, other.coverage))
            if best is None or order > best[0]:
                best = (order, _pair(mine, other, "operators"))
    return best[1] if best is not None else None


def _whole(base: Sequence[UnitSide], head: Sequence[UnitSide]) -> UnitPair:
    return _pair(base[-1], head[-1], "whole", scaled=True)


def _alike(base: Sequence[UnitSide], head: Sequence[UnitSide]) -> bool:
    """Return whether what each side repeats is repeated equally often, or nothing is known to repeat."""
    counts = [max((u.repeats for u in side if u.method in (PATTERN, REPLAY)), default=0) for side in (base, head)]
    return counts[0] == counts[1] or 0 in counts
