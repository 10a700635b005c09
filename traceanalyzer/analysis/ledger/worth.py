"""What a change would be worth to a run: the results of the replays in :mod:`traceanalyzer.analysis.worth`."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.record import record
from traceanalyzer.strenum import StrEnum
from traceanalyzer.trace.tables import Int64


class UnitKind(StrEnum):
    """What the units of a run are: steps of a program, calls of an operation (a range tells them apart), or repeats of a few launches."""

    STEP = "step"
    CALL = "call"
    ITERATION = "iteration"


STEP_KERNELS = 50
"""Kernels from which a pattern that repeats is a step of a model."""


@record(frozen=True)
class WorthUnit:
    """What is replayed: ``name`` is that of the operation, ``kernels`` how many kernels one has (rounded)."""

    kind: UnitKind
    name: str
    kernels: int


@record(frozen=True)
class ChangeWorth:
    """What one change would make of the period. ``period_ns`` is None with a ``reason`` where it cannot be said.

    ``factor`` is now over then. ``behind`` is the other change without which this one is worth nothing, or ``device`` where the
    device itself is what limits; empty otherwise.
    """

    change: str
    period_ns: float | None
    now_ns: float | None
    factor: float | None
    behind: str = ""
    reason: str = ""

    @property
    def share(self) -> float:
        """Part of the period that would go, 0 where nothing can be said."""
        return 1 - 1 / self.factor if self.factor else 0.0


@record(frozen=True)
class Worth:
    """The worths of a device's units; ``reason`` says why none can be told, and ``changes`` is empty then.

    ``units`` of the run were replayed: their period is ``now_ns``, which the unchanged replay gave as ``replayed_ns``; its
    idle time was ``idle_ns``, replayed ``replayed_idle_ns``.
    """

    reason: str
    units: int = 0
    now_ns: float = 0.0
    replayed_ns: float = 0.0
    idle_ns: int = 0
    replayed_idle_ns: int = 0
    changes: list[ChangeWorth] = field(default_factory=list)

    def of(self, change: str) -> ChangeWorth | None:
        """Return the worth of a change, None where it was not looked at."""
        return next((c for c in self.changes if c.change == change), None)

    @property
    def largest(self) -> ChangeWorth | None:
        """The change that is worth most, without the floor and the faster kernel; None where nothing is known."""
        known = [c for c in self.changes if c.factor and c.change not in ("everything_free", "largest_kernel_halved")]
        return max(known, key=lambda c: c.factor or 0.0, default=None)


@record(frozen=True)
class LedgerTimeline:
    """Host events and device rows of the replayed units as they would be with a change; times in nanoseconds.

    ``call`` is the row of ``trace.calls`` of each event, NO_ROW for data loading; ``thread`` numbers ``trace.threads``; ``row`` are
    rows of ``trace.activities``. ``unit_starts`` is where on the device each replayed unit begins.
    """

    change: str
    call: Int64
    thread: Int64
    event_start: Int64
    event_end: Int64
    row: Int64
    row_start: Int64
    row_end: Int64
    unit_starts: Int64
