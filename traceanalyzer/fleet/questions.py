"""Questions asked of the results: DuckDB over the Parquet files, and the analysis of ranks over the rows of a job."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from traceanalyzer._version import __version__
from traceanalyzer.analysis.collectives import RankCollectives
from traceanalyzer.analysis.ranks import RankTimes, late_ranks
from traceanalyzer.errors import OptionError, TraceFormatError
from traceanalyzer.fleet.store import Results, check_part, schema_of
from traceanalyzer.fleet.tables import TABLES
from traceanalyzer.interrupts import at_once
from traceanalyzer.report.fleet import (
    SCHEMA,
    FleetAnswers,
    Inflated,
    JobRanks,
    KernelOver,
    LateCollective,
    LateRank,
    LimitCount,
    NotJudged,
    QueryResult,
)
from traceanalyzer.report.ranks import communication

MOST_QUERY_ROWS = 100_000
MOST_MEMORY_BYTES = 3 << 30
"""What a query may take, DuckDB's own memory and the text of its answer together."""
LEAST_RUNS = 10
"""A kernel that ran less often in a trace is no candidate for the worst inflation: nobody timed it."""
MOST_OF_JOB = 5_000_000
"""Collectives of a job that are matched, over all ranks; of a longer one the first."""
_MOST_TOGETHER = 500
_SETTINGS = (
    "python_enable_replacements=false", "autoinstall_known_extensions=false", "autoload_known_extensions=false", "temp_directory=''",
    "memory_limit='2GB'",
    "enable_external_access=false", "lock_configuration=true",
)  # fmt: skip
"""A query sees the tables, and neither a file, nor the network, nor a variable of this program; and its memory has a bound."""


class Questions:
    """The tables of some results, open for queries."""

    def __init__(self, folder: Path) -> None:
        try:
            import duckdb
            import pyarrow.dataset as ds
        except ImportError:
            raise OptionError(
                "missing_extra",
                "fleet show needs duckdb and pyarrow, which are not installed",
                hint="install the extra: pip install '.[fleet]'",
            ) from None
        self.results = Results(folder)
        self._duckdb = duckdb
        self._connection = duckdb.connect(":memory:")
        for table in TABLES:
            files = self.results.files(table)
            for file in files:
                check_part(file, table)
            schema = schema_of(table).remove_metadata()
            checked = ds.ParquetFileFormat(
                default_fragment_scan_options=ds.ParquetFragmentScanOptions(page_checksum_verification=True)
            )
            shown = (
                ds.dataset([str(f) for f in files], schema=schema, format=checked) if files else schema.empty_table()
            )
            self._connection.register(table, shown)
            if table == "collectives":
                self.collectives = shown if files else ds.dataset(shown)
        for setting in _SETTINGS:
            self._connection.execute(f"SET {setting}")

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Return the rows of a query of ours."""
        try:
            return self._connection.execute(sql, list(values)).fetchall()
        except self._duckdb.IOException as error:
            raise _bad_part(error) from None
        except self._duckdb.Error as error:
            if re.search("parquet|reading the stream", str(error), re.IGNORECASE):  # a part whose columns are others
                raise _bad_part(error) from None
            raise

    def query(self, sql: str) -> QueryResult:
        """Return what one SELECT of the user gives. Raises OptionError for anything else."""
        try:
            statements = self._duckdb.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != self._duckdb.StatementType.SELECT:
                raise OptionError("bad_query", "--sql takes one SELECT", hint="tables and columns: docs/fleet.md")
            with at_once(), _bounded_memory():
                found = self._connection.execute(statements[0])
                columns = [str(d[0]) for d in found.description or []]
                rows = found.fetchmany(MOST_QUERY_ROWS + 1)
        except self._duckdb.Error as error:
            text = str(error).strip().splitlines() or ["it failed"]
            raise OptionError(
                "bad_query", f"--sql: {text[0][:300]}", hint="tables and columns: docs/fleet.md"
            ) from None
        plain = [[_plain(v) for v in row] for row in rows[:MOST_QUERY_ROWS]]
        return QueryResult(columns, plain, len(rows) > MOST_QUERY_ROWS)


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """Let this process take MOST_MEMORY_BYTES more inside, and then what it took before: the bound of DuckDB does not count the text of values."""
    try:
        import resource

        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[5])
    except (ImportError, OSError, ValueError, IndexError):  # another system than Linux
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    most = pages * resource.getpagesize() + MOST_MEMORY_BYTES
    if before[0] != resource.RLIM_INFINITY:
        most = min(most, before[0])
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    try:
        yield
    except MemoryError:
        raise OptionError(
            "bad_query", "--sql: the answer does not fit into memory", hint="ask for fewer rows, or shorter values"
        ) from None
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _bad_part(error: Exception) -> TraceFormatError:
    text = " ".join(str(error).split())[:120]
    return TraceFormatError("bad_results", f"the results cannot be read ({text})", hint="make them again with --fresh")


def _plain(value: object) -> Any:
    """Return a value that JSON can hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set):
        return [_plain(v) for v in value]
    return (
        value.isoformat()
        if isinstance(value, datetime | date | time)
        else str(value)
        if not isinstance(value, timedelta)
        else value.total_seconds()
    )


def query(folder: Path, sql: str) -> QueryResult:
    """Return the answer to one SELECT over the tables of some results."""
    return Questions(folder).query(sql)


def answer(folder: Path, kernel: str | None = None, top: int = 10) -> FleetAnswers:
    """Return the answers on some results; ``kernel`` is part of a kernel's name, ``top`` the rows of a list."""
    ask = Questions(folder)
    runs, elapsed, cpu, peak, size = ask.rows(
        "SELECT count(*), coalesce(sum(elapsed_ns), 0), coalesce(sum(cpu_ns), 0), coalesce(max(peak_memory_bytes), 0), coalesce(sum(file_bytes), 0) FROM runs"
    )[0]
    jobs = _jobs(ask)
    told = [t for group in _groups(ask, jobs) for t in _of_jobs(ask, group)]
    late = sorted((x for t in told for x in t.late), key=lambda x: -x.over)
    waits = sorted((x for t in told for x in t.collectives), key=lambda x: -x.caused_ns)
    return FleetAnswers(
        SCHEMA, __version__, folder.resolve().name, runs, ask.rows("SELECT count(*) FROM faults")[0][0], len(jobs),
        dict(ask.rows("SELECT verdict, count(*) FROM runs GROUP BY verdict ORDER BY 2 DESC, 1")), int(elapsed), int(cpu), int(peak), int(size),
        {"late_ranks": max(0, len(late) - top), "late_collectives": max(0, len(waits) - top)}, _limits(ask),
        [t.job for t in told], late[:top], waits[:top], _inflated(ask, top), _not_judged(ask), kernel,
        _kernel(ask, kernel, top) if kernel is not None else [],
    )  # fmt: skip


def _limits(ask: Questions) -> list[LimitCount]:
    rows = ask.rows(
        """SELECT "limit", count(*), count(DISTINCT run), quantile_cont(limit_share, 0.5), max(limit_share), arg_max(file, coalesce(limit_share, 0)),
        arg_max(device, coalesce(limit_share, 0)), arg_max(limit_class, coalesce(limit_share, 0)), arg_max(limit_name, coalesce(limit_share, 0))
        FROM devices GROUP BY "limit" ORDER BY 2 DESC, 1"""
    )
    return [LimitCount(*row) for row in rows]


def _inflated(ask: Questions, top: int) -> list[Inflated]:
    parts = []
    for kind, table, shown, count, self_time, reading, least in (
        ("operation", "operations", "name", "calls", "self_time_p50_ns", "event_pair_ns", 1),
        ("kernel", "kernels", "short_name", '"count"', "p50_ns", "event_reading_ns", LEAST_RUNS),
    ):
        worst = ", ".join(f"arg_max({c}, inflation)" for c in (shown, "file", "device", count, self_time, reading))
        parts += ask.rows(
            f"""SELECT '{kind}', {worst}, max(inflation), count(DISTINCT run) FROM {table}
            WHERE inflation IS NOT NULL AND {count} >= ? AND {"kind = 'kernel'" if kind == "kernel" else "true"}
            GROUP BY job, name ORDER BY 8 DESC, job, name LIMIT ?""",
            least, top,
        )  # fmt: skip
    return [Inflated(*row) for row in parts]


def _not_judged(ask: Questions) -> list[NotJudged]:
    rows = ask.rows(
        """SELECT 'fault', code, count(*), min(file) FROM faults GROUP BY code UNION ALL
        SELECT 'verdict', coalesce(reason, ''), count(*), min(file) FROM runs WHERE verdict = 'cannot-judge' GROUP BY reason
        ORDER BY 3 DESC, 1, 2"""
    )
    return [NotJudged(*row) for row in rows]


def _kernel(ask: Questions, name: str, top: int) -> list[KernelOver]:
    rows = ask.rows(
        """SELECT k.name, config, device_name, k.commit, count(*), sum(k."count"), quantile_disc(p50_ns, 0.5), min(p50_ns), max(p50_ns),
        quantile_disc(exclusive_p50_ns, 0.5), quantile_cont(inflation, 0.5), sum(total_ns) AS whole
        FROM kernels k LEFT JOIN devices d ON k.run = d.run AND k.device = d.device AND k.owner = d.owner
        WHERE contains(lower(k.name), lower(?)) GROUP BY k.name, config, device_name, k.commit""",
        name,
    )
    # the variants of one kernel stay together, the heaviest kernel first
    weight: dict[str, int] = {}
    for row in rows:
        weight[row[0]] = weight.get(row[0], 0) + int(row[-1])
    rows.sort(key=lambda r: (-weight[r[0]], r[0], r[1] or "", r[2] or "", r[3] or ""))
    return [KernelOver(r[0], r[1], r[2] or "", r[3], r[4], int(r[5]), *r[6:11]) for r in rows[: 4 * top]]


@dataclass(frozen=True)
class _Told:
    job: JobRanks
    late: list[LateRank]
    collectives: list[LateCollective]


@dataclass(frozen=True)
class _Rank:
    rank: int | None
    file: str


_Job = tuple[str, int, "int | None"]


def _jobs(ask: Questions) -> list[_Job]:
    """Return the folders with traces of several ranks: their name, how many ranks, and the world size that a trace knows of."""
    return ask.rows(
        """SELECT job, count(DISTINCT rank), max(world_size) FROM runs WHERE rank IS NOT NULL GROUP BY job HAVING count(DISTINCT rank) > 1
        ORDER BY job"""
    )


def _groups(ask: Questions, jobs: list[_Job]) -> Iterator[list[_Job]]:
    """Yield jobs in groups whose collectives are read together: files are gone through a few times, not once a job."""
    sizes = dict(ask.rows("SELECT job, count(*) FROM collectives WHERE rank IS NOT NULL GROUP BY job"))
    group: list[_Job] = []
    rows = 0
    for job in jobs:
        size = sizes.get(job[0], 0)
        if group and (rows + size > MOST_OF_JOB or len(group) >= _MOST_TOGETHER):
            yield group
            group, rows = [], 0
        group.append(job)
        rows += size
    if group:
        yield group


def _of_jobs(ask: Questions, jobs: list[_Job]) -> list[_Told]:
    names = [job for job, _, _ in jobs]
    found = ask.rows(
        """SELECT job, rank, host, file, span_ns, compute_ns, idle_ns, exposed_communication_ns FROM devices
        WHERE rank IS NOT NULL AND job IN (SELECT unnest(?)) ORDER BY job, rank, file, device""",
        names,
    )
    devices = {job: list(rows) for job, rows in groupby(found, key=itemgetter(0))}
    most = max((len(rows) for rows in devices.values()), default=1)
    collectives = _collectives(ask, names, MOST_OF_JOB // max(1, most))
    return [_of_job(job, devices.get(job[0], []), collectives.get(job[0], [])) for job in jobs]


def _of_job(job: _Job, rows: list[tuple[Any, ...]], kept: list[RankCollectives]) -> _Told:
    name, ranks, world_size = job
    late = [
        LateRank(name, rank, host, file, found.over, found.part)
        for (_, rank, host, file, *_), found in zip(rows, late_ranks([RankTimes(*r[4:]) for r in rows]), strict=True)
        if found is not None
    ]
    found = communication([_Rank(r[1], r[3]) for r in rows], kept)
    hosts = {r[1]: r[2] for r in rows}
    whole = sum(r.wait_us + r.transfer_us for r in found.ranks)
    waits = [
        LateCollective(
            name, n.rank, hosts.get(n.rank), n.name, round(n.caused_us * 1000), n.last, n.collectives, n.wait_us / whole if whole else 0.0
        )
        for n in found.names
        if n.caused_us > 0
    ]  # fmt: skip
    return _Told(JobRanks(name, ranks, world_size, found.collectives, found.reason), late, waits)


def _collectives(ask: Questions, jobs: list[str], most: int) -> dict[str, list[RankCollectives]]:
    """Return the first ``most`` collectives of each device of some jobs, in order of ranks."""
    import pyarrow.dataset as ds

    mine = ds.field("job").isin(jobs) & (ds.field("place") < most) & ds.field("rank").is_valid()
    order = ("job", "rank", "file", "device", "place")
    found = ask.collectives.to_table(columns=[*order, "name", "start_ns", "end_ns"], filter=mine)
    found = found.sort_by([(c, "ascending") for c in order]).combine_chunks()
    if not found.num_rows:
        return {}
    names = found.column("name").combine_chunks().dictionary_encode()
    kinds, name = names.dictionary.to_pylist(), names.indices.to_numpy().astype(np.int32)
    rank, place, start, end = (found.column(c).to_numpy() for c in ("rank", "place", "start_ns", "end_ns"))
    made: dict[str, list[RankCollectives]] = {}
    # places of a device count from 0 up
    for a, b in pairwise([*np.flatnonzero(place == 0).tolist(), len(place)]):
        used, renamed = np.unique(name[a:b], return_inverse=True)
        own = tuple(kinds[u] for u in used.tolist())
        one = RankCollectives(int(rank[a]), own, renamed.reshape(-1).astype(np.int32), start[a:b], end[a:b])
        made.setdefault(found.column("job")[a].as_py(), []).append(one)
    return made
