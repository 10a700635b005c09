"""The file of a history: one row per unit and recording, in SQLite of the standard library."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, fields
from pathlib import Path

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.report.model import ReportData
from traceanalyzer.report.unit_model import UnitRow, UnitSeries

APPLICATION = 0x7472_6163
VERSION = 1
"""Layout of the table; a file of another version is left alone."""
_WAIT_S = 30.0
"""So long an add waits for others that write to the same file."""
_TABLE = """CREATE TABLE IF NOT EXISTS runs (id INTEGER PRIMARY KEY, added TEXT NOT NULL, commit_id TEXT NOT NULL, trace TEXT NOT NULL,
 device TEXT NOT NULL, unit TEXT NOT NULL, method TEXT NOT NULL, repeats INTEGER NOT NULL, period_us REAL, period_low_us REAL,
 period_high_us REAL, busy_us REAL, self_us REAL, launches REAL, verdict TEXT NOT NULL, conditions TEXT NOT NULL)"""
_WHOLE, _CAPTURED = "whole trace", "capture annotation"


@dataclass(frozen=True)
class Entry:
    """One unit of one recording. ``period_us`` is the median, with the quarter and three-quarter points; None where it has none."""

    added: str
    commit_id: str
    trace: str
    device: str
    unit: str
    method: str
    repeats: int
    period_us: float | None
    period_low_us: float | None
    period_high_us: float | None
    busy_us: float | None
    self_us: float | None
    launches: float | None
    verdict: str
    conditions: dict[str, str]


def entries_of(report: ReportData, added: str, commit: str) -> list[Entry]:
    """Return what of a report goes into the history: each captured operation, else the unit that holds most of the time."""
    captured = [u for u in report.units if u.method == _CAPTURED]
    chosen = captured or [u for u in report.units if u.method != _WHOLE][:1] or report.units[-1:]
    names = ", ".join(sorted({d.name for d in report.trace.devices if d.name}))
    conditions = {k: str(v) for k, v in report.trace.versions.items()}
    return [_entry(u, report, added, commit, names, conditions) for u in chosen]


def _entry(u: UnitRow, report: ReportData, added: str, commit: str, device: str, conditions: dict[str, str]) -> Entry:
    period = u.period if u.period.n >= 2 else u.duration
    low, high = _quarters(period)
    return Entry(
        added, commit, report.trace.name, device, u.name, u.method, u.repeats, period.p50_us, low, high, u.busy.p50_us, u.exclusive.p50_us,
        u.launches_per_repeat, report.verdict.status, conditions,
    )  # fmt: skip


def _quarters(series: UnitSeries) -> tuple[float | None, float | None]:
    values = sorted(series.samples_us)
    return (values[len(values) // 4], values[(3 * len(values)) // 4]) if values else (None, None)


def add_entries(path: Path, entries: list[Entry]) -> None:
    """Append entries; the file is made where there is none. Raises TraceFormatError for a file that is no history."""
    names = [f.name for f in fields(Entry)]
    marks = ", ".join("?" * len(names))
    try:
        with closing(sqlite3.connect(path, timeout=_WAIT_S, isolation_level=None)) as connection, connection:
            # taken before anything is looked at, so that of two first adds one makes the table
            connection.execute("BEGIN IMMEDIATE")
            _claim(connection, path)
            rows = [
                [json.dumps(v) if isinstance(v, dict) else v for v in (getattr(e, n) for n in names)] for e in entries
            ]
            connection.executemany(f"INSERT INTO runs ({', '.join(names)}) VALUES ({marks})", rows)
    except sqlite3.OperationalError as error:
        raise _unusable(path, error, "written") from None
    except sqlite3.Error as error:
        raise _no_history(path, error) from None


def read_entries(path: Path) -> list[Entry]:
    """Return all entries in the order they were added. Raises TraceFormatError."""
    if not path.is_file():
        raise TraceFormatError(
            "no_history", f"there is no file '{path.name}'", hint="make it: traceanalyze history add TRACE --db FILE"
        )
    names = [f.name for f in fields(Entry)]
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=_WAIT_S)) as connection:
            _checked(connection, path)
            found = connection.execute(f"SELECT {', '.join(names)} FROM runs ORDER BY id").fetchall()
        return [Entry(**(dict(zip(names, row, strict=True)) | {"conditions": json.loads(row[-1])})) for row in found]
    except sqlite3.OperationalError as error:
        raise _unusable(path, error, "read") from None
    except (sqlite3.Error, ValueError, TypeError) as error:
        raise _no_history(path, error) from None


def _claim(connection: sqlite3.Connection, path: Path) -> None:
    """Make the table in a new file; leave a database of somebody else alone."""
    if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        _checked(connection, path)
    connection.execute(f"PRAGMA application_id = {APPLICATION}")
    connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute(_TABLE)


def _checked(connection: sqlite3.Connection, path: Path) -> None:
    """Raise TraceFormatError for a database that is no history, or one of another version."""
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION:
        raise _no_history(path, "it holds other tables")
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version not in (0, VERSION):  # 0: made before versions were written
        raise TraceFormatError(
            "bad_history",
            f"'{path.name}' is a history of version {version}, this traceanalyzer has version {VERSION}",
            hint="use the traceanalyzer that made it, or a new file",
        )


def _unusable(path: Path, error: sqlite3.Error, what: str) -> TraceFormatError:
    """Return the error of a history that cannot be opened, is locked or has another table."""
    if "no such" in str(error) or "has no column" in str(error):
        return _no_history(path, error)
    return TraceFormatError(
        "unusable_history",
        f"'{path.name}' cannot be {what} ({str(error)[:120]})",
        hint="give a file in a folder that exists and can be written, and that no other program holds",
    )


def _no_history(path: Path, why: object) -> TraceFormatError:
    return TraceFormatError(
        "bad_history",
        f"'{path.name}' is no history of traceanalyzer ({str(why)[:120]})",
        hint="give a file that history add made, or a new one",
    )
