"""The difference of two ledgers per unit: what each class of time saved or cost; the terms add up to the difference of the periods."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.analysis.compare.unit_side import UnitSide


@dataclass(frozen=True)
class LedgerTerm:
    """Nanoseconds of one class of the ledger in the repeat of median length, on both sides."""

    cls: str
    base_ns: float
    head_ns: float

    @property
    def saved_ns(self) -> float:
        """What the head spends less in it."""
        return self.base_ns - self.head_ns


def ledger_terms(base: UnitSide, head: UnitSide, start_to_start: bool, scale: float = 1.0) -> list[LedgerTerm]:
    """Return a term per class, the largest change first; none where a side has no ledger."""
    mine, theirs = (u.period_ledger if start_to_start else u.duration_ledger for u in (base, head))
    if not mine or not theirs:
        return []
    names = list(dict.fromkeys([*mine, *theirs]))
    found = [LedgerTerm(n, mine.get(n, 0.0), theirs.get(n, 0.0) / scale) for n in names]
    return sorted(found, key=lambda t: (-abs(t.saved_ns), t.cls))
