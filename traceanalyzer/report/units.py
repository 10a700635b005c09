"""What a report measures: kernels and operations, one frozen row each; see :mod:`traceanalyzer.report.model`."""

from __future__ import annotations

from dataclasses import dataclass, field

from traceanalyzer.record import record


@dataclass(frozen=True, slots=True)
class KernelRow:
    """One kernel name (or copy, fill) on one device. ``variants``: the same columns per launch configuration, if several.

    ``device``, ``owner`` and ``rank`` say where it ran. ``exclusive_p50_us`` is the median of what a run adds to its
    predecessors' busy time: quote it where rows overlap. ``event_reading_absent`` is the code of why there is no reading.

    ``first_us``: its first start, from the trace's start. Kept for comparisons when asked for: ``samples_us``,
    self-times in order of start (evenly thinned where fewer than ``count``), with ``lag_one``, the autocorrelation of all of them.
    """

    name: str
    short_name: str
    count: int
    total_us: float
    mean_us: float
    min_us: float
    p50_us: float
    p90_us: float
    max_us: float
    mad_us: float
    p50_ci95_us: tuple[float, float] | None
    share: float
    linked: int
    starved: int
    starved_after_sync: int
    in_graph: int
    launch_latency_p50_us: float | None
    dispatch_p50_us: float | None
    event_reading_us: float | None
    inflation: float | None
    queue_depth_p50: float | None
    queue: str
    grade: str | None
    queue_reason: str
    config: str | None
    device: int | None = None
    owner: str = ""
    rank: int | None = None
    exclusive_p50_us: float | None = None
    event_reading_absent: str = ""
    variants: list[KernelRow] = field(default_factory=list)
    first_us: float | None = None
    samples_us: list[float] = field(default_factory=list)
    lag_one: float | None = None


@dataclass(frozen=True, slots=True)
class OpRow:
    """One call of the thing being measured; ``method`` and ``how`` say how calls were told apart, ``certainty`` how surely.

    ``iterations`` counts calls, ``iterations_without_work`` those that own no device row. Cache clears stand in
    ``clear_p50_us`` and nowhere else. ``readings`` are closed forms of the timing model, ``readings_replayed`` the
    trace's own times through its queue, ``readings_measured`` what a capture measured (p50; empty without a sidecar),
    ``readings_predicted`` the closed forms for exactly those loops, from unprofiled dispatch and calibrated symbols;
    ``readings_absent`` is the code of why a reading is null. ``device`` and ``rank`` are set where the trace has several;
    ``launches_left_out`` belong to no call. ``symbols`` is what they were made from (us), ``symbol_sources`` how each was found
    (for people), ``symbols_seen`` those of the machine that this very run shows or that were given. ``samples_us`` (self-times of
    the ``samples_of`` calls that have work), ``dispatch_samples_us`` and ``lag_one`` as in KernelRow.
    """

    name: str
    method: str
    how: str
    certainty: str
    iterations: int
    iterations_without_work: int
    launches_per_iteration: float
    kernels_per_iteration: float
    self_time_p50_us: float | None
    self_time_ci95_us: tuple[float, float] | None
    busy_p50_us: float | None
    span_p50_us: float | None
    clear_p50_us: float | None
    period_p50_us: float | None
    dispatch_p50_us: float | None
    readings: dict[str, float | None]
    readings_replayed: dict[str, float | None]
    readings_measured: dict[str, float | None]
    readings_predicted: dict[str, float | None]
    symbols: dict[str, float | list[float]]
    symbol_sources: dict[str, str]
    no_ladder: str
    queue: str
    grade: str | None
    readings_absent: dict[str, str] = field(default_factory=dict)
    symbols_seen: list[str] = field(default_factory=list)
    device: int | None = None
    rank: int | None = None
    short_name: str = ""
    launches_left_out: int = 0
    samples_of: int = 0
    samples_us: list[float] = field(default_factory=list)
    dispatch_samples_us: list[float] = field(default_factory=list)
    lag_one: float | None = None


@record(frozen=True)
class SlowStep:
    """The slowest step: its place among the steps (from 0), start from the trace's start, length, and how far over the median step.

    ``cause`` is the class of the ledger of which it has most more than the median step (``cause_us`` more), ``outside`` where
    that lies outside of the device's span, empty where the two are within 1 %; ``cause_name`` and ``cause_within`` as in the ledger.
    """

    index: int
    at_us: float
    us: float
    over_p50_us: float
    cause: str
    cause_name: str
    cause_within: str
    cause_us: float | None


@record(frozen=True)
class StepRow:
    """Steps of one kind: their lengths on the host, waits included, as XProf and the TensorBoard plug-in have them.

    ``method`` says what a step is: ProfilerStep, a range, or the launches that repeat (from first launch to first launch).
    ``wait_p50_us`` is the time in it in which its thread waited for the device, ``busy_p50_us`` that in which ``device`` worked.
    Of the step's own time ``before_first_p50_us`` lies before the first device row in it and ``after_last_p50_us`` after the last one.
    ``rank`` is set where several ranks have steps. ``steps_us`` are lengths in order of time, evenly thinned over 2,000.
    """

    name: str
    method: str
    device: int | None
    owner: str
    rank: int | None
    n: int
    p50_us: float
    p50_ci95_us: tuple[float, float] | None
    mean_us: float
    min_us: float
    max_us: float
    wait_p50_us: float
    busy_p50_us: float | None
    before_first_p50_us: float | None
    after_last_p50_us: float | None
    slowest: SlowStep
    steps_us: list[float] = field(default_factory=list)
