"""The Python entry points."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.analysis.pipeline import Analysis, analyse
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.doctor.finding import Finding
from traceanalyzer.doctor.registry import chosen_rules
from traceanalyzer.options import AnalysisOptions, Selection
from traceanalyzer.report.build import build_report
from traceanalyzer.report.public import Report
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.source import Progress
from traceanalyzer.trace.tables import Trace

if TYPE_CHECKING:
    from traceanalyzer.report.annotations import Annotations as Annotations

__all__ = ["analyze", "read", "report_of"]


def analyze(
    path: str | Path,
    *,
    range: str | None = None,
    device: int | None = None,
    stream: int | None = None,
    kernel: str | None = None,
    options: AnalysisOptions | None = None,
    progress: Progress | None = None,
) -> Report:
    """Return the report of a trace file (``.json``, ``.json.gz``, or ``-`` for standard input).

    ``range`` narrows to work launched inside the named record_function / NVTX range, ``device`` and
    ``stream`` to one of them, ``kernel`` is a regular expression for the kernel tables. ``options`` sets
    everything else and excludes the four. Raises :class:`~traceanalyzer.errors.TraceAnalyzerError`.
    """
    if options is None:
        options = AnalysisOptions(Selection(range, device, stream, kernel))
    elif (range, device, stream, kernel) != (None,) * 4:
        raise TypeError("give the selection in options or as arguments, not both")
    return report_of(read(path, options.limits, progress), options)


def report_of(trace: Trace, options: AnalysisOptions | None = None) -> Report:
    """Return the report of a trace that has been read."""
    return examine(trace, options)[2]


def annotations_of(trace: Trace, options: AnalysisOptions | None = None, most_steps: int = 400_000) -> Annotations:
    """Return what an annotated copy of a trace shows beside it: verdict, evidence, counters of ``most_steps`` steps in all."""
    from traceanalyzer.report.annotations import annotate_report

    analysis, findings, report = examine(trace, options)
    return annotate_report(analysis, findings, report.data, most_steps)


def examine(trace: Trace, options: AnalysisOptions | None = None) -> tuple[Analysis, list[Finding], Report]:
    """Return the analysis of a trace and its findings with absolute times beside the report made of them."""
    analysis = analyse(trace, options)
    findings, abstentions = diagnose(analysis, chosen_rules(analysis.options.select, analysis.options.ignore))
    return analysis, findings, Report(build_report(analysis, findings, abstentions))
