"""The difference of two ledgers per unit and device: what each class of time saved or cost.

The terms of each device add up to the difference of the periods, and the terms of the kernels to that of the class compute.
Devices are never added up: each lives through the same period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traceanalyzer.analysis.compare.shared_work import PartPair
from traceanalyzer.analysis.compare.unit_side import SideLedger, UnitSide

COMPUTE = "compute"


@dataclass(frozen=True)
class LedgerTerm:
    """Nanoseconds of one class of the ledger in the repeat of median length, on both sides.

    ``cls`` of a term in ``kernels`` (of the class compute alone) is shared, gone or new: kernels whose name both sides run, or one.
    """

    cls: str
    base_ns: float
    head_ns: float
    kernels: list[LedgerTerm] = field(default_factory=list)

    @property
    def saved_ns(self) -> float:
        """What the head spends less in it."""
        return self.base_ns - self.head_ns


@dataclass(frozen=True)
class DeviceTerms:
    """The terms of one device, the largest change first. ``base_decides``, ``head_decides``: that side's unit keeps it busy longest."""

    base_device: str
    head_device: str
    base_decides: bool
    head_decides: bool
    terms: list[LedgerTerm]


@dataclass(frozen=True)
class LedgerChange:
    """The terms of every device that both sides have, that which decides the base first, and devices that one side has.

    ``missing`` names the sides (base, head) that have no ledger of the unit at all.
    """

    devices: list[DeviceTerms]
    base_alone: list[str] = field(default_factory=list)
    head_alone: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    @property
    def terms(self) -> list[LedgerTerm]:
        """Those of the device that decides the base; empty where the head does not have it."""
        return self.devices[0].terms if self.devices and self.devices[0].base_decides else []


def ledger_change(
    base: UnitSide, head: UnitSide, start_to_start: bool, work: Sequence[PartPair] = (), scale: float = 1.0
) -> LedgerChange:
    """Return the difference of the ledgers. ``work`` says which kernels are the same; the head is divided by ``scale``.

    A single device on either side is the same one whatever its number; of several those of one number are.
    """
    mine, theirs = (u.period_ledgers if start_to_start else u.duration_ledgers for u in (base, head))
    missing = [name for name, found in (("base", mine), ("head", theirs)) if not found]
    if missing:
        return LedgerChange([], missing=missing)
    if len(mine) == len(theirs) == 1:
        pairs = [(mine[0], theirs[0])]
    else:
        other = {x.device: x for x in theirs}
        pairs = [(x, other[x.device]) for x in mine if x.device in other]
    shared = ({p.base.name for p in work if p.base and p.head}, {p.head.name for p in work if p.base and p.head})
    found = [DeviceTerms(x.device, y.device, x.decides, y.decides, _terms(x, y, shared, scale)) for x, y in pairs]
    found.sort(key=lambda d: (not d.base_decides, not d.head_decides))
    return LedgerChange(
        found,
        [x.device for x in mine if all(x is not a for a, _ in pairs)],
        [y.device for y in theirs if all(y is not b for _, b in pairs)],
    )


def _terms(base: SideLedger, head: SideLedger, shared: tuple[set[str], set[str]], scale: float) -> list[LedgerTerm]:
    names = dict.fromkeys([*base.classes, *head.classes])
    found = []
    for name in names:
        kernels = _kernels(base.kernels, head.kernels, shared, scale) if name == COMPUTE else []
        found.append(LedgerTerm(name, base.classes.get(name, 0.0), head.classes.get(name, 0.0) / scale, kernels))
    return sorted(found, key=lambda t: (-abs(t.saved_ns), t.cls))


def _kernels(
    base: Mapping[str, float], head: Mapping[str, float], shared: tuple[set[str], set[str]], scale: float
) -> list[LedgerTerm]:
    """Return the class compute cut up into kernels that both sides run and that one runs; parts without time are left out."""
    sums = {"shared": [0.0, 0.0], "gone": [0.0, 0.0], "new": [0.0, 0.0]}
    for side, (mine, other) in enumerate(((base, head), (head, base))):
        for name, ns in mine.items():
            kind = "shared" if name in shared[side] or name in other else ("gone", "new")[side]
            sums[kind][side] += ns / (scale if side else 1.0)
    return [LedgerTerm(kind, x, y) for kind, (x, y) in sums.items() if x or y]
