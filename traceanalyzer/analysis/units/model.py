"""A unit of a run: what repeats in it, with its times per repeat and the work it is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceanalyzer.trace.tables import Int64

CAPTURED = "capture annotation"
ASKED = "range"
NAMED = "named range"
STEP = "ProfilerStep"
MARK = "step mark"
PATTERN = "repeating launches"
REPLAY = "graph replay"
WHOLE = "whole trace"


@dataclass(frozen=True)
class Places:
    """Where the repeats of a unit lie: the device rows of each, and its window on the host (start, end; ns) where it has one."""

    name: str
    method: str
    rows: list[Int64]
    windows: list[tuple[int, int]] | None


@dataclass(frozen=True)
class Work:
    """One kernel, copy or fill of a unit, over all of its repeats. ``time_ns`` is exclusive: what it adds on its stream."""

    name: str
    count: int
    time_ns: int


@dataclass(frozen=True)
class UnitLedger:
    """Where the time of one device went in the repeat of median length (ns); ``device`` is a row of ``trace.devices``.

    ``classes`` are those of the ledger and add up to the median; ``kernels`` cuts the class compute up by kernel name, exactly.
    ``decides``: the device that the unit keeps busy longest.
    """

    device: int
    classes: dict[str, float]
    kernels: dict[str, float]
    decides: bool = True


@dataclass(frozen=True)
class Unit:
    """A unit with one value per repeat that has device work, in nanoseconds.

    ``period_ns``: first device row to the first of the next repeat, one value less than repeats. ``duration_ns``: begin of the
    host's window (else of the first row) to the later of its end and the last row's end. ``busy_ns``: union of the rows;
    ``self_ns``: sum of the kernels; ``exclusive_ns``: the same with overlap on one stream counted once. ``launches``: launch
    calls. ``coverage``: share of the device's self-time that lies in the unit. ``operators``: how often the host began each of the framework's operators in the unit's
    windows. Cache clears count in none of them. ``first_ns``: first device rows, in order;
    ``opened_ns`` where each duration begins. Rows on several devices: periods, durations and launches are of all of them, busy and kernel
    times of the device in ``device`` (a row of ``trace.devices``), the one that the unit keeps busy longest. ``period_ledgers``,
    ``duration_ledgers``: a ledger per device.
    """

    name: str
    method: str
    repeats: int
    coverage: float
    kernels_per_repeat: float
    period_ns: Int64
    duration_ns: Int64
    busy_ns: Int64
    self_ns: Int64
    exclusive_ns: Int64
    launches: Int64
    work: list[Work]
    operators: dict[str, int]
    first_ns: Int64
    opened_ns: Int64
    device: int
    period_ledgers: list[UnitLedger] = field(default_factory=list)
    duration_ledgers: list[UnitLedger] = field(default_factory=list)
