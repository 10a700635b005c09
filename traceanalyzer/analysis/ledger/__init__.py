"""The time ledger: where every nanosecond of a device's span went, and why.

:class:`LedgerMaker` makes a :class:`DeviceLedger` per device; :func:`items` groups its segments by cause. What an
instant is called is defined in docs/ledger.md.
"""

from traceanalyzer.analysis.ledger.classes import BUSY, DrainedBy, LedgerClass, family_of
from traceanalyzer.analysis.ledger.device import DeviceLedger, LedgerMaker
from traceanalyzer.analysis.ledger.items import LedgerItem, clipped, items, largest
from traceanalyzer.analysis.ledger.worth import ChangeWorth, LedgerTimeline, UnitKind, Worth, WorthUnit

__all__ = [
    "BUSY",
    "ChangeWorth",
    "DeviceLedger",
    "DrainedBy",
    "LedgerClass",
    "LedgerItem",
    "LedgerMaker",
    "LedgerTimeline",
    "UnitKind",
    "Worth",
    "WorthUnit",
    "clipped",
    "family_of",
    "items",
    "largest",
]  # fmt: skip
