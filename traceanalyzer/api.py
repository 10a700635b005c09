"""The Python entry points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.analysis.pipeline import Analysis, analyse
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.registry import chosen_rules
from traceanalyzer.doctor.thresholds import check_thresholds
from traceanalyzer.errors import OptionError
from traceanalyzer.options import AnalysisOptions, Selection
from traceanalyzer.report.build import build_report
from traceanalyzer.report.public import Report
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.source import Progress
from traceanalyzer.trace.tables import Trace

if TYPE_CHECKING:
    from traceanalyzer.analysis.compare.sides import Side
    from traceanalyzer.report.annotations import Annotations
    from traceanalyzer.report.bench.merge import MergedBench
    from traceanalyzer.report.compare.public import Comparison
    from traceanalyzer.report.counterfactual import Counterfactual
    from traceanalyzer.report.history.trends import Trend
    from traceanalyzer.report.model import ReportData
    from traceanalyzer.report.ranks import RanksData

__all__ = [
    "Annotations",
    "analyze",
    "annotations_of",
    "compare",
    "compare_all",
    "counterfactual_of",
    "examine",
    "load_report",
    "merge_benches",
    "ranks",
    "read",
    "report_of",
]


def analyze(
    path: str | Path,
    *,
    range: str | None = None,
    device: int | None = None,
    stream: int | None = None,
    kernel: str | None = None,
    rank: int | None = None,
    options: AnalysisOptions | None = None,
    progress: Progress | None = None,
    second_opinion: bool = False,
) -> Report:
    """Return the report of a trace file (``.json``, ``.json.gz``, or ``-`` for standard input).

    ``range`` narrows to work launched inside the named record_function / NVTX range, ``device`` and
    ``stream`` to one of them, ``rank`` to one rank of a merged file, ``kernel`` is a regular expression for the kernel
    tables. ``options`` sets everything else and excludes the five. ``second_opinion`` also runs HolisticTraceAnalysis, in a process of its own, on
    the same file. Raises :class:`~traceanalyzer.errors.TraceAnalyzerError`.
    """
    if options is None:
        options = AnalysisOptions(Selection(range, device, stream, kernel, rank))
    elif (range, device, stream, kernel, rank) != (None,) * 5:
        raise TypeError("give the selection in options or as arguments, not both")
    check_thresholds(options.thresholds)  # before the file is read
    if second_opinion:
        return _with_second_opinion(path, options, progress)
    return report_of(read(path, options.limits, progress), options)


def _with_second_opinion(path: str | Path, options: AnalysisOptions, progress: Progress | None) -> Report:
    if not options.selection.is_everything:
        raise OptionError(
            "bad_option",
            "a second opinion is on a whole trace; HTA cannot narrow it to a range, device, stream or kernel",
            hint="leave the selection out, or the second opinion",
        )
    from traceanalyzer.peers.hta import run_hta
    from traceanalyzer.report.second_opinion import second_opinion

    analysis, _, report = examine(read(path, options.limits, progress), options)
    return Report(replace(report.data, second_opinion=second_opinion(analysis, run_hta(path))))


def report_of(trace: Trace, options: AnalysisOptions | None = None) -> Report:
    """Return the report of a trace that has been read."""
    return examine(trace, options)[2]


def annotations_of(trace: Trace, options: AnalysisOptions | None = None, most_steps: int = 400_000) -> Annotations:
    """Return what an annotated copy of a trace shows besides it: verdict, evidence, counters of ``most_steps`` steps in all."""
    from traceanalyzer.report.annotations import annotate_report

    analysis, findings, report = examine(trace, options)
    return annotate_report(analysis, findings, report.data, most_steps)


def counterfactual_of(trace: Trace, change: str, options: AnalysisOptions | None = None) -> Counterfactual:
    """Return how the replayed units of a trace would run with a change (a key of ``worth`` in the report).

    Raises :class:`~traceanalyzer.errors.OptionError` for an unknown change, and where the trace does not carry the replay.
    """
    from traceanalyzer.analysis.pipeline import analyse
    from traceanalyzer.report.counterfactual import counterfactual

    return counterfactual(analyse(trace, options), change)


def ranks(
    folder: str | Path, options: AnalysisOptions | None = None, *, hta: bool = True, late_over: float = 0.05,
    progress: Progress | None = None, jobs: int = 1,
) -> RanksData:  # fmt: skip
    """Return the report on a folder of traces, one a rank.

    Traces are read one at a time, with ``jobs`` above 1 so many at a time in processes of their own, and only a few rows are kept of each.
    ``hta`` adds HolisticTraceAnalysis' numbers where it is installed; ``late_over`` is the share by which a rank must
    exceed the median to be late. Raises TraceFormatError for a folder in which no trace can be read.
    """
    from traceanalyzer.fleet.ranks import ranks_of

    return ranks_of(folder, options or AnalysisOptions(), hta=hta, late_over=late_over, progress=progress, jobs=jobs)


def examine(trace: Trace, options: AnalysisOptions | None = None) -> tuple[Analysis, list[Finding], Report]:
    """Return the analysis of a trace and its findings with absolute times, and the report made of them."""
    check_thresholds(options.thresholds if options else ())
    analysis = analyse(trace, options)
    findings, abstentions = diagnose(analysis, chosen_rules(analysis.options.select, analysis.options.ignore))
    return analysis, findings, Report(build_report(analysis, findings, abstentions))


def compare(
    base: str | Path | Report,
    head: str | Path | Report,
    *,
    options: AnalysisOptions | None = None,
    allow_different: bool = False,
    unit: tuple[str, str] | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Return the comparison of two traces, saved JSON reports, or reports, in any mixture.

    Ratios are head over base of medians, below 1 where the head is faster. ``unit`` names what is compared on either side,
    ``metric`` (period, busy, self) what the verdict is about. ``allow_different`` compares what differs in
    device, selection or inputs (TA704). A report made without ``AnalysisOptions(samples=True)`` has no samples: its
    medians' intervals stand in. Raises :class:`~traceanalyzer.errors.TraceAnalyzerError`.
    """
    return compare_all(
        base, [head], options=options, allow_different=allow_different, unit=unit, metric=metric, progress=progress
    )[0]


def compare_all(
    base: str | Path | Report,
    heads: Sequence[str | Path | Report],
    *,
    options: AnalysisOptions | None = None,
    allow_different: bool = False,
    unit: tuple[str, str] | None = None,
    metric: str | None = None,
    progress: Progress | None = None,
) -> list[Comparison]:
    """Return one comparison of the base with each head, in order; the base is read once.

    Folders hold the runs of a side: each run is one value, and one run is held in memory at a time. A folder is compared with folders.
    """
    from traceanalyzer.analysis.compare.comparison import compare_sides
    from traceanalyzer.report.compare.build import build_comparison, with_runs
    from traceanalyzer.report.compare.public import Comparison
    from traceanalyzer.report.compare.runs import RunSet, median_reports, read_runs
    from traceanalyzer.report.compare.sides import side_of

    options = replace(options or AnalysisOptions(), samples=True)
    check_thresholds(options.thresholds)

    def load(given: str | Path | Report) -> tuple[Report, str]:
        return (given, "report") if isinstance(given, Report) else _loaded(given, options, progress)

    def load_side(given: str | Path | Report) -> tuple[ReportData, Side, RunSet | None]:
        if not isinstance(given, Report) and Path(given).is_dir():
            runs = read_runs(given, load)
            return runs.report, runs.side, runs
        report, source = load(given)
        return report.data, side_of(report.data, source), None

    folders = [not isinstance(given, Report) and Path(given).is_dir() for given in (base, *heads)]
    if any(folders) and not all(folders):
        raise OptionError(
            "bad_option", "a folder of runs and a single file are given", hint="give a folder of runs for every side"
        )
    first, side, mine = load_side(base)
    result = []
    for given in heads:
        other, against, theirs = load_side(given)
        compared = compare_sides(side, against, options, allow_different, unit, metric)
        if mine is not None and theirs is not None:
            (files, mid), (other_files, other_mid) = median_reports(compared.units, (mine, theirs))
            data = build_comparison(compared, mid, other_mid, bool(options.claims), allow_different)
            data = with_runs(data, compared, mine, theirs, (files, other_files))
        else:
            data = build_comparison(compared, first, other, bool(options.claims), allow_different)
            mid, other_mid = first, other
        result.append(Comparison(data, (mid.figures, other_mid.figures)))
    return result


def load_report(path: str | Path, options: AnalysisOptions | None = None) -> Report:
    """Return the report that a file holds (``report --format json``), or that of the trace in it."""
    return _loaded(path, options or AnalysisOptions())[0]


def _loaded(path: str | Path, options: AnalysisOptions, progress: Progress | None = None) -> tuple[Report, str]:
    from traceanalyzer.report.saved import open_pipe, read_report, saved_schema

    pipe = open_pipe(path)
    if saved_schema(path, pipe):
        return Report(read_report(path, pipe)), "report"
    return report_of(read(path, options.limits, progress, pipe), options), "trace"


def add_to_history(
    trace: str | Path, db: Path, commit: str = "", fallback: str = "", options: AnalysisOptions | None = None
) -> int:
    """Append the units of a trace, or of a saved report, to a history; return how many.

    The commit is what is given, else what a capture kept, else ``fallback``. Raises
    :class:`~traceanalyzer.errors.TraceAnalyzerError`.
    """
    from datetime import datetime, timezone

    from traceanalyzer.report.history.store import add_entries, entries_of
    from traceanalyzer.report.saved import read_report, saved_schema

    options = replace(options or AnalysisOptions(), samples=True)
    saved = saved_schema(trace)
    report = read_report(trace) if saved else report_of(read(trace, options.limits), options).data
    kept = report.capture.git_commit if report.capture is not None else ""
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    entries = entries_of(report, now, commit or kept or fallback)
    add_entries(db, entries)
    return len(entries)


def history_of(db: Path) -> list[Trend]:
    """Return the trends of a history, one per unit and device. Raises TraceFormatError for a file that is none."""
    from traceanalyzer.report.history.store import read_entries
    from traceanalyzer.report.history.trends import trends

    return trends(read_entries(db))


def merge_benches(paths: Sequence[Path]) -> MergedBench:
    """Return saved tables of ``bench`` (files, or the folders it wrote) as one table: machines by rows, cases by columns.

    Raises OptionError for what is no such table, and for tables that measure different things.
    """
    from traceanalyzer.report.bench.merge import merged
    from traceanalyzer.report.bench.saved import read_table, source_of

    return merged([(source_of(path), read_table(path)) for path in paths])
