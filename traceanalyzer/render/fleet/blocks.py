"""The answers on a fleet as blocks of cells, shared by every format for people."""

from __future__ import annotations

from traceanalyzer.render import format as show
from traceanalyzer.render.blocks import Block
from traceanalyzer.render.ledger import word
from traceanalyzer.render.ranks import REASONS
from traceanalyzer.report.fleet import FleetAnswers, Inflated, JobRanks, QueryResult

LIMITS = {
    "device-busy": "the device is busy", "unknown-time": "no cause is known", "clocks": "not known: clocks disagree", "dispatch": "host: dispatch",
    "pause": "single pauses", "waits": "host waits for the device", "data": "loading data", "code": "loading or compiling code", "memory": "allocation",
    "copies": "copies", "communication": "communication", "device": "gaps between kernels", "profiler": "the profiler",
}  # fmt: skip
"""What a limit is called, by code."""
LIMITS_TITLE = "What limits the runs"
CODES = {
    "timeout": "took longer than --timeout", "out_of_memory": "needs more than --memory", "killed": "its process was killed", "exited": "its process ended",
    "worker_lost": "its worker was lost", "internal_error": "a fault of traceanalyzer", "truncated": "the file is cut off", "empty_file": "the file is empty", "not_a_file": "no plain file",
    "cannot_open": "cannot be opened", "clocks_disagree": "host and device clocks disagree", "no_links": "no device row has its launch",
    "few_launches": "too few launches", "no_cause": "most idle time has no cause", "not_a_trace": "not the trace of a profiler",
}  # fmt: skip
"""What the codes mean that are not those of `report`."""


def headline(found: FleetAnswers) -> str:
    """Return what the results hold."""
    verdicts = ", ".join(f"{n:,} {status}" for status, n in found.verdicts.items())
    jobs = f"; {show.plural(found.jobs, 'job')} of several ranks" if found.jobs else ""
    return f"{found.results}: {show.plural(found.runs, 'run')}{f' ({verdicts})' if verdicts else ''}, {show.plural(found.faults, 'fault')}{jobs}"


def cost(found: FleetAnswers) -> str:
    """Return what the analysis took."""
    return (
        f"analysis: {show.duration(found.cpu_ns / 1000)} of CPU for {found.bytes_read / 1e6:,.0f} MB of files, at most "
        f"{found.peak_memory_bytes / 1e6:,.0f} MB of memory for one; traceanalyzer {found.version}; {found.schema}"
    )


def blocks(found: FleetAnswers) -> list[Block]:
    """Return the answers that there are, in the order of the questions."""
    made = [_kernels(found), _limits(found), *_ranks(found), *_inflated(found), _not_judged(found)]
    return [b for b in made if b is not None]


def _limits(found: FleetAnswers) -> Block | None:
    if not found.limits:
        return None
    rows = [
        [
            LIMITS.get(x.limit, x.limit), show.count(x.devices), show.count(x.runs), show.percent(x.median_share), show.percent(x.worst_share),
            _cause(x.worst_class, x.worst_name), x.worst_file,
        ]
        for x in found.limits
    ]  # fmt: skip
    notes = ["share of the device's span: the median of the devices, and the worst, with its largest cause"]
    columns = ["what limits", "devices", "runs", "median", "worst", "its largest cause", "worst file"]
    return Block(LIMITS_TITLE, columns, rows, frozenset({5, 6}), notes, labels=frozenset({0}))


def _cause(cls: str | None, name: str | None) -> str:
    if cls is None:
        return ""
    return f"{word(cls)}: {name}" if name else word(cls)


def _ranks(found: FleetAnswers) -> list[Block]:
    if not found.job_ranks:
        return []
    made = []
    if found.late_collectives:
        rows = [
            [x.job, show.count(x.rank), x.host or "", x.name, show.duration(x.caused_ns / 1000), f"{x.last:,} of {x.collectives:,}", show.percent(x.waiting_share)]
            for x in found.late_collectives
        ]  # fmt: skip
        columns = ["job", "rank", "host", "collective", "others waited", "joined last", "waiting"]
        notes = [
            *_more(found.left_out["late_collectives"]),
            "the rank that the others mostly waited for in collectives of one kernel; waiting: share of all time in collectives of the job",
        ]
        made.append(Block("Which rank is late, and in which collective", columns, rows, frozenset({0, 2, 3}), notes))
    if found.late_ranks:
        rows = [
            [x.job, show.count(x.rank), x.host or "", f"+{show.percent(x.over)}", x.part, x.file]
            for x in found.late_ranks
        ]
        notes = [
            *_more(found.left_out["late_ranks"]),
            "late: more than 5 % over the job's median rank outside of collectives; mostly: the part that grew",
        ]
        columns = ["job", "rank", "host", "over", "mostly", "file"]
        made.append(
            Block(
                "Ranks with more time of their own than the others",
                columns,
                rows,
                frozenset({0, 2, 5}),
                notes,
                labels=frozenset({4}),
            )
        )
    reasons: dict[str, list[JobRanks]] = {}
    for job in found.job_ranks:
        if job.reason:
            reasons.setdefault(job.reason, []).append(job)
    if reasons:
        rows = [[REASONS.get(r, r), show.count(len(jobs)), jobs[0].job] for r, jobs in reasons.items()]
        columns = ["why", "jobs", "for example"]
        made.append(Block("Jobs in which waiting cannot be told", columns, rows, frozenset({2}), labels=frozenset({0})))
    return made


def _more(rows: int) -> list[str]:
    return [f"{show.plural(rows, 'more row')} (--top N)"] if rows else []


def _inflated(found: FleetAnswers) -> list[Block]:
    made = []
    for kind, title in (("operation", "Worst inflation of operations"), ("kernel", "Worst inflation of kernels")):
        rows = [_inflated_row(x) for x in found.inflated if x.kind == kind]
        if rows:
            columns = [kind, "inflation", "self p50", "event pair", "n", "runs", "device", "file"]
            notes = [
                "what an event pair reads per call, over self-time; one row per name and job: its worst run"
                if kind == "operation"
                else "one row per name and job: its worst run; kernels that ran fewer than ten times left out"
            ]
            made.append(Block(title, columns, rows, frozenset({0, 7}), notes))
    return made


def _inflated_row(x: Inflated) -> list[str]:
    return [
        x.name, show.ratio(x.inflation), _time(x.self_time_ns), _time(x.event_pair_ns), show.count(x.count), show.count(x.runs), "" if x.device is None else str(x.device), x.file,
    ]  # fmt: skip


def _time(ns: int | None) -> str:
    return show.NA if ns is None else show.duration(ns / 1000)


def _not_judged(found: FleetAnswers) -> Block | None:
    if not found.not_judged:
        return None
    rows = [
        [
            x.kind,
            x.code,
            CODES.get(x.code.partition(".")[2].replace("-", "_") or x.code, ""),
            show.count(x.traces),
            x.example,
        ]
        for x in found.not_judged
    ]
    notes = [
        "fault: no run came of the file; verdict: the report says cannot-judge; the words: traceanalyze report FILE"
    ]
    return Block(
        "Which traces cannot be judged, and why",
        ["kind", "code", "meaning", "traces", "for example"],
        rows,
        frozenset({1, 4}),
        notes,
        labels=frozenset({0, 2}),
    )


def _kernels(found: FleetAnswers) -> Block | None:
    if found.kernel is None:
        return None
    title = "Kernels whose name holds what was asked for, over devices and commits"
    if not found.kernels:
        return Block(title, ["kernel"], [], notes=[f"no kernel's name holds {found.kernel}"])
    rows = [
        [
            k.name, k.device_name or "not stated", (k.commit or "")[:12], show.count(k.runs), show.count(k.count), _time(k.p50_ns),
            f"{_time(k.low_ns)} - {_time(k.high_ns)}", show.ratio(k.inflation), k.config or "",
        ]
        for k in found.kernels
    ]  # fmt: skip
    notes = [
        "self p50: median over the runs' medians, with the smallest and the largest; a name that was launched in several configurations has a row each"
    ]
    columns = ["kernel", "device", "commit", "runs", "n", "self p50", "of runs", "inflation", "configuration"]
    return Block(title, columns, rows, frozenset({0, 1, 2, 8}), notes)


def query_block(found: QueryResult, top: int) -> Block:
    """Return the result of a query; every text in it may come from a trace."""
    rows = [["" if v is None else v if isinstance(v, str) else f"{v}" for v in row] for row in found.rows[:top]]
    texts = frozenset(n for n in range(len(found.columns)) if any(isinstance(r[n], str) for r in found.rows[:top]))
    notes = []
    if len(found.rows) > top or found.cut:
        notes.append(
            f"{len(found.rows) - top:,}{' and more' if found.cut else ''} more rows (--top N; --format json has {'the first ' if found.cut else ''}{len(found.rows):,})"
        )
    return Block("" if rows else "no rows", found.columns, rows, texts, notes)
