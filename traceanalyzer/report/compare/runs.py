"""A folder of runs as one side of a comparison. One run is held at a time; what is kept of it are the medians of its units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from traceanalyzer.analysis.compare.runs import LEAST_RUNS, middle_runs, run_of, runs_of_unit, side_of_runs
from traceanalyzer.analysis.compare.sides import Side
from traceanalyzer.analysis.compare.unit_ratios import UnitResult
from traceanalyzer.errors import TraceAnalyzerError, TraceFormatError
from traceanalyzer.report.compare.model import RunRow
from traceanalyzer.report.compare.sides import side_of
from traceanalyzer.report.model import ReportData
from traceanalyzer.trace.folder import trace_files

if TYPE_CHECKING:
    from traceanalyzer.report.public import Report

Load = Callable[[str | Path], "tuple[Report, str]"]


@dataclass(frozen=True)
class RunSet:
    """The runs of a folder: the ``side`` of all of them, the ``first`` that can be judged with its ``report``, and what could not be read.

    ``files`` has the path of each of ``runs``; ``load`` reads one again.
    """

    side: Side
    report: ReportData
    first: Side
    runs: list[Side]
    files: list[Path]
    lost: list[RunRow]
    load: Load
    _reports: dict[Path, ReportData] = field(default_factory=dict, compare=False, repr=False)

    def rows(self, name: str, method: str) -> list[RunRow]:
        """Return a row per file for the unit of the first run with this name and method, those left out last."""
        found = [
            RunRow(r.file, not r.reason, r.reason, _us(r.period_ns), _us(r.duration_ns), _us(r.busy_ns), _us(r.self_ns))
            for r in runs_of_unit(name, method, self.first, self.runs)
        ]
        return sorted([*found, *self.lost], key=lambda r: not r.used)

    def median_runs(self, name: str, method: str, start_to_start: bool) -> list[Path]:
        """Return the files of the one or two runs in the middle, by period (else by duration) of the unit, the shorter first."""
        found = [
            (path, value)
            for path, r in zip(self.files, runs_of_unit(name, method, self.first, self.runs), strict=True)
            if not r.reason and (value := r.period_ns if start_to_start else r.duration_ns) is not None
        ]
        return [found[at][0] for at in middle_runs([value for _, value in found])] if found else self.files[:1]

    def report_of(self, path: Path) -> ReportData:
        """Return the report of one run; it is read again."""
        if path == self.files[0]:
            return self.report
        if path not in self._reports:
            self._reports.clear()  # one run is held at a time
            self._reports[path] = self.load(path)[0].data
        return self._reports[path]


def read_runs(folder: str | Path, load: Load) -> RunSet:
    """Return the runs of a folder. Raises TraceFormatError where fewer than two of its files can be judged."""
    report: ReportData | None = None
    first: Side | None = None
    runs: list[Side] = []
    judged: list[Path] = []
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
        judged.append(path)
    if first is None or report is None or len(runs) < LEAST_RUNS:
        why = f": {lost[0].file}: {lost[0].reason}" if lost else ""
        raise TraceFormatError(
            "few_runs",
            f"{len(runs)} of {len(files)} files in the folder can be judged{why}",
            hint="give a folder of two runs or more, or the file itself",
        )
    name = Path(folder).resolve().name
    return RunSet(side_of_runs(name, first, runs), report, first, runs, judged, lost, load)


def median_reports(units: list[UnitResult], sides: tuple[RunSet, RunSet]) -> list[tuple[list[Path], ReportData]]:
    """Return, per side, the runs in the middle for what is compared, and the report of the first of them."""
    found = []
    for n, runs in enumerate(sides):
        if not units:
            found.append((runs.files[:1], runs.report))
            continue
        pair, period = units[0].pair, units[0].measured.get("period")
        unit = (pair.base, pair.head)[n]
        paths = runs.median_runs(unit.name, unit.method, period is not None and period.basis == "start-to-start")
        found.append((paths, runs.report_of(paths[0])))
    return found


def _us(value_ns: float | None) -> float | None:
    return None if value_ns is None else round(value_ns / 1000, 6)
