"""One side of a comparison: the work in it and the conditions it was measured under, from wherever they were read."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceanalyzer.analysis.compare.statistics import Times
from traceanalyzer.analysis.compare.unit_side import UnitSide
from traceanalyzer.analysis.protocols import Symbols


@dataclass(frozen=True)
class ComparedWork:
    """One operation, or one kernel in one launch configuration.

    ``measure`` says what ``times`` are: ``self-time``, or the protocol a capture measured end to end. ``config`` is empty
    where it is unknown or mixed, ``first_us`` the first start. ``symbols`` (ns) made the ladder, those in ``seen`` from this very
    run; ``readings_us`` as the side's own report gives them; ``measured`` a capture's readings by protocol; ``captured``: there is a
    capture of it, ``flush`` how the cache was treated, by protocol; ``checked``: that compared its result with a reference, and it is right.
    """

    name: str
    short_name: str
    times: Times
    measure: str = "self-time"
    config: str = ""
    method: str = ""
    total_us: float = 0.0
    kernels_per_call: float = 1.0
    first_us: float | None = None
    dispatch_us: float | None = None
    dispatch_samples_us: list[float] = field(default_factory=list)
    event_reading_us: float | None = None
    span_us: float | None = None
    period_us: float | None = None
    queue: str = "unknown"
    symbols: Symbols | None = None
    seen: frozenset[str] = frozenset()
    readings_us: dict[str, float | None] = field(default_factory=dict)
    measured: dict[str, Times] = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    flush: dict[str, str] = field(default_factory=dict)
    wrong: str = ""
    captured: bool = False
    checked: bool = False
    bytes_moved: int | None = None


@dataclass(frozen=True)
class SideCondition:
    """Something both sides must share. ``refuses``: where it differs a ratio says nothing; otherwise it is marked."""

    what: str
    value: str
    refuses: bool


@dataclass(frozen=True)
class Side:
    """A trace or report that is compared. ``broken`` says why nothing of it can be judged, empty if it can;
    ``host_broken`` why its host numbers cannot. ``runs``: how many runs it is made of, 0 for a single file. ``starts_us``: when the
    first kernel of each of its files started."""

    name: str
    source: str
    ops: list[ComparedWork]
    kernels: list[ComparedWork]
    conditions: list[SideCondition]
    clock_mhz: float | None = None
    throttled: str = ""
    broken: str = ""
    host_broken: str = ""
    has_device_rows: bool = True
    kernels_left_out: int = 0
    units: list[UnitSide] = field(default_factory=list)
    runs: int = 0
    starts_us: list[float] = field(default_factory=list)
