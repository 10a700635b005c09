"""One operator under every implementation, dtype and direction: a capture session for each, and the table of them all.

Each session runs in a process of its own (``capture/supervise.py``), so that an implementation that crashes, hangs or runs
out of memory is a row with its reason and never the end of the table. Implementations of one dtype and direction follow
each other directly, in one run: what drifts over minutes falls on rows that are not compared.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from traceanalyzer.capture.place import TRACE_NAME
from traceanalyzer.capture.supervise import supervise
from traceanalyzer.capture.survey import Survey, read_survey
from traceanalyzer.capture.worker import Job
from traceanalyzer.errors import CaptureUnavailable, TraceAnalyzerError
from traceanalyzer.kernels.operator import check_name
from traceanalyzer.report.bench.model import BenchRow
from traceanalyzer.report.bench.model import BenchTable as BenchTable  # noqa: PLC0414 - commands take it from here
from traceanalyzer.report.bench.rows import DEVICE_PROTOCOLS, END_TO_END, Planned, absent_row, measured_row, samples_ns
from traceanalyzer.report.bench.table import Subject, bench_table
from traceanalyzer.report.model import ReportData
from traceanalyzer.trace.sidecar import read_sidecar

PROTOCOLS = (END_TO_END, "graph_unrolled", "profiler_self_time")
"""The two columns, and the cross-check of the first."""
LEAST_S = 15.0
"""A session is not begun with less time than this left: loading a framework takes some seconds alone."""

Runner = Callable[[Job, float], TraceAnalyzerError | None]
"""Runs a job within so many seconds, as :func:`traceanalyzer.capture.supervise.supervise` does."""


@dataclass(frozen=True)
class BenchAsked:
    """What to measure; empty names and lists stand for all there is, ``against`` None for every other implementation.

    ``timeout_s`` bounds a session, ``limit_s`` all of them: rows that are not reached are n/a with that reason.
    """

    operator: str
    preset: str = ""
    dtypes: tuple[str, ...] = ()
    directions: tuple[str, ...] = ()
    implementation: str = ""
    against: tuple[str, ...] | None = None
    device: str = "auto"
    seed: int = 0
    protocols: tuple[str, ...] = PROTOCOLS
    warm_up: int = 10
    iterations: int = 100
    budget_s: float = 10.0
    timeout_s: float = 300.0
    limit_s: float | None = None


@dataclass
class _Run:
    """What has been gathered so far."""

    rows: list[BenchRow] = field(default_factory=list)
    samples: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


def bench(
    asked: BenchAsked, out: Path | None = None, *, run: Runner = supervise, observe: Callable[[str, int, int], None] = lambda *_: None,
    keep: Callable[[BenchTable], None] = lambda _: None, now: Callable[[], float] = time.monotonic,
) -> BenchTable:  # fmt: skip
    """Return the table; each session's trace and sidecar stay in a folder of its own below ``out``, if one is given.

    ``keep`` gets the table after each row, with the rows to come as n/a. An interrupt ends the measuring, not the table:
    rows that were not reached have ``missing_kind`` interrupted. Raises OptionError for names that are not there,
    CaptureUnavailable where torch or the device is missing.
    """
    begun = now()
    with tempfile.TemporaryDirectory() as scratch:
        observe("asking what can run here", 0, 1)
        found = _survey(asked, Path(scratch), run)
        subject, planned = plan(asked, found)
        kind = found.device.kind
        gathered, why = _Run(), ("not_reached", "not reached yet")
        for number, row in enumerate(planned):
            left = asked.timeout_s if asked.limit_s is None else asked.limit_s - (now() - begun)
            if why[0] == "interrupted":
                break
            if row.absent:
                gathered.rows.append(absent_row(row, kind, row.absent_kind, row.absent))
                continue
            if asked.limit_s is not None and left < LEAST_S:
                gathered.rows.append(absent_row(row, kind, "left_out", f"the limit of {asked.limit_s:g} s was spent"))
                continue
            observe(row.label, number, len(planned))
            try:
                _session(asked, found, row, out, Path(scratch), gathered, run, round(min(asked.timeout_s, left), 1))
            except KeyboardInterrupt:
                why = ("interrupted", "interrupted before it was measured")
                break
            keep(_table(subject, gathered, planned, why))
        return _table(subject, gathered, planned, why)


def plan(asked: BenchAsked, found: Survey) -> tuple[Subject, list[Planned]]:
    """Return the subject and the rows in the order of the table. Raises OptionError for names the survey does not have."""
    subject = asked.implementation or found.implementations[0]
    others = [i for i in found.implementations if i != subject and not i.startswith("triton")]
    against = others if asked.against is None else [a for a in dict.fromkeys(asked.against) if a != subject]
    dtypes = list(dict.fromkeys(asked.dtypes)) or found.dtypes
    directions = list(dict.fromkeys(asked.directions)) or found.directions
    for what, names, known in (
        ("implementation", [subject, *against], found.implementations),
        ("dtype", dtypes, found.dtypes),
        ("direction", directions, found.directions),
    ):
        for name in names:
            check_name(what, name, known, f" of {found.operator}")
    rows = []
    for direction in directions:
        for dtype in dtypes:
            for name in (subject, *against):
                absence = found.absence(name, dtype)
                rows.append(
                    Planned(dtype, direction, name, absence.reason if absence else "", absence.kind if absence else "")
                )
    return Subject(found.operator, found.summary, found.preset, found.sizes, subject, against, found.device), rows


def _survey(asked: BenchAsked, scratch: Path, run: Runner) -> Survey:
    folder = scratch / "survey"
    job = Job(out=str(folder), status="", survey=asked.operator, preset=asked.preset, device=asked.device)
    failure = run(job, asked.timeout_s if asked.limit_s is None else min(asked.timeout_s, asked.limit_s))
    if failure is not None:
        raise failure
    return read_survey(folder)


def _session(
    asked: BenchAsked, found: Survey, row: Planned, out: Path | None, scratch: Path, gathered: _Run, run: Runner, seconds: float
) -> None:  # fmt: skip
    folder = (out or scratch) / row.folder
    job = Job(
        out=str(folder), status="", target=found.operator, preset=found.preset, dtype=row.dtype, implementation=row.implementation,
        direction=row.direction, seed=asked.seed, protocols=list(asked.protocols), warm_up=asked.warm_up, iterations=asked.iterations,
        budget_s=asked.budget_s, device=_kind(found, asked), framework="pytorch",
    )  # fmt: skip
    try:
        failure = run(job, seconds)
        gathered.rows.append(_row(row, found.device.kind, folder, failure, out, gathered))
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)


def _kind(found: Survey, asked: BenchAsked) -> str:
    if asked.device != "auto":
        return asked.device
    return "cuda" if found.device.kind == "rocm" else found.device.kind


def _row(
    row: Planned, kind: str, folder: Path, failure: TraceAnalyzerError | None, out: Path | None, gathered: _Run
) -> BenchRow:
    ended = (failure.kind, str(failure)) if failure is not None else None
    trace = folder / TRACE_NAME
    sidecar, damage = read_sidecar(trace)
    if sidecar is None:
        return absent_row(row, kind, *(ended or ("nothing_measured", damage or "the session left nothing behind")))
    for record in sidecar.operations:
        for protocol in (*DEVICE_PROTOCOLS, END_TO_END):
            gathered.samples[row.label, protocol] = samples_ns(record, protocol)
    gathered.versions.update(sidecar.versions)
    report, unjudged = _report(trace)
    kept = folder.relative_to(out).as_posix() if out is not None else None
    return measured_row(row, sidecar, report, unjudged, ended, kept)


def _report(trace: Path) -> tuple[ReportData | None, str]:
    from traceanalyzer.api import analyze

    if not trace.is_file():
        return None, "there is no trace"
    try:
        return analyze(trace).data, ""
    except TraceAnalyzerError as error:
        return None, error.one_line()


def _table(subject: Subject, gathered: _Run, planned: list[Planned], why: tuple[str, str]) -> BenchTable:
    rows = gathered.rows + [
        absent_row(p, subject.device.kind, *((p.absent_kind, p.absent) if p.absent else why))
        for p in planned[len(gathered.rows) :]
    ]
    return bench_table(subject, rows, gathered.samples, gathered.versions)


def nothing_measured(table: BenchTable) -> CaptureUnavailable | None:
    """Return the error of a table without a single number, None where there is one."""
    if any(row.measured for row in table.rows):
        return None
    first = table.rows[0] if table.rows else None
    return CaptureUnavailable(
        "nothing_measured", f"no row of {table.operator} could be measured here ({first.missing if first else 'there are no rows'})",
        hint="see the reasons in the table; a GPU, or --against with what this device can run, gives numbers",
    )  # fmt: skip
