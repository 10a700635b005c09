"""What a fleet is asked: the answers as frozen data, in the layout of the JSON output. Times are nanoseconds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

SCHEMA = "traceanalyzer.fleet.show/1"


@dataclass(frozen=True)
class LimitCount:
    """How many devices a family limits, and what it cost them: the median of its shares, and on the device where it cost most.

    ``limit`` is a family of the ledger, device-busy, unknown-time or clocks. No time is added over devices.
    """

    limit: str
    devices: int
    runs: int
    median_share: float | None
    worst_share: float | None
    worst_file: str
    worst_device: int
    worst_class: str | None
    worst_name: str | None


@dataclass(frozen=True)
class LateRank:
    """A rank whose time outside of collectives is ``over`` above the job's median; ``part`` is compute or idle, whichever grew more."""

    job: str
    rank: int
    host: str | None
    file: str
    over: float
    part: str


@dataclass(frozen=True)
class LateCollective:
    """The rank that the others of a job wait for most in a collective of this name: what they waited together, how often it was last."""

    job: str
    rank: int
    host: str | None
    name: str
    caused_ns: int
    last: int
    collectives: int
    waiting_share: float


@dataclass(frozen=True)
class JobRanks:
    """One job of several ranks: who is late, and where the waiting in collectives is; ``reason`` is why that cannot be told, as in `ranks`."""

    job: str
    ranks: int
    world_size: int | None
    collectives: int
    reason: str = ""


@dataclass(frozen=True)
class Inflated:
    """An operation or kernel for which an event pair reads most over its self-time; ``kind`` is operation or kernel.

    One per name and job: the numbers are those of the worst run of the job's ``runs`` that have it.
    """

    kind: str
    name: str
    file: str
    device: int | None
    count: int
    self_time_ns: int | None
    event_pair_ns: int | None
    inflation: float
    runs: int


@dataclass(frozen=True)
class NotJudged:
    """Traces that give no verdict for one reason: ``kind`` is fault (no run) or verdict (cannot-judge)."""

    kind: str
    code: str
    traces: int
    example: str


@dataclass(frozen=True)
class KernelOver:
    """One kernel on one kind of device at one commit, by configuration: medians over the runs, which are the unit of chance.

    ``low_ns`` and ``high_ns`` are the smallest and the largest median of a run.
    """

    name: str
    config: str | None
    device_name: str
    commit: str | None
    runs: int
    count: int
    p50_ns: int
    low_ns: int
    high_ns: int
    exclusive_p50_ns: int | None
    inflation: float | None


@dataclass(frozen=True)
class FleetAnswers:
    """All answers on a fleet; ``verdicts`` counts runs by verdict. Lists of late ranks, collectives, inflation and kernels are cut to the rows asked for;
    ``left_out`` counts what is not in the first two."""

    schema: str
    version: str
    results: str
    runs: int
    faults: int
    jobs: int
    verdicts: dict[str, int]
    elapsed_ns: int
    cpu_ns: int
    peak_memory_bytes: int
    bytes_read: int
    left_out: dict[str, int]
    limits: list[LimitCount]
    job_ranks: list[JobRanks]
    late_ranks: list[LateRank]
    late_collectives: list[LateCollective]
    inflated: list[Inflated]
    not_judged: list[NotJudged]
    kernel: str | None = None
    kernels: list[KernelOver] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the answers as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class QueryResult:
    """What a query gave: column names and rows of plain values; ``cut`` where there were more rows than were taken."""

    columns: list[str]
    rows: list[list[Any]]
    cut: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain values."""
        return asdict(self)
