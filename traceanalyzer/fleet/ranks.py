"""The ranks of one folder: each trace is read, reduced to a few rows and let go, here or in worker processes."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from traceanalyzer.errors import TraceAnalyzerError, TraceFormatError
from traceanalyzer.fleet.one_rank import OneRank, one_rank
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.peers.hta import HOW_TO_GET, installed_version
from traceanalyzer.report.ranks import LostTrace, RanksData, rank_of, ranks_report
from traceanalyzer.trace.folder import trace_files
from traceanalyzer.trace.source import Progress

FAULTS = {
    "killed": "its process was killed: the memory may not suffice", "out_of_memory": "it does not fit into memory", "exited": "its process ended",
    "worker_lost": "no process could be started for it", "internal_error": "a fault of traceanalyzer: see traceanalyze report FILE",
}  # fmt: skip
"""What a worker's fault means, by code."""


def ranks_of(
    folder: str | Path, options: AnalysisOptions, *, hta: bool, late_over: float, progress: Progress | None = None, jobs: int = 1,
) -> RanksData:  # fmt: skip
    """Return the report on a folder of traces. Raises TraceFormatError for a folder in which no trace can be read."""
    tool = installed_version() if hta else ""
    files = trace_files(folder)
    kept: list[OneRank] = []
    lost: list[LostTrace] = []
    each = _in_workers(files, options, bool(tool), jobs) if jobs > 1 else _here(files, options, bool(tool), progress)
    for path, found in each:
        if isinstance(found, OneRank):
            kept.append(found)
        reason = found if isinstance(found, str) else "" if found.rows else "it holds no device rows"
        if reason:
            # a report holds no folder: it names machines and users
            lost.append(LostTrace(path.name, reason.replace(str(path), path.name), rank_of(None, path.name)[0]))
    rows = [row for one in kept for row in one.rows]
    if not rows:
        first = f": {lost[0].file}: {lost[0].reason}" if lost else ""
        raise TraceFormatError(
            "no_ranks", f"none of {len(files)} files gives a rank{first}", hint="give a folder of traces"
        )
    sizes = [one.world_size for one in kept if one.world_size is not None]
    collectives = [c for one in kept for c in one.collectives]
    lost.sort(key=lambda x: x.file)
    said = tool or (HOW_TO_GET if hta else "")
    return ranks_report(Path(folder).resolve().name, rows, lost, max(sizes, default=None), said, late_over, collectives)


def _here(
    files: Sequence[Path], options: AnalysisOptions, with_hta: bool, progress: Progress | None
) -> Iterator[tuple[Path, OneRank | str]]:
    for path in files:
        found: OneRank | str
        with _new_objects_alone():
            try:
                found = one_rank(path, options, with_hta, progress)
            except TraceAnalyzerError as error:
                found = error.one_line()
            # the command runs without collections, and an analysis refers to itself: without this every trace would stay
            gc.collect()
        yield path, found


@contextmanager
def _new_objects_alone() -> Iterator[None]:
    """Let a collection inside look at what was made inside: in a notebook with torch in it a whole one takes a second."""
    if gc.get_freeze_count():  # somebody else froze what there is
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _in_workers(
    files: Sequence[Path], options: AnalysisOptions, with_hta: bool, jobs: int
) -> Iterator[tuple[Path, OneRank | str]]:
    """Yield what came of each file, in whatever order; a trace that kills its process is a reason as others are."""
    from traceanalyzer.fleet.pool import Pool, PoolOptions
    from traceanalyzer.fleet.scan import TraceSource
    from traceanalyzer.fleet.worker import TraceJob

    kind = "ranks+hta" if with_hta else "ranks"
    made = [TraceJob(TraceSource(str(path.absolute()), path.name, 0, 0), options, kind=kind) for path in files]
    by_name = {path.name: path for path in files}
    with Pool(PoolOptions(jobs)) as pool:
        for answer in pool.run(made):
            path = by_name[answer.source.file]
            found = answer.tables.get("rank")
            if isinstance(found, OneRank):
                yield path, found
            else:
                text = (
                    answer.known.get("line") or f"{answer.code}: {FAULTS.get(answer.code, 'it could not be analysed')}"
                )
                yield path, text.replace(str(path.absolute()), path.name)
