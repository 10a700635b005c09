"""Columns of SQLite tables as arrays, quickly and without trust in the file.

The file is opened read-only and immutable: nothing is written beside it, no journal of it is replayed. Only tables that are
stored are read, by name: a view or a virtual table of the same name does not exist here, triggers never run, and an
authoriser refuses every function but the few used below. Rows are read in blocks by rowid; each block comes as one line
of text per column, which numpy parses: about three times as fast as fetching rows.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.trace.tables import NO_ID

Block = dict[str, npt.NDArray[np.int64]]

_ROWS = 50_000
_LARGEST_ID = (1 << 63) - 1
_LONGEST_TEXT = 4096
_LONGEST_VALUE = 256 << 20
_SEPARATOR = "\x1e"
_STORED = re.compile(r"\s*CREATE\s+TABLE\b", re.I)
_FUNCTIONS = frozenset({"group_concat", "typeof", "substr", "max", "min", "sum", "ifnull", "coalesce", "count"})
_ALLOWED = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_PRAGMA})


class _Cursor:
    """Which rows of a table are read next: those of a range of rowids, or, where these have wide gaps, so many behind the last.

    ``last`` is the rowid before the block, ``first`` where its range begins, ``reached`` the last one in it. A range is a tenth faster: its rows are not put aside first.
    """

    def __init__(self, table: str, rowid: str) -> None:
        self.table, self.id = table, rowid
        self.dense = True
        self.last = self.reached = self.first = NO_ID

    @property
    def bounds(self) -> tuple[int, ...]:
        """The parameters of the query."""
        return (self.first, min(self.first + _ROWS - 1, _LARGEST_ID)) if self.dense else (self.last,)

    def counted(self, n: int, reached: int) -> None:
        """Go on behind the rows of a block; ranges that hold few are given up."""
        self.reached = reached
        self.dense = self.dense and 16 * n >= _ROWS

    def query(self, pieces: list[str], columns: list[str]) -> str:
        """Return the query for expressions over the columns of the block."""
        if self.dense:
            return f"SELECT {', '.join(pieces)} FROM {_quoted(self.table)} NOT INDEXED WHERE {self.id} BETWEEN ? AND ?"
        inner = "".join(f", {_quoted(c)}" for c in dict.fromkeys(columns))
        rows = f"SELECT {self.id} AS {self.id}{inner} FROM {_quoted(self.table)} WHERE {self.id} > ? ORDER BY {self.id} LIMIT {_ROWS}"
        return f"SELECT {', '.join(pieces)} FROM ({rows})"

    def one_by_one(self, pieces: list[str]) -> str:
        """Return the query for the rows of the block that was counted: those behind ``last``, up to ``reached``."""
        return f"SELECT {', '.join(pieces)} FROM {_quoted(self.table)} WHERE {self.id} > ? AND {self.id} <= ? ORDER BY {self.id}"


class Database:
    """The stored tables of one SQLite file; a context manager.

    ``tables`` maps each stored table to its columns, in order; ``not_stored`` has the names of views and virtual tables, which are not
    read. ``ends_at``: the file's length where it is shorter than its own header says, else None. Raises
    :class:`~traceanalyzer.errors.TraceFormatError` when the file is no sound database.
    """

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
            self._connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        except (sqlite3.Error, ValueError) as error:
            raise TraceFormatError(
                "cannot_open",
                f"'{self.name}': SQLite cannot open it ({error})",
                hint="check the path and its permissions",
            ) from None
        connection = self._connection
        connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
        if sys.version_info >= (3, 11):  # before, the length of the file bounds a value, and the authorizer attachments
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
            connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        for setting in ("query_only = 1", "trusted_schema = 0", "cell_size_check = 1", "mmap_size = 0"):
            connection.execute(f"PRAGMA {setting}")
        connection.set_authorizer(_authorise)
        self.tables: dict[str, list[str]] = {}
        self.not_stored: list[str] = []
        for kind, name, sql in self._all("SELECT type, name, sql FROM sqlite_master WHERE type IN ('table', 'view')"):
            if not isinstance(name, str) or not isinstance(sql, str):
                continue
            if kind == "table" and _STORED.match(sql):
                found = self._all(f"PRAGMA table_info({_quoted(name)})")
                self.tables[name] = [str(column[1]) for column in found]
            else:
                self.not_stored.append(name)
        self.ends_at = _ends_at(path)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def has(self, table: str, *columns: str) -> bool:
        """Return whether the table is stored and has all of these columns."""
        return table in self.tables and set(columns) <= set(self.tables[table])

    def count(self, table: str) -> int:
        """Return the number of rows, 0 for a table that is not there."""
        return int(self._all(f"SELECT count(*) FROM {_quoted(table)}")[0][0]) if table in self.tables else 0

    def numbers(self, table: str, columns: Sequence[str]) -> Iterator[Block]:
        """Yield blocks of integer columns in rowid order; what is no integer, or a column that is absent, is :data:`NO_ID`."""
        for block, _ in self.blocks(table, columns, ()):
            yield block

    def blocks(
        self, table: str, columns: Sequence[str], texts: Sequence[str]
    ) -> Iterator[tuple[Block, dict[str, list[str]]]]:
        """Yield blocks of integer columns and of text columns in rowid order; a text that is absent is empty.

        Texts are cut after 4,096 characters.
        """
        known = self.tables.get(table)
        if known is None:
            return
        numeric = [c for c in columns if c in known]
        textual = [c for c in texts if c in known]
        rows = _Cursor(table, _rowid_of(known))
        constant: dict[str, int | None] = {}
        while True:
            n, numbers, split = self._block(rows, numeric, textual, constant)
            if not n:
                return
            if any(v is None for v in numbers.values()) or any(len(v) != n for v in split.values()):
                numbers, split = self._one_by_one(rows, numeric, textual)
            # a column of one value is likely to go on: it is not turned into text again
            constant = {c: _value_of(v) for c, v in numbers.items() if v is not None and (v == v[0]).all()}
            absent = np.full(n, NO_ID, dtype=np.int64)
            yield (
                {c: v if (v := numbers.get(c)) is not None else absent for c in columns},
                {c: split.get(c, [""] * n) for c in texts},
            )

    def _block(
        self, rows: _Cursor, numeric: list[str], textual: list[str], constant: dict[str, int | None]
    ) -> tuple[int, dict[str, npt.NDArray[np.int64] | None], dict[str, list[str]]]:
        """Return the number of the next rows and their columns; a numeric column that is no list of integers is None.

        Columns in ``constant`` are only compared with their value there, all in one expression.
        """
        rows.last = rows.reached
        if rows.dense:
            query = f"SELECT min({rows.id}) FROM {_quoted(rows.table)} WHERE {rows.id} > ?"
            first = self._all(query, (rows.last,))[0][0]
            if first is None:
                return 0, {}, {}
            if not isinstance(first, int):
                raise self._damaged("rows have no numbers")
            rows.first = first
        listed = [c for c in numeric if c not in constant]
        differs = " OR ".join(f"{_quoted(c)} IS NOT {'NULL' if v is None else v}" for c, v in constant.items())
        pieces = ["count(*)", f"max({rows.id})", f"sum({differs})" if constant else "0", *map(_listed, listed)]
        pieces += [f"group_concat({_text_of(c)}, char(30))" for c in textual]
        n, reached, changed, *found = self._all(rows.query(pieces, [*numeric, *textual]), rows.bounds)[0]
        if not n:
            return 0, {}, {}
        if not isinstance(reached, int) or reached <= rows.last:
            raise self._damaged("rows are out of order")
        numbers = {c: _parsed(text, n) for c, text in zip(listed, found, strict=False)}
        if changed:
            again = self._all(rows.query([*map(_listed, constant)], [*constant]), rows.bounds)[0]
            numbers |= {c: _parsed(text, n) for c, text in zip(constant, again, strict=True)}
        else:
            numbers |= {c: np.full(n, NO_ID if v is None else v, dtype=np.int64) for c, v in constant.items()}
        split = {c: text.split(_SEPARATOR) for c, text in zip(textual, found[len(listed) :], strict=True)}
        rows.counted(n, reached)
        return n, numbers, split

    def _one_by_one(
        self, rows: _Cursor, numeric: list[str], textual: list[str]
    ) -> tuple[dict[str, npt.NDArray[np.int64] | None], dict[str, list[str]]]:
        """Read one block row by row: a text in it holds the separator."""
        chosen = [*map(_quoted, numeric), *map(_text_of, textual)]
        columns = list(zip(*self._all(rows.one_by_one(chosen), (rows.last, rows.reached)), strict=True))
        numbers: dict[str, npt.NDArray[np.int64] | None] = {
            c: np.array([v if isinstance(v, int) else NO_ID for v in values], dtype=np.int64)
            for c, values in zip(numeric, columns, strict=False)
        }
        return numbers, {c: list(v) for c, v in zip(textual, columns[len(numeric) :], strict=True)}

    def strings(self, table: str, key: str, value: str, wanted: set[int]) -> dict[int, str]:
        """Return the texts of the wanted ids; those that the table does not hold are left out."""
        found: dict[int, str] = {}
        if wanted and self.has(table, key, value):
            for ids, texts in self.blocks(table, [key], [value]):
                found.update((i, t) for i, t in zip(ids[key].tolist(), texts[value], strict=True) if i in wanted)
        return found

    def _all(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        try:
            return self._connection.execute(query, values).fetchall()
        except (sqlite3.Error, OverflowError, ValueError, MemoryError) as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, what: str) -> TraceFormatError:
        return TraceFormatError(
            "damaged_database",
            f"'{self.name}': SQLite cannot read it ({what[:120]})",
            hint="export it again; was the export stopped?",
        )


def _ends_at(path: Path) -> int | None:
    """Return the length of a file that is shorter than the pages its header counts; None for a whole one, or where the header does not count."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
        size = path.stat().st_size
    except OSError:
        return None
    page, changes, pages, counted_at = (
        int.from_bytes(head[a:b], "big") for a, b in ((16, 18), (24, 28), (28, 32), (92, 96))
    )
    # the count holds only where it was written with the last change (file format, 1.3.7)
    whole = (65536 if page == 1 else page) * pages
    return size if changes == counted_at and size < whole else None


def _authorise(action: int, _first: str | None, second: str | None, *_: str | None) -> int:
    if action in _ALLOWED or (action == sqlite3.SQLITE_FUNCTION and second in (*_FUNCTIONS, "char")):
        return sqlite3.SQLITE_OK
    return sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _listed(column: str) -> str:
    return f"group_concat(ifnull({_quoted(column)}, {NO_ID}))"


def _value_of(values: npt.NDArray[np.int64]) -> int | None:
    value = int(values[0])
    return None if value == NO_ID else value


def _rowid_of(columns: list[str]) -> str:
    """Return a name of the rowid that no column of the table has."""
    taken = {c.lower() for c in columns}
    return next((name for name in ("rowid", "_rowid_", "oid") if name not in taken), "rowid")


def _text_of(column: str) -> str:
    return f"CASE typeof({_quoted(column)}) WHEN 'text' THEN substr({_quoted(column)}, 1, {_LONGEST_TEXT}) ELSE '' END"


def _parsed(text: str, n: int) -> npt.NDArray[np.int64] | None:
    """Return n numbers; None where a value is none: a text or fraction ends the parse, or changes the count."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            values = np.fromstring(text, dtype=np.int64, sep=",")
        except (ValueError, DeprecationWarning):
            return None
    return values if len(values) == n else None
