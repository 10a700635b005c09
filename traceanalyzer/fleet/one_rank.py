"""What is kept of one rank's trace."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from traceanalyzer.analysis.collectives import RankCollectives
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.doctor.engine import diagnose
from traceanalyzer.doctor.registry import chosen_rules
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.peers.hta import run_hta
from traceanalyzer.report.build import build_report
from traceanalyzer.report.ranks import RankRow, rank_collectives, rank_rows
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.source import Progress


@dataclass(frozen=True)
class OneRank:
    """What is kept of a trace: its rows, its collectives, and how many ranks it knows of."""

    rows: list[RankRow] = field(default_factory=list)
    collectives: list[RankCollectives] = field(default_factory=list)
    world_size: int | None = None


def one_rank(path: Path, options: AnalysisOptions, with_hta: bool, progress: Progress | None = None) -> OneRank:
    """Return what is kept of one trace; nothing else outlives the call. Raises :class:`~traceanalyzer.errors.TraceAnalyzerError`."""
    trace = read(path, options.limits, progress)
    analysis = analyse(trace, options)
    findings, abstentions = diagnose(analysis, chosen_rules(options.select, options.ignore))
    report = build_report(analysis, findings, abstentions)
    beside = run_hta(path, shipped_only=True) if with_hta else None
    rows = rank_rows(analysis, report, path.name, beside)
    return OneRank(rows, rank_collectives(analysis, path.name), trace.meta.world_size)
