"""Frozen values of a comparison; the field names are those of the JSON comparison, version 1 (docs/schema.md).

``_us`` values are microseconds, ``None`` where a value does not exist; ratios are head over base, below 1 where the
head is faster.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from traceanalyzer.report.compare.unit_model import UnitComparison
from traceanalyzer.report.model import Abstention, DeviceRow, FindingRow, TraceSummary, Verdict

COMPARE_SCHEMA = "traceanalyzer.compare/1"

CompareStatus = Literal["faster", "slower", "same", "undecided", "cannot-judge"]
RowVerdict = Literal["FASTER", "SLOWER", "SAME", "UNDECIDED"]
RowStatus = Literal["matched", "changed", "new", "gone"]


@dataclass(frozen=True)
class CompareVerdict:
    """``headline`` is one sentence a reviewer can act on."""

    status: CompareStatus
    headline: str


@dataclass(frozen=True)
class RunRow:
    """One run of a side that is a folder: its medians of the compared unit (us), or the ``reason`` why it is left out.

    ``duration_us`` is what stands in for a period where a unit has too few repeats for one.
    """

    file: str
    used: bool
    reason: str = ""
    period_us: float | None = None
    duration_us: float | None = None
    busy_us: float | None = None
    self_us: float | None = None


@dataclass(frozen=True)
class SideSummary:
    """One side: the file, what its own report says, and the conditions it was measured under (by name, as far as known).

    ``source``: trace or report (a saved one). ``findings`` are the codes of its own report's findings, gravest first.
    ``kernels_left_out``: kernels beyond the thousand largest, which are not compared. ``runs``: of a folder, each file of it, and
    ``median_runs`` the one or two in the middle: the ledger is their mean; verdict, trace, devices and findings are those of the first of them.
    """

    name: str
    source: str
    verdict: Verdict
    trace: TraceSummary
    devices: list[DeviceRow]
    dispatch_p50_us: float | None
    conditions: dict[str, str]
    findings: list[str]
    kernels_left_out: int
    runs: list[RunRow] = field(default_factory=list)
    median_runs: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Condition:
    """A condition that differs. ``refuses``: no ratio is formed unless it is overridden; otherwise it is only marked."""

    what: str
    base: str
    head: str
    refuses: bool


@dataclass(frozen=True)
class ComparabilityFactor:
    """Whether one factor is shared: ``state`` same, differs or unknown; what each side has, where it is known."""

    factor: Literal["device", "versions", "work", "protocol", "clocks"]
    state: Literal["same", "differs", "unknown"]
    base: str
    head: str


@dataclass(frozen=True)
class RowComparison:
    """One piece of work on both sides. ``name`` is the base's (the head's where it is new), ``matched_by`` how they were paired.

    ``verdict`` is None where no ratio may be formed; ``reason`` says why, or why it is undecided. ``n_needed``: values per side after which
    the interval would be expected to decide. ``base_effective_n``: independent values the side is worth; ``block_bootstrap`` where
    dependence was found. ``base_samples_us``: at most 512 values in order.
    """

    name: str
    short_name: str
    head_name: str
    status: RowStatus
    matched_by: str
    base_p50_us: float | None
    head_p50_us: float | None
    ratio: float | None
    ratio_ci95: tuple[float, float] | None
    verdict: RowVerdict | None
    reason: str
    n_needed: int | None
    base_n: int | None
    head_n: int | None
    base_effective_n: float | None
    head_effective_n: float | None
    block_bootstrap: bool
    base_dispatch_p50_us: float | None
    head_dispatch_p50_us: float | None
    base_event_reading_us: float | None
    head_event_reading_us: float | None
    base_queue: str
    head_queue: str
    base_samples_us: list[float]
    head_samples_us: list[float]


@dataclass(frozen=True)
class OpComparison(RowComparison):
    """One operation on both sides.

    ``measure`` says what was compared: self-time, or a protocol that both captures measured end to end. ``base_readings`` are the
    ladder on one machine (latency, record, sync, gap and clear shared, so that dispatch and kernels alone tell the sides apart);
    protocols in ``measured`` were measured on both sides. ``winners`` per protocol; ``flips`` rank against the self-time and
    ``inversion`` says so in a sentence. ``base_dispatch_samples_us``: at most 512 values in order.
    """

    measure: str
    base_span_p50_us: float | None
    head_span_p50_us: float | None
    base_period_p50_us: float | None
    head_period_p50_us: float | None
    base_readings: dict[str, float | None] = field(default_factory=dict)
    head_readings: dict[str, float | None] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)
    winners: dict[str, str] = field(default_factory=dict)
    flips: list[str] = field(default_factory=list)
    inversion: str = ""
    base_dispatch_samples_us: list[float] = field(default_factory=list)
    head_dispatch_samples_us: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class KernelComparison(RowComparison):
    """One kernel in one launch configuration on both sides.

    ``grid`` is the base's configuration, ``head_grid`` the head's; ``status`` changed where they differ. ``base_total_us``: self-time in the file.
    """

    grid: str
    head_grid: str
    base_total_us: float | None
    head_total_us: float | None


@dataclass(frozen=True)
class ComparisonData:
    """A whole comparison of one base with one head.

    ``units`` are what was compared with what, each with its four ratios; ``metric`` (period, busy, self) is what the verdict and the gate
    speak of. ``basis`` says what ``geomean_ratio`` (with ``geomean_ci95``) was made of: units (of one: its ratio), operations (each alike),
    kernels (weighted by the base's time in them) or nothing.
    ``matched_share``: share of kernel time, of base and head, in kernels with a counterpart of the same configuration.
    ``losses`` names operations (or kernels, where there are none) that got slower. ``winners`` per protocol over all operations.
    ``comparability``: what both runs share, factor by factor.
    ``allowed_different``: differences were overridden. ``regression_pct``: by how many percent at least the worst operation got slower (the
    near end of its interval), None where nothing was judged.
    """

    schema: str
    version: str
    verdict: CompareVerdict
    base: SideSummary
    head: SideSummary
    ops: list[OpComparison]
    kernels: list[KernelComparison]
    basis: str
    geomean_ratio: float | None
    geomean_ci95: tuple[float, float] | None
    matched_share: tuple[float, float]
    losses: list[str]
    winners: dict[str, str]
    rank_inversion: bool
    differences: list[Condition]
    allowed_different: bool
    regression_pct: float | None
    findings: list[FindingRow]
    abstentions: list[Abstention]
    thresholds: dict[str, float]
    metric: str = ""
    units: list[UnitComparison] = field(default_factory=list)
    comparability: list[ComparabilityFactor] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values, in the layout of the JSON comparison."""
        return asdict(self)


@dataclass(frozen=True)
class Comparisons:
    """One base against several heads: a comparison each, in the order given."""

    schema: str
    version: str
    comparisons: list[ComparisonData]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparisons as plain values."""
        return asdict(self)
