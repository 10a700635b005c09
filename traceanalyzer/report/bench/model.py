"""The result of a bench: one operator, every implementation, dtype and direction. Schema ``traceanalyzer.bench/1``.

Frozen values as the JSON has them; docs/bench.md describes them. Times are microseconds per call as ``_us``; ``None``
where a value does not exist, and the field next to it says why. The two answers stay two: *device* (how fast is the kernel)
and *end-to-end* (what does a call cost).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from traceanalyzer.report.model import Verdict
from traceanalyzer.trace.sidecar import ClockSample, DeviceFacts

SCHEMA = "traceanalyzer.bench/1"

Column = Literal["device", "end-to-end"]
Outcome = Literal["faster", "slower", "same", "undecided"]


def row_label(direction: str, dtype: str, axes: Sequence[tuple[str, str]], implementation: str) -> str:
    """Return ``forward fp32 triton``, or ``n=1024 dtype=fp16 softmax`` for named axes."""
    return " ".join(p for p in (direction, dtype, *(f"{k}={v}" for k, v in axes), implementation) if p)


@dataclass(frozen=True)
class Reading:
    """The median of one protocol's readings with its order-statistic 95 % interval (None under six of them).

    ``reason`` says why there is none.
    """

    protocol: str
    p50_us: float | None
    ci95_us: tuple[float, float] | None
    n: int
    reason: str = ""


NOT_COLD = Reading("do_bench", None, None, 0, "do_bench was not asked for")


@dataclass(frozen=True)
class SpeedUp:
    """The alternative's time over this row's, in one column: above 1 this row is the faster.

    ``ci95`` and ``outcome`` as in a comparison (docs/compare.md): faster and slower need the whole interval beyond 1 %.
    ``counts`` is False where the result of either is wrong: the number is then struck through and wins nothing.
    """

    against: str
    column: Column
    ratio: float | None
    ci95: tuple[float, float] | None
    outcome: Outcome | None
    counts: bool
    reason: str = ""


@dataclass(frozen=True)
class Result:
    """The result against the reference at higher precision, in the same run. ``passed`` is None where it was not compared.

    ``share_of_allowed``: the largest error as a share of what the tolerance allows there, up to 1 in a right result.
    """

    passed: bool | None
    max_abs_error: float | None
    max_rel_error: float | None
    reason: str = ""
    share_of_allowed: float | None = None


@dataclass(frozen=True)
class BenchRow:
    """One implementation of one case, from one capture session on a device of kind ``device_kind``.

    A case is a dtype and direction of a kernel, or values of ``axes``. ``missing`` says why there are no numbers, or that
    the session ended early (numbers until then are kept). ``device`` is kernel time with the caches as the calls leave them,
    ``cold`` behind a cleared L2; ``end_to_end`` wall time per call of a saturated queue. ``gbytes_per_s`` and
    ``gflops_per_s`` are the work stated for the operator over device time, ``share_of_peak_bandwidth`` the former as a share
    of what the device's memory can do. ``peak_memory_bytes``: the most the framework held during ordinary calls.
    ``verdict`` is that of the trace, ``queue`` and ``grade`` the operation's there; None and ``unjudged`` without a device
    record. ``agrees`` and ``agreement``: self-time against the unrolled graph. ``clock_samples`` were taken while calls were
    running, ``sm_clock_mhz`` is their median. ``folder`` holds trace and sidecar, relative to the table's own; None where
    they were not kept.
    """

    device_kind: str
    dtype: str
    direction: str
    implementation: str
    operation: str
    missing: str
    missing_kind: str
    device: Reading
    end_to_end: Reading
    speed_ups: list[SpeedUp]
    result: Result
    peak_memory_bytes: int | None
    bytes_moved: int | None
    flops: int | None
    gbytes_per_s: float | None
    gflops_per_s: float | None
    steady: bool | None
    steady_reason: str
    agrees: bool | None
    agreement: str
    verdict: Verdict | None
    queue: str
    grade: str | None
    unjudged: str
    sm_clock_mhz: int | None
    folder: str | None
    notes: list[str] = field(default_factory=list)
    axes: tuple[tuple[str, str], ...] = ()
    cold: Reading = NOT_COLD
    share_of_peak_bandwidth: float | None = None
    clock_samples: list[ClockSample] = field(default_factory=list)

    @property
    def label(self) -> str:
        """What tells this row from the others: direction and dtype, or the values of the axes, and the implementation."""
        return row_label(self.direction, self.dtype, self.axes, self.implementation)

    @property
    def case(self) -> str:
        """The label without the implementation: rows of one case are compared."""
        return row_label(self.direction, self.dtype, self.axes, "")

    @property
    def measured(self) -> bool:
        """Whether the row has any time."""
        return self.device.p50_us is not None or self.end_to_end.p50_us is not None


@dataclass(frozen=True)
class Loss:
    """Where the measured implementation is not the fastest: its speed-up over ``against`` is below 1.

    ``outcome`` undecided: the interval reaches to 1 or beyond.
    """

    direction: str
    dtype: str
    against: str
    ratio: float
    ci95: tuple[float, float] | None
    outcome: Outcome
    case: str = ""


QuestionKind = Literal["bytes_not_time", "more_than_bytes", "above_peak", "from_cache"]


@dataclass(frozen=True)
class Question:
    """What a reader of the numbers should ask: they do not fit to what the operator is.

    ``bytes_not_time``: row moves ``expected`` times the bytes of ``other`` and takes ``found`` times its time, which is more;
    ``more_than_bytes``: less. ``above_peak``: ``found`` times the device's peak bandwidth, though the bytes exceed its L2;
    ``from_cache``: above the peak, and the bytes fit into L2. ``expected`` is 1 for the last two.
    """

    kind: QuestionKind
    row: str
    other: str
    expected: float
    found: float


@dataclass(frozen=True)
class BenchTable:
    """All rows, in the order of a table: direction, dtype, then ``implementation`` and the alternatives.

    ``column`` is the one that speed-ups compare: device, or end-to-end where the device has no clock of its own.
    ``losses``: where ``implementation`` is slower than an alternative; ``wrong``: labels of rows whose result is wrong.
    """

    schema: str
    version: str
    operator: str
    summary: str
    preset: str
    sizes: dict[str, str]
    implementation: str
    against: list[str]
    device: DeviceFacts
    versions: dict[str, str]
    column: Column
    rows: list[BenchRow]
    losses: list[Loss]
    wrong: list[str]
    notes: list[str]
    questions: list[Question] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, in the layout of the JSON."""
        return asdict(self)
