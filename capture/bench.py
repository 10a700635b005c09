"""One operator under every implementation, dtype and direction: a capture session for each, and the table of them all.

Each session runs in a process of its own (``capture/supervise.py``), so that an implementation that crashes, hangs or runs
out of memory is a row with its reason and never the end of the table. Implementations of one case (a dtype and direction, or
values of the axes) are measured in turns, round by round, in one process: what drifts falls on all of them alike. Where one
ends that process, the case is measured again, each implementation in a process of its own.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from traceanalyzer import number_text
from traceanalyzer.capture.job import Job
from traceanalyzer.capture.place import TRACE_NAME
from traceanalyzer.capture.precision import MOST_RUNS, half_width, next_calls
from traceanalyzer.capture.session import NOT_SO_FAR
from traceanalyzer.capture.supervise import supervise
from traceanalyzer.capture.survey import Survey, read_survey
from traceanalyzer.capture.worker import read_failure
from traceanalyzer.errors import CaptureUnavailable, OptionError, TraceAnalyzerError
from traceanalyzer.kernels.operator import check_name
from traceanalyzer.report.bench.model import BenchRow
from traceanalyzer.report.bench.model import BenchTable as BenchTable  # noqa: PLC0414 - commands take it from here
from traceanalyzer.report.bench.rows import (
    COLD,
    DEVICE_PROTOCOLS,
    END_TO_END,
    Planned,
    absent_row,
    measured_row,
    samples_ns,
)
from traceanalyzer.report.bench.table import BenchSubject, bench_table
from traceanalyzer.report.model import ReportData
from traceanalyzer.trace.sidecar import Sidecar, read_sidecar

PROTOCOLS = (END_TO_END, COLD, "graph_unrolled", "profiler_self_time")
"""The two columns, the first with a cold cache too, and its cross-check."""
MOST_ROWS = 2000
LEAST_S = 15.0
"""A session is not begun with less time than this left: loading a framework takes some seconds alone."""

Runner = Callable[[Job, float], TraceAnalyzerError | None]
"""Runs a job within so many seconds, as :func:`traceanalyzer.capture.supervise.supervise` does."""


@dataclass(frozen=True)
class BenchAsked:
    """What to measure: a kernel of this project, or ``FILE.py:FUNCTION`` over its ``axes``; empty names and lists mean all there is, ``against`` None for every other implementation.

    ``timeout_s`` bounds a session, ``limit_s`` all of them: rows that are not reached are n/a with that reason. ``precision``:
    measure a case again with more calls until the 95 % interval of every row's time is within that share to either side.
    ``notes`` are put into the table as they are.
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
    axes: Mapping[str, tuple[int | float | str, ...]] = field(default_factory=dict)
    precision: float | None = None
    notes: tuple[str, ...] = ()


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
    out = out.absolute() if out is not None else None
    with tempfile.TemporaryDirectory() as scratch:
        observe("asking what can run here", 0, 1)
        found = _survey(asked, Path(scratch), run)
        subject, planned = plan(asked, found)
        kind = found.device.kind
        gathered, why = _Run(), ("not_reached", "not reached yet")
        done = 0
        for _, case in itertools.groupby(planned, key=lambda r: (r.direction, r.dtype, r.axes)):
            rows = list(case)
            here = [r for r in rows if not r.absent]
            left = asked.timeout_s * len(here) if asked.limit_s is None else asked.limit_s - (now() - begun)
            if why[0] == "interrupted":
                break
            late = asked.limit_s is not None and left < LEAST_S
            observe(rows[0].label, done, len(planned))
            done += len(rows)
            measured: dict[str, BenchRow] = {}
            try:
                if here and not late:
                    seconds = round(min(asked.timeout_s * len(here), left), 1)
                    _precisely(asked, found, here, out, Path(scratch), gathered, run, seconds, now, measured)
            except KeyboardInterrupt:
                why = ("interrupted", "interrupted before it was measured")
            for row in rows:
                if row.absent:
                    gathered.rows.append(absent_row(row, kind, row.absent_kind, row.absent))
                elif row.label in measured:
                    gathered.rows.append(measured[row.label])
                elif why[0] == "interrupted":
                    gathered.rows.append(absent_row(row, kind, *why))
                else:
                    reason = (
                        f"the limit of {asked.limit_s:g} s was spent" if asked.limit_s is not None else "not reached"
                    )
                    gathered.rows.append(absent_row(row, kind, "left_out", reason))
            keep(_table(subject, gathered, planned, why, asked.notes))
        return _table(subject, gathered, planned, why, asked.notes)


def plan(asked: BenchAsked, found: Survey) -> tuple[BenchSubject, list[Planned]]:
    """Return the subject and the rows in the order of the table. Raises OptionError for names the survey does not have."""
    subject = asked.implementation or found.implementations[0]
    others = [i for i in found.implementations if i != subject and not i.startswith("triton")]
    against = others if asked.against is None else [a for a in dict.fromkeys(asked.against) if a != subject]
    known = [*found.implementations, *found.functions]
    for name in (subject, *against):
        check_name("implementation", name, known, f" of {found.operator}")
    rows = (
        _axis_rows(asked, found, (subject, *against)) if found.functions or found.axes or ":" in asked.operator else []
    )
    rows = rows or _dtype_rows(asked, found, (subject, *against))
    return BenchSubject(found.operator, found.summary, found.preset, found.sizes, subject, against, found.device), rows


def _dtype_rows(asked: BenchAsked, found: Survey, implementations: tuple[str, ...]) -> list[Planned]:
    dtypes = list(dict.fromkeys(asked.dtypes)) or found.dtypes
    directions = list(dict.fromkeys(asked.directions)) or found.directions
    for what, names, known in (("dtype", dtypes, found.dtypes), ("direction", directions, found.directions)):
        for name in names:
            check_name(what, name, known, f" of {found.operator}")
    if asked.axes:
        raise OptionError(
            "no_axes", f"{found.operator} has no axes", hint="--axis goes with FILE.py:FUNCTION; see --preset"
        )
    rows = []
    for direction, dtype, name in itertools.product(directions, dtypes, implementations):
        absence = found.absence(name, dtype)
        rows.append(Planned(dtype, direction, name, absence.reason if absence else "", absence.kind if absence else ""))
    return rows


def _axis_rows(asked: BenchAsked, found: Survey, implementations: tuple[str, ...]) -> list[Planned]:
    """Return a row for each combination of the axes' values and implementation; what the command line gives goes first."""
    axes: dict[str, tuple[int | float | str, ...]] = {k: tuple(v) for k, v in found.axes.items()} | dict(asked.axes)
    if asked.dtypes:
        axes["dtype"] = asked.dtypes
    cases = list(itertools.product(*axes.values()))
    if len(cases) * len(implementations) > MOST_ROWS:
        raise OptionError(
            "too_many_rows", f"{len(cases)} cases of {len(implementations)} implementations",
            hint=f"at most {MOST_ROWS} rows; narrow an axis with --axis NAME=VALUE",
        )  # fmt: skip
    return [
        Planned("", "", name, axes=tuple((k, str(v)) for k, v in zip(axes, case, strict=True)))
        for case in cases
        for name in implementations
    ]


def _survey(asked: BenchAsked, scratch: Path, run: Runner) -> Survey:
    folder = scratch / "survey"
    job = Job(out=str(folder), status="", survey=asked.operator, preset=asked.preset, device=asked.device)
    failure = run(job, asked.timeout_s if asked.limit_s is None else min(asked.timeout_s, asked.limit_s))
    if failure is not None:
        raise failure
    return read_survey(folder)


def _case(
    asked: BenchAsked, found: Survey, rows: list[Planned], out: Path | None, scratch: Path, gathered: _Run, run: Runner, seconds: float,
    now: Callable[[], float], kept: dict[str, BenchRow],
) -> None:  # fmt: skip
    """Put the rows of one case into ``kept`` by label, measured in turns; each alone where one of them ended the process.

    An interrupt is raised again when what the sessions have written by then is in ``kept``.
    """
    begun = now()
    jobs = [_job(asked, found, row, out or scratch) for row in rows]
    try:
        failure = run(replace(jobs[0], others=jobs[1:]), seconds)
        for row, job in zip(rows, jobs, strict=True):
            own = failure if len(rows) == 1 else read_failure(Path(job.out)) or failure
            if failure is not None and len(rows) > 1:
                shutil.rmtree(job.out, ignore_errors=True)
                left = seconds - (now() - begun)
                if left < LEAST_S:
                    kept[row.label] = absent_row(row, found.device.kind, failure.kind, str(failure))
                    continue
                own = run(job, round(min(asked.timeout_s, left), 1))
            kept[row.label] = _row(row, found.device.kind, Path(job.out), own, out, gathered)
    except KeyboardInterrupt:
        interrupted = CaptureUnavailable("interrupted", "interrupted; what was measured so far is kept")
        for row, job in zip(rows, jobs, strict=True):
            if row.label not in kept and (sidecar := read_sidecar(Path(job.out) / TRACE_NAME)[0]) is not None:
                own = None if _is_whole(sidecar) else interrupted
                kept[row.label] = _row(row, found.device.kind, Path(job.out), own, out, gathered)
        raise
    finally:
        if out is None:
            for job in jobs:
                shutil.rmtree(job.out, ignore_errors=True)


def _precisely(
    asked: BenchAsked, found: Survey, rows: list[Planned], out: Path | None, scratch: Path, gathered: _Run, run: Runner, seconds: float,
    now: Callable[[], float], kept: dict[str, BenchRow],
) -> None:  # fmt: skip
    """Measure a case, again and with more calls until its times are known as narrowly as asked, or another run would not help."""
    begun, calls = now(), asked.iterations
    before: dict[str, float | None] = {}
    for attempt in range(MOST_RUNS):
        again: dict[str, BenchRow] = {}
        left = seconds - (now() - begun)
        try:
            _case(replace(asked, iterations=calls), found, rows, out, scratch, gathered, run, left, now, again)
        finally:
            kept.update({label: row for label, row in again.items() if row.measured or label not in kept})
        if asked.precision is None:
            return
        half = {label: _half(row) for label, row in kept.items() if row.measured}
        wide = {label: h for label, h in half.items() if h is None or h > asked.precision}
        wanted = [next_calls(calls, h, before.get(label), asked.precision) for label, h in wide.items()]
        more = max((n for n in wanted if n is not None), default=None)
        if more is None or attempt + 1 == MOST_RUNS or seconds - (now() - begun) < LEAST_S:
            for label, h in wide.items():
                reached = "no interval" if h is None else number_text.percent(h)
                note = f"wanted within {100 * asked.precision:g} %, reached {reached} with {calls} calls per protocol"
                kept[label] = replace(kept[label], notes=[*kept[label].notes, note])
            return
        before, calls = dict(half), more


def _half(row: BenchRow) -> float | None:
    reading = row.device if row.device.p50_us is not None else row.end_to_end
    return half_width(reading.p50_us, reading.ci95_us)


def _is_whole(sidecar: Sidecar) -> bool:
    """Whether every protocol of a session has its readings, or abstained for a reason of its own."""
    return all(p.samples_us or p.reason != NOT_SO_FAR for o in sidecar.operations for p in o.protocols)


def _job(asked: BenchAsked, found: Survey, row: Planned, where: Path) -> Job:
    return Job(
        out=str((where / row.folder).absolute()), status="", target=asked.operator if ":" in asked.operator else found.operator,
        preset=found.preset, dtype=row.dtype, implementation=row.implementation, direction=row.direction or "forward",
        axes={k: parse_value(v) for k, v in row.axes}, seed=asked.seed, protocols=list(asked.protocols), warm_up=asked.warm_up,
        iterations=asked.iterations, budget_s=asked.budget_s, device=_kind(found, asked),
        framework="auto" if ":" in asked.operator else "pytorch",
    )  # fmt: skip


def parse_value(text: str) -> int | float | str:
    """Return an axis value: a whole number, a finite number, else the text."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            value = kind(text)
            if math.isfinite(value):
                return value
    return text


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


def _table(
    subject: BenchSubject, gathered: _Run, planned: list[Planned], why: tuple[str, str], notes: tuple[str, ...]
) -> BenchTable:
    rows = gathered.rows + [
        absent_row(p, subject.device.kind, *((p.absent_kind, p.absent) if p.absent else why))
        for p in planned[len(gathered.rows) :]
    ]
    return bench_table(subject, rows, gathered.samples, gathered.versions, notes)


def nothing_measured(table: BenchTable) -> CaptureUnavailable | None:
    """Return the error of a table without a single number, None where there is one."""
    if any(row.measured for row in table.rows):
        return None
    first = table.rows[0] if table.rows else None
    return CaptureUnavailable(
        "nothing_measured", f"no row of {table.operator} could be measured here ({first.missing if first else 'there are no rows'})",
        hint="see the reasons in the table; a GPU, or --against with what this device can run, gives numbers",
    )  # fmt: skip
