"""Units of a run as a report keeps them for comparisons; the field names are those of the JSON report."""

from __future__ import annotations

from dataclasses import field

from traceanalyzer.record import record


@record(frozen=True)
class UnitSeries:
    """One time of a unit: ``n`` values in all, their median, at most 256 of them in order, and their lag-1 autocorrelation.

    Of over 256 values ``lag_one`` is the larger of that and of what the values under the median say, which long values do not hide.
    """

    n: int
    p50_us: float | None
    samples_us: list[float]
    lag_one: float | None


@record(frozen=True)
class UnitWork:
    """One kernel, copy or fill of a unit, over all repeats. ``time_us`` is exclusive: what it adds on its stream."""

    name: str
    count: int
    time_us: float


@record(frozen=True)
class UnitLedgerRow:
    """Where the time of one device went in the repeat of median length of a unit.

    ``classes_us`` are those of the ledger and add up to the median; ``kernels_us`` cuts the class compute up by kernel name, exactly.
    ``decides``: the device that the unit keeps busy longest; busy time, kernel times and work of the unit are that device's.
    """

    device: int
    owner: str
    decides: bool
    classes_us: dict[str, float]
    kernels_us: dict[str, float]


@record(frozen=True)
class UnitRow:
    """What the run repeats, as comparisons take it; the last is the whole trace.

    ``method``: capture annotation, range, named range, ProfilerStep, step mark (from one such range to the next), repeating
    launches, graph replay, whole trace. ``repeats`` that have device work; ``coverage``: share of the device's exclusive time in
    it. ``period``: first device row to the first of the next repeat. ``duration``: begin of the host's window (else of the first
    row) to the later of its end and the last row's. ``busy``: union of the rows. ``self_time`` sums the kernels, ``exclusive``
    counts their overlap on one stream once. ``launches``: launch calls, median per repeat. ``work``: the 400 largest by time;
    ``operators``: how often the host began each of the framework's operators, over all repeats. ``period_ledgers``,
    ``duration_ledgers``: a ledger per device, of the repeat of median period and of that of median duration.
    """

    name: str
    method: str
    repeats: int
    coverage: float
    kernels_per_repeat: float
    launches_per_repeat: float
    period: UnitSeries
    duration: UnitSeries
    busy: UnitSeries
    self_time: UnitSeries
    exclusive: UnitSeries
    work: list[UnitWork] = field(default_factory=list)
    operators: dict[str, int] = field(default_factory=dict)
    period_ledgers: list[UnitLedgerRow] = field(default_factory=list)
    duration_ledgers: list[UnitLedgerRow] = field(default_factory=list)
