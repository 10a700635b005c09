"""A fleet from files to results: what is done already, batches of answers, and what is left when it is stopped."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from traceanalyzer._version import __version__
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.fleet.pool import Pool, PoolOptions
from traceanalyzer.fleet.rows import fault_row
from traceanalyzer.fleet.scan import TraceSource, sources
from traceanalyzer.fleet.store import ResultsWriter, of_stream, to_stream
from traceanalyzer.fleet.worker import Answer, TraceJob
from traceanalyzer.options import AnalysisOptions

if TYPE_CHECKING:
    import pyarrow as pa

BATCH_FILES = 256
BATCH_BYTES = 64 << 20
BATCH_SECONDS = 20.0
"""A batch is written when it has so many traces, so many bytes, or is so old."""


class Runner(Protocol):
    """Whatever runs jobs: a pool of this machine, or a cluster."""

    def run(self, jobs: Iterable[TraceJob]) -> Iterator[Answer]:
        """Yield an answer per job, in any order."""
        ...


@dataclass
class Progress:
    """How far a fleet is: ``skipped`` were done before (``skipped_faults`` of them faults), ``faults`` counts by code, ``levels`` findings by severity (skipped traces too)."""

    total: int = 0
    skipped: int = 0
    skipped_faults: int = 0
    analysed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    levels: Counter[str] = field(default_factory=Counter)

    @property
    def done(self) -> int:
        """Traces with an answer."""
        return self.skipped + self.analysed + sum(self.faults.values())


@dataclass(frozen=True)
class FleetOptions:
    """What a fleet is told: where to, how, and whether faults of before are tried again."""

    results: Path
    pool: PoolOptions = field(default_factory=PoolOptions)
    analysis: AnalysisOptions = field(default_factory=AnalysisOptions)
    commit: str | None = None
    fresh: bool = False
    retry_faults: bool = False
    scheduler: str | None = None


def run_fleet(
    given: Sequence[str], options: FleetOptions, tell: Callable[[Progress], None] = lambda _: None
) -> Progress:
    """Analyse the traces of folders, patterns and names into results; those that are done and have not changed are skipped.

    Whatever ends this function, an interrupt too, the answers up to then are kept. Raises
    :class:`~traceanalyzer.errors.TraceAnalyzerError`, also where not one trace could be read.
    """
    found = sources(given)
    with ResultsWriter(options.results, {"version": __version__}, fresh=options.fresh) as store:
        todo, progress = _todo(store, found, options)
        tell(progress)
        jobs = [TraceJob(s, options.analysis, options.commit) for s in todo]
        with _runner(options) as runner:
            batch = _Batch(store, options.commit)
            try:
                for answer in runner.run(jobs):
                    batch.add(answer)
                    if answer.code:
                        progress.faults[answer.code] += 1
                    else:
                        progress.analysed += 1
                    tell(progress)
            finally:
                batch.flush()
        store.compact()
        progress.levels.update(store.read("findings", ["severity"]).column("severity").to_pylist())
        if not store.parts["runs"]:
            code, n = progress.faults.most_common(1)[0] if progress.faults else ("no_traces", len(found))
            raise TraceFormatError(
                "no_runs",
                f"none of {len(found)} files could be read ({code}: {n})",
                hint="see them: traceanalyze fleet show RESULTS",
            )
    return progress


def _runner(options: FleetOptions) -> AbstractContextManager[Runner]:
    if options.scheduler is None:
        return Pool(options.pool)
    from traceanalyzer.fleet.cluster import Cluster

    return Cluster(options.pool, options.scheduler)


def _todo(store: ResultsWriter, found: list[TraceSource], options: FleetOptions) -> tuple[list[TraceSource], Progress]:
    """Return the files that are to be analysed; what is kept of them in another state goes."""
    done, now = store.done(), {s.file: s.run for s in found}
    again = {
        run
        for run, (file, code) in done.items()
        if now.get(file, run) != run or (code and options.retry_faults and file in now)
    }
    store.drop(again)
    todo = [s for s in found if s.run not in done or s.run in again]
    old = sum(1 for s in found if s.run in done and s.run not in again and done[s.run][1])
    progress = Progress(total=len(found), skipped=len(found) - len(todo), skipped_faults=old)
    return todo, progress


class _Batch:
    """Answers that are not yet on disk."""

    def __init__(self, store: ResultsWriter, commit: str | None) -> None:
        self._store, self._commit = store, commit
        self._start()

    def _start(self) -> None:
        self._tables: dict[str, list[pa.Table]] = {}
        self._files = self._bytes = 0
        self._since = time.monotonic()

    def add(self, answer: Answer) -> None:
        streams = answer.tables
        if answer.code:
            streams = {
                "faults": to_stream("faults", [fault_row(answer.source, self._commit, answer.code, **answer.known)])
            }
        for table, data in streams.items():
            self._tables.setdefault(table, []).append(of_stream(data))
            self._bytes += len(data)
        self._files += 1
        old = time.monotonic() - self._since > BATCH_SECONDS
        if self._files >= BATCH_FILES or self._bytes >= BATCH_BYTES or old:
            self.flush()

    def flush(self) -> None:
        if self._files:
            tables = self._tables
            self._start()
            self._store.add(tables)
