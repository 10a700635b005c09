"""Frozen values of a report; the field names are those of the JSON report, version 1 (docs/schema.md).

``_us`` values are microseconds exact to 0.001 (medians may carry a half nanosecond), ``None`` where a value
does not exist; they are never NaN. Names are the full names of the trace; ``short_name`` is for people.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Literal

from traceanalyzer.record import record
from traceanalyzer.report.plain import plain
from traceanalyzer.report.unit_model import UnitRow
from traceanalyzer.report.units import KernelRow, OpRow, StepRow

if TYPE_CHECKING:
    # parts that most reports lack: their types are not loaded for a report without them
    from traceanalyzer.report.charts.model import Figures
    from traceanalyzer.report.opinion import SecondOpinion
    from traceanalyzer.trace.sidecar import Sidecar

SCHEMA = "traceanalyzer.report/1"


def load_every_type() -> None:
    """Load the types of the parts that most reports lack; needed before the annotations of this module are resolved."""
    from traceanalyzer.report.charts.model import Figures
    from traceanalyzer.report.opinion import SecondOpinion
    from traceanalyzer.trace.sidecar import Sidecar

    globals().update(Figures=Figures, SecondOpinion=SecondOpinion, Sidecar=Sidecar)


Status = Literal["ok", "suspect", "cannot-judge"]
Severity = Literal["error", "warning", "note"]


@record(frozen=True)
class Verdict:
    """``headline`` is one sentence a reviewer can act on."""

    status: Status
    headline: str


@record(frozen=True)
class DeviceRef:
    """A device of the trace; ``owner`` tells merged ranks apart and is empty otherwise."""

    id: int
    name: str
    owner: str = ""


@record(frozen=True)
class TraceSummary:
    """The file and what it holds. ``span_us``: first launch call or device row to the last device row's end.

    ``events``: elements of the events array. ``repaired``/``excluded``: rows by what was wrong with them, as
    ``ROW:FAULT`` (``kernel:no_time``), or the fault of an event of any kind (``malformed``).
    ``incomplete``: the file ends before its trace does. ``resolution_us``: finest step of device times.
    ``start_ns``: absolute nanoseconds of the first device row (base time added), None without one.
    ``annotations``: events that an earlier ``traceanalyze annotate`` added; they are in no other number.
    """

    name: str
    format: str
    events: int
    device_activities: int
    kernels: int
    launches: int
    linked: int
    streams: int
    span_us: float | None
    kernel_total_us: float | None
    kernel_p50_us: float | None
    devices: list[DeviceRef]
    salvaged: bool
    incomplete: bool
    excluded: dict[str, int]
    repaired: dict[str, int]
    notes: list[str]
    first_damage_byte: int | None
    resolution_us: float
    start_ns: int | None
    flavour: str
    simulated: bool
    versions: dict[str, str]
    profiler_flags: dict[str, int]
    unknown_categories: dict[str, int]
    skipped: dict[str, int]
    selection: dict[str, str | int]
    annotations: int = 0


@record(frozen=True)
class Clock:
    """``state``: agree, offset, disagree or unknown; ``early`` launches' rows start before their call."""

    state: str
    early: int
    launches: int
    skew_us: float


@record(frozen=True)
class CoverageRow:
    """Linked device rows of one launch API; ``known`` is False for an API the launch table lacks."""

    api: str
    rows: int
    known: bool


@record(frozen=True)
class Coverage:
    """How much of the device's record is linked; see analysis/coverage.py for each count."""

    rows: int
    linked: int
    launches: int
    by_api: list[CoverageRow]
    unlinked: int
    unlinked_at_head: int
    launch_calls: int
    launches_without_device_row: int
    launches_without_device_row_at_head: int
    captured_launches: int
    copy_calls_without_device_row: int
    reasons: dict[str, int]
    sentence: str


@record(frozen=True)
class DeviceRow:
    """One device: busy is the union of its rows; self_time_us their sum, larger where streams overlap."""

    device: int
    owner: str
    name: str
    span_us: float
    busy_us: float
    idle_us: float
    busy_fraction: float | None
    self_time_us: float
    copy_us: float
    overlap_us: float
    queue: str
    grade: str | None
    queue_reason: str
    launches_counted: int
    starved: int
    starved_after_sync: int


@record(frozen=True)
class StreamRow:
    """One stream; host_wait_us includes sync_wait_us; unattributed_us is the gap time of unlinked rows."""

    device: int
    owner: str
    stream: int
    activities: int
    busy_us: float
    gaps: int
    gap_total_us: float
    gap_p50_us: float | None
    gap_max_us: float | None
    kernel_gaps: int
    kernel_gap_total_us: float
    kernel_gap_p50_us: float | None
    kernel_gap_max_us: float | None
    overlaps: int
    overlap_max_us: float | None
    starved: int
    host_wait_us: float
    launch_wait_us: float
    sync_wait_us: float
    unattributed_us: float
    queue_depth_p50: float | None
    queue_depth_max: int | None
    clocks_agree: bool


@record(frozen=True)
class ThreadRow:
    """Dispatch of one launching thread; left_out counts intervals kept out of the steady dispatch, by reason."""

    thread: str
    launches: int
    dispatch_total_us: float
    dispatch_p50_us: float | None
    dispatch_p90_us: float | None
    steady_dispatch_p50_us: float | None
    steady_intervals: int
    left_out: dict[str, int]
    kernel_launches: int
    kernel_dispatch_total_us: float
    kernel_dispatch_p50_us: float | None


@record(frozen=True)
class PauseRow:
    """One idle interval of a device; at_us counts from the trace's start, as viewers do."""

    at_us: float
    length_us: float
    host_us: float
    sync_us: float
    launch_us: float
    cause: str
    before: str
    after: str


@record(frozen=True)
class IdleRow:
    """Idle time of one device: long pauses and late launches apart; the parts add up to idle_us."""

    device: int
    owner: str
    idle_us: float
    idle_share: float | None
    host_us: float
    sync_us: float
    launch_us: float
    unattributed_us: float
    long_limit_us: float
    long_pauses: int
    long_us: float
    long_share: float | None
    short_gaps: int
    short_us: float
    short_p50_us: float | None
    late_launches: int
    late_us: float
    late_p50_us: float | None
    pauses: list[PauseRow]


@record(frozen=True)
class LedgerItemRow:
    """What one cause cost in a window of the ledger; at_us values count from the trace's start, as viewers do.

    ``class`` is one of the ledger's classes (docs/ledger.md), ``name`` the API, operator, range, frame or device row,
    ``within`` the innermost range of the user, ``share`` of the window. ``count`` idle intervals met it (of busy classes:
    stretches), the longest for longest_us at example_at_us; ``before`` names the device row after it (of busy classes: the row).
    ``drained_by`` splits the time by why the device had run dry. ``when`` is start, end, once, steady, every_step, kth_step (every
    ``every``-th), periodic (each ``period_us``) or irregular. ``ranges`` is in how many ranges of the user (or outside of all) it lies; of
    several ``within`` is the one with most of its time.
    """

    class_: str
    name: str
    within: str
    us: float
    share: float
    count: int
    longest_us: float
    example_at_us: float
    median_example_at_us: float
    before: str
    drained_by: dict[str, float]
    when: str = "irregular"
    every: int = 0
    period_us: float | None = None
    line: str = ""
    ranges: int = 1


@record(frozen=True)
class WorthRow:
    """What one change would make of the period: now_us is what it is without one-time costs, factor is now over then.

    Where that cannot be said there is only the ``reason``. ``behind`` names the change that hides this one, or ``device``; the worths of
    several changes do not add.
    """

    change: str
    period_us: float | None = field(default=None, metadata={"absent": True})
    now_us: float | None = field(default=None, metadata={"absent": True})
    factor: float | None = field(default=None, metadata={"absent": True})
    behind: str | None = field(default=None, metadata={"absent": True})
    reason: str | None = field(default=None, metadata={"absent": True})


@record(frozen=True)
class LedgerRow:
    """Where the time of a device went: classes add up to span_us, drained_by to its idle time. Absent classes have no time.

    ``window`` is ``span`` or the name of an operation: from the first row of its first call to the first row of its last.
    before_first_us and after_last_us (with their classes) are the host's recorded time outside of the span, None for operations.
    ``items`` are the largest causes; items_left_out counts the others. ``causes`` (of the span) are the largest with the ranges put
    together, as the verdict adds them up. ``operators_recorded``: the launching processes have rows of operators or Python frames; without
    them ``between_ops`` is all of the host's time that no call fills. ``worth`` has what changes would be worth to the units of the
    run, of which worth_units were replayed; ``unit`` is the name of the operation whose calls they are (or ``ProfilerStep``), ``unit_kind`` what
    one is: step, call (a range tells it apart) or iteration (a pattern of few kernels).
    """

    device: int
    owner: str
    window: str
    span_us: float
    classes: dict[str, float]
    drained_by: dict[str, float]
    launch_latency_limit_us: float
    before_first_us: float | None
    after_last_us: float | None
    before_first: dict[str, float]
    after_last: dict[str, float]
    items: list[LedgerItemRow]
    items_left_out: int
    worth: list[WorthRow]
    worth_units: int
    unit: str = ""
    unit_kind: str = ""
    causes: list[LedgerItemRow] = field(default_factory=list)
    operators_recorded: bool = True


@record(frozen=True)
class Evidence:
    """A row of the trace that shows a finding; at_us counts from the trace's start, as viewers do."""

    what: str
    at_us: float
    dur_us: float | None
    note: str = ""


@record(frozen=True)
class SubjectOf:
    """What a finding is about, typed: ``kind`` is trace, device, operation, kernel, range or api; an unset field means all of its kind."""

    kind: str
    device: int | None = None
    owner: str = ""
    stream: int | None = None
    name: str = ""


@record(frozen=True)
class FindingRow:
    """Something a reader should know, with its numbers (each with its threshold where it has one).

    ``subject`` and ``message`` are for people; ``subject_of``, ``code`` (which message of the rule) and ``params`` (what is in it; times in ns, as
    ``_ns`` says) are for programs. ``cost_us`` is the device time that the cause took from ``window`` ("span", or an operation), ``cost_share``
    its part of the window, ``worth`` the part of the period that goes when the cause goes; None where there is none.
    """

    rule: str
    title: str
    severity: Severity
    grade: str
    subject: str
    message: str
    numbers: dict[str, float | int | str | None]
    evidence: list[Evidence]
    remedy: list[str]
    code: str = ""
    params: dict[str, float | int | str | None] = field(default_factory=dict)
    subject_of: SubjectOf = field(default_factory=lambda: SubjectOf("trace"))
    cost_us: float | None = None
    cost_share: float | None = None
    window: str | None = None
    worth: float | None = None


@record(frozen=True)
class Abstention:
    """Something that could not be judged, and why."""

    rule: str
    reason: str


@record(frozen=True)
class ReportData:
    """A whole report. ``capture`` is the trace's sidecar as it was read, None without one.

    ``units`` are what a comparison needs, kept with the samples. A page with charts also has ``figures``, made on demand and left out of JSON.
    """

    schema: str
    version: str
    verdict: Verdict
    trace: TraceSummary
    clock: Clock
    coverage: Coverage
    devices: list[DeviceRow]
    streams: list[StreamRow]
    threads: list[ThreadRow]
    kernels: list[KernelRow]
    copies: list[KernelRow]
    ops: list[OpRow]
    idle: list[IdleRow]
    ledger: list[LedgerRow]
    steps: list[StepRow]
    findings: list[FindingRow]
    abstentions: list[Abstention]
    thresholds: dict[str, float]
    capture: Sidecar | None = None
    second_opinion: SecondOpinion | None = None
    figures: Figures | None = field(default=None, metadata={"json": False})
    units: list[UnitRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values, in the layout of the JSON report."""
        values: dict[str, Any] = plain(replace(self, figures=None))
        del values["figures"]
        for ledger in values["ledger"]:
            ledger["worth"] = [{k: v for k, v in row.items() if v is not None} for row in ledger["worth"]]
        return values
