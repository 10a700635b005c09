"""The traces of one job, rank by rank: what each device did, its queue verdict, HTA's numbers, who is late, and who waits for whom."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

from traceanalyzer import number_text
from traceanalyzer._version import __version__
from traceanalyzer.analysis.breakdown import Breakdown, breakdowns
from traceanalyzer.analysis.clocks import ClockState
from traceanalyzer.analysis.collectives import (
    CommunicationWaits,
    NameWaits,
    NoWaits,
    RankCollectives,
    Unjudged,
    collectives_of,
    communication_waits,
)
from traceanalyzer.analysis.ledger import BUSY, DeviceLedger
from traceanalyzer.analysis.pipeline import Analysis
from traceanalyzer.analysis.ranks import STRAGGLER_SHARE, RankTimes, stragglers
from traceanalyzer.peers.hta import HtaResult
from traceanalyzer.report.model import ReportData

SCHEMA = "traceanalyzer.ranks/1"
MISSING_SHOWN = 64
WAITING_SHARE = 0.05
"""Below this part of the time in collectives, waiting is what the ranks' jitter makes."""
_IN_NAME = re.compile(r"(?i)(?:rank|worker)[-_ ]?(\d{1,7})")


@dataclass(frozen=True)
class HtaNumbers:
    """HTA's numbers for the rank, as it is shipped; ``error`` is why there are none. Differences: docs/second-opinion.md."""

    error: str = ""
    span_us: float | None = None
    idle_us: float | None = None
    compute_us: float | None = None
    non_compute_us: float | None = None
    overlap_percent: float | None = None


@dataclass(frozen=True)
class RankRow:
    """One device of one rank's trace. ``rank_from``: distributedInfo, file name, or empty where neither tells.

    ``busy_us = compute_us + exposed_communication_us + exposed_copy_us``: communication are kernels of NCCL, RCCL and the
    like by name, exposed what no compute kernel covers, copies what no kernel covers. ``overlap_share``: share of the
    communication that compute covers, None without any. ``ledger``: its span by the classes of the time ledger (docs/ledger.md),
    ``idle`` in place of the causes where host and device clocks disagree. ``straggler``: why the others wait for this rank, empty
    if they don't.
    """

    rank: int | None
    rank_from: str
    file: str
    device: int
    owner: str
    span_us: float
    busy_us: float
    idle_us: float
    ledger: dict[str, float]
    compute_us: float
    communication_us: float
    copy_us: float
    exposed_communication_us: float
    exposed_copy_us: float
    overlap_share: float | None
    kernels: int
    communication_kernels: int
    queue: str
    grade: str | None
    queue_reason: str
    verdict: str
    headline: str
    straggler: str
    hta: HtaNumbers | None


@dataclass(frozen=True)
class RankWaits:
    """One rank in the collectives that all ranks ran: ``wait_us`` until the last rank had joined, ``transfer_us`` the rest.

    ``caused_us``: what all other ranks together waited for this one, in the ``last`` collectives that it joined last.
    ``waits_for_us``: of its own waiting, the part for each rank that it waited for.
    """

    rank: int
    wait_us: float
    transfer_us: float
    caused_us: float
    last: int
    waits_for_us: dict[int, float]


@dataclass(frozen=True)
class CollectiveWaits:
    """Collectives of one kernel name: how many, what all ranks together waited in them, and the rank that they mostly waited for.

    That rank joined ``last`` of them last, and caused ``caused_us`` of the waiting.
    """

    name: str
    collectives: int
    wait_us: float
    rank: int
    last: int
    caused_us: float


class OfRank(Protocol):
    """Whatever belongs to a rank and a file."""

    @property
    def rank(self) -> int | None: ...  # noqa: D102
    @property
    def file(self) -> str: ...  # noqa: D102


@dataclass(frozen=True)
class RanksCommunication:
    """Who waits in communication for whom, or the code of the reason why that cannot be told (``reason`` is not empty then).

    ``collectives`` were matched over the ranks by their order and name. Clocks of the hosts are aligned by the collectives'
    ends, which then agree within ``spread_us`` in nine of ten. ``reason_ranks`` are the ranks a reason speaks of. ``names`` splits the
    waiting by collective, the largest first.
    """

    collectives: int
    spread_us: float | None
    ranks: list[RankWaits]
    reason: str = ""
    reason_ranks: list[int] = field(default_factory=list)
    names: list[CollectiveWaits] = field(default_factory=list)


@dataclass(frozen=True)
class LostTrace:
    """A file of the folder that gives no row, and why; ``rank`` where the file's name tells it."""

    file: str
    reason: str
    rank: int | None = None


@dataclass(frozen=True)
class RanksData:
    """A whole report on a folder. ``missing`` are ranks below ``world_size`` (or the highest found) without a file.

    ``hta``: its name and version, or the line that says why it is not there. ``notes``: what else a reader should know.
    """

    schema: str
    version: str
    folder: str
    headline: str
    world_size: int | None
    ranks: list[RankRow]
    lost: list[LostTrace]
    missing: list[int]
    notes: list[str] = field(default_factory=list)
    hta: str = ""
    communication: RanksCommunication | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return asdict(self)


def rank_of(recorded: int | None, file: str) -> tuple[int | None, str]:
    """Return the rank of a trace and where it was found."""
    if recorded is not None:
        return recorded, "distributedInfo"
    match = _IN_NAME.search(file)
    return (int(match[1]), "file name") if match else (None, "")


def rank_rows(analysis: Analysis, report: ReportData, file: str, hta: HtaResult | None) -> list[RankRow]:
    """Return one row per device of a trace; none for a trace without device rows."""
    rank, source = rank_of(analysis.trace.meta.rank, file)
    found = breakdowns(analysis.trace)
    numbers = None if hta is None else _hta_numbers(hta, len(found))
    by_device = {row.device: row for row in analysis.devices}
    ledgers = {ledger.device: _classes(ledger, analysis) for ledger in analysis.ledgers}
    kernels = Counter[int]()
    lanes = [lane.device for lane in analysis.trace.lanes]
    for lane, kind in zip(
        analysis.trace.activities.lane.tolist(), analysis.trace.activities.kind.tolist(), strict=True
    ):
        kernels[lanes[lane]] += kind == 1
    return [
        _row(
            one,
            analysis,
            report,
            rank,
            source,
            file,
            numbers,
            kernels[one.device],
            by_device[one.device].queue,
            ledgers.get(one.device, {}),
        )
        for one in found
    ]


def _row(
    one: Breakdown, analysis: Analysis, report: ReportData, rank: int | None, source: str, file: str,
    numbers: HtaNumbers | None, kernels: int, queue: Any, ledger: dict[str, float],
) -> RankRow:  # fmt: skip
    device = analysis.trace.devices[one.device]
    return RankRow(
        rank=rank,
        rank_from=source,
        file=file,
        device=device.number,
        owner=device.owner,
        span_us=_us(one.span_ns),
        busy_us=_us(one.busy_ns),
        idle_us=_us(one.idle_ns),
        ledger=ledger,
        compute_us=_us(one.compute_ns),
        communication_us=_us(one.communication_ns),
        copy_us=_us(one.copy_ns),
        exposed_communication_us=_us(one.exposed_communication_ns),
        exposed_copy_us=_us(one.exposed_copy_ns),
        overlap_share=None if one.overlap_share is None else round(one.overlap_share, 6),
        kernels=kernels,
        communication_kernels=one.communication_kernels,
        queue=str(queue.state),
        grade=str(queue.grade) if queue.grade else None,
        queue_reason=queue.reason,
        verdict=report.verdict.status,
        headline=report.verdict.headline,
        straggler="",
        hta=numbers,
    )


def _classes(ledger: DeviceLedger, analysis: Analysis) -> dict[str, float]:
    """Return microseconds by class; idle time as one where host and device clocks disagree and no cause is known."""
    found = ledger.classes_ns()
    if analysis.clocks.state is ClockState.DISAGREE:
        busy = {c.label: _us(ns) for c, ns in found.items() if c in BUSY}
        return busy | {"idle": _us(sum(ns for c, ns in found.items() if c not in BUSY))}
    return {c.label: _us(ns) for c, ns in found.items()}


def rank_collectives(analysis: Analysis, file: str) -> list[RankCollectives]:
    """Return what is kept of a trace to tell who waits for whom; none where its rank is not known."""
    rank, _ = rank_of(analysis.trace.meta.rank, file)
    return [] if rank is None else [replace(k, file=file) for k in collectives_of(analysis.trace, rank)]


def communication(rows: Sequence[OfRank], kept: Sequence[RankCollectives]) -> RanksCommunication:
    """Return who waited for whom in the collectives of a job, or why that cannot be told."""
    ordered = sorted(kept, key=lambda k: k.rank)
    files = Counter(rank for rank, _ in {(r.rank, r.file) for r in rows})
    twice = sorted(rank for rank, n in files.items() if rank is not None and n > 1)
    devices = Counter(k.rank for k in ordered)
    without = sorted({r.rank for r in rows if r.rank is not None} - set(devices))
    several = sorted(rank for rank, n in devices.items() if n > 1)
    found: CommunicationWaits | Unjudged
    if len(files) < 2:
        found = Unjudged(NoWaits.ONE_RANK)
    elif None in files:
        found = Unjudged(NoWaits.UNKNOWN_RANKS)
    elif twice:
        found = Unjudged(NoWaits.SEVERAL_FILES, twice)
    elif without:
        found = Unjudged(NoWaits.NO_COLLECTIVES, without)
    elif several:
        found = Unjudged(NoWaits.SEVERAL_DEVICES, several)
    else:
        found = communication_waits(ordered)
    if isinstance(found, Unjudged):
        return RanksCommunication(0, _us(found.ns) if found.ns else None, [], str(found.reason), found.ranks)
    ranks = [
        RankWaits(
            rank, _us(int(found.wait_ns[n])), _us(int(found.transfer_ns[n])), _us(int(found.caused_ns[n])), int(found.last[n]),
            {found.ranks[q]: _us(int(ns)) for q, ns in enumerate(found.waits_ns[n].tolist()) if ns},
        )
        for n, rank in enumerate(found.ranks)
    ]  # fmt: skip
    return RanksCommunication(found.collectives, _us(found.spread_ns), ranks, names=_names(found))


def _names(found: CommunicationWaits) -> list[CollectiveWaits]:
    groups: dict[str, list[NameWaits]] = {}
    for one in found.by_name:
        groups.setdefault(one.name, []).append(one)
    rows = [
        CollectiveWaits(
            name, sum(w.last for w in mine), _us(sum(w.caused_ns for w in mine)), found.ranks[mine[0].rank], mine[0].last, _us(mine[0].caused_ns)
        )
        for name, mine in groups.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda r: -r.wait_us)


def _hta_numbers(found: HtaResult, devices: int) -> HtaNumbers:
    if found.error:
        return HtaNumbers(error=found.error)
    if devices > 1:
        return HtaNumbers(error=f"it takes the {devices} devices of the trace for one")
    shipped = found.figures["shipped"]
    idle, compute, span = shipped.idle_us, shipped.compute_us, shipped.span_us
    rest = None if idle is None or compute is None or span is None else round(span - idle - compute, 6)
    reason = shipped.failed.get("temporal", "")
    return HtaNumbers(
        f"it gives no breakdown ({reason.rstrip(': ')})" if reason else "", span, idle, compute, rest, shipped.overlap_percent
    )  # fmt: skip


def copies(rows: Iterable[RankRow]) -> dict[str, str]:
    """Return each file that has the rows of another file of its rank, to the nanosecond, with the name of that other."""
    files: dict[str, list[RankRow]] = {}
    for r in rows:
        files.setdefault(r.file, []).append(replace(r, file="", rank_from="", hta=None))
    found: dict[str, str] = {}
    first: dict[int, list[str]] = {}
    for file, mine in files.items():
        rank = mine[0].rank
        if rank is None:
            continue
        same = next((other for other in first.get(rank, []) if files[other] == mine), None)
        if same is None:
            first.setdefault(rank, []).append(file)
        else:
            found[file] = same
    return found


def ranks_report(
    folder: str, rows: Iterable[RankRow], lost: list[LostTrace], world_size: int | None, hta: str,
    limit: float = STRAGGLER_SHARE, collectives: Sequence[RankCollectives] = (),
) -> RanksData:  # fmt: skip
    """Return the report on a folder's rows, in the order of their ranks; rows without a rank come last, by file.

    Of files that are copies of one another one counts.
    """
    ordered = sorted(rows, key=lambda r: (r.rank is None, r.rank or 0, r.file, r.device))
    again = copies(ordered)
    ordered = [r for r in ordered if r.file not in again]
    collectives = [k for k in collectives if k.file not in again]
    times = [
        RankTimes(*(round(us * 1000) for us in (r.span_us, r.compute_us, r.idle_us, r.exposed_communication_us)))
        for r in ordered
    ]
    # traces that nothing ties to ranks may be of different jobs: none of them waits for another
    of_one_job = all(r.rank is not None for r in ordered)
    late = stragglers(times, limit) if of_one_job else [""] * len(ordered)
    ordered = [replace(r, straggler=why) for r, why in zip(ordered, late, strict=True)]
    claimed = [*(r.rank for r in ordered), *(file.rank for file in lost)]
    known = {rank for rank in claimed if rank is not None}
    expected = world_size if world_size is not None else max(known, default=-1) + 1
    missing = sorted(set(range(min(expected, 1 << 16))) - known) if known else []
    notes = []
    files = Counter(rank for rank, _ in {(r.rank, r.file) for r in ordered} if rank is not None)
    notes += [f"{file} is a copy of {other}: left out" for file, other in sorted(again.items())]
    notes += [f"rank {rank} is in {n} files with different numbers" for rank, n in sorted(files.items()) if n > 1]
    if unknown := len({r.file for r in ordered if r.rank is None}):
        notes.append(
            f"{_number(unknown, 'file')} without a rank, neither in distributedInfo nor in the file name (rank3, worker-3): "
            "who is late was not judged"
        )
    if len(ordered) == 1:
        notes.append("one rank alone: who waits for whom cannot be judged")
    waits = communication(ordered, collectives)
    return RanksData(
        SCHEMA, __version__, folder, _headline(ordered, lost, missing, waits), world_size, ordered, lost, missing, notes, hta,
        waits,
    )  # fmt: skip


def _headline(rows: list[RankRow], lost: list[LostTrace], missing: list[int], communication: RanksCommunication) -> str:
    late = [r for r in rows if r.straggler]
    parts = []
    if late:
        worst = max(late, key=lambda r: r.span_us - r.exposed_communication_us)
        parts.append(
            f"{'rank ' + str(worst.rank) if worst.rank is not None else worst.file} is late: {worst.straggler}."
        )
    waited = sum(r.wait_us for r in communication.ranks)
    whole = waited + sum(r.transfer_us for r in communication.ranks)
    if waited > WAITING_SHARE * whole:
        cause = max(communication.ranks, key=lambda r: r.caused_us)
        parts.append(
            f"Of the time in collectives {number_text.percent(waited / whole)} is waiting, {number_text.percent(cause.caused_us / waited)} of it for rank {cause.rank}."
        )
    starved = [r for r in rows if r.queue == "cpu-bound"]
    if starved:
        parts.append(f"CPU-bound: {len(starved)} of {_number(len(rows), 'rank')}, the device waits for the host.")
    if missing or lost:
        parts.append(
            f"Incomplete: {_number(len(missing), 'rank')} without a trace, {_number(len(lost), 'file')} that cannot be used."
        )
    return " ".join(parts) or f"No rank of {len(rows)} differs from the others."


def _number(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _us(ns: int) -> float:
    return round(ns / 1000, 6)
