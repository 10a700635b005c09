"""A folder of runs as one side of a comparison. One run is held at a time; what is kept of it are the medians of its units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.analysis.compare.runs import LEAST_RUNS, run_of, runs_of_unit, side_of_runs
from traceanalyzer.analysis.compare.sides import Side
from traceanalyzer.errors import TraceAnalyzerError, TraceFormatError
from traceanalyzer.report.compare.model import RunRow
from traceanalyzer.report.compare.sides import side_of
from traceanalyzer.report.model import ReportData
from traceanalyzer.trace.folder import trace_files

if TYPE_CHECKING:
    from traceanalyzer.report.public import Report


@dataclass(frozen=True)
class RunSet:
    """The runs of a folder: the ``report`` and units of the first that can be judged, all of them, and what could not be read."""

    side: Side
    report: ReportData
    first: Side
    runs: list[Side]
    lost: list[RunRow]

    def rows(self, name: str, method: str) -> list[RunRow]:
        """Return a row per file for the unit of the first run with this name and method, those left out last."""
        found = [
            RunRow(r.file, not r.reason, r.reason, _us(r.period_ns), _us(r.busy_ns), _us(r.self_ns))
            for r in runs_of_unit(name, method, self.first, self.runs)
        ]
        return sorted([*found, *self.lost], key=lambda r: not r.used)


def read_runs(folder: str | Path, load: Callable[[str | Path], tuple[Report, str]]) -> RunSet:
    """Return the runs of a folder. Raises TraceFormatError where fewer than two of its files can be judged."""
    report: ReportData | None = None
    first: Side | None = None
    runs: list[Side] = []
    lost: list[RunRow] = []
    files = trace_files(folder)
    for path in files:
        try:
            found, source = load(path)
        except TraceAnalyzerError as error:
            lost.append(RunRow(path.name, False, error.one_line().replace(str(path), path.name)))
            continue
        side = side_of(found.data, source)
        if side.broken:
            lost.append(RunRow(path.name, False, side.broken))
            continue
        if first is None or report is None:
            first, report = side, found.data
        runs.append(run_of(side))
    if first is None or report is None or len(runs) < LEAST_RUNS:
        why = f": {lost[0].file}: {lost[0].reason}" if lost else ""
        raise TraceFormatError(
            "few_runs",
            f"{len(runs)} of {len(files)} files in the folder can be judged{why}",
            hint="give a folder of two runs or more, or the file itself",
        )
    return RunSet(side_of_runs(Path(folder).resolve().name, first, runs), report, first, runs, lost)


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1000, 6)
