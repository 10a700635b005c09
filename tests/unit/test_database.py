"""Blocks of SQLite columns are the rows of the table, whatever their rowids are and wherever a value begins to change."""

from __future__ import annotations

import random
import sqlite3

import pytest

from traceanalyzer.errors import TraceFormatError
from traceanalyzer.trace import database
from traceanalyzer.trace.database import Database
from traceanalyzer.trace.tables import NO_ID


def made(path, rows, ids, columns="a, b, t"):
    with sqlite3.connect(path) as db:
        db.execute(f"CREATE TABLE x ({columns})")
        db.executemany(
            f"INSERT INTO x (_rowid_, {columns}) VALUES (?, ?, ?, ?)", [(i, *r) for i, r in zip(ids, rows, strict=True)]
        )
    db.close()
    return path


def read(path, columns="a b absent", texts="t"):
    numbers, words = {c: [] for c in columns.split()}, []
    with Database(path) as db:
        for block, split in db.blocks("x", columns.split(), texts.split()):
            for c in numbers:
                numbers[c] += block[c].tolist()
            words += split[texts]
    return numbers, words


IDS = {
    "in a row": lambda n, rng: range(1, n + 1),
    "with gaps": lambda n, rng: sorted(rng.sample(range(-3 * n, 3 * n), n)),
    "far apart": lambda n, rng: [10**6 * i - 50 for i in range(n)],
    "one far ahead": lambda n, rng: [*range(n - 1), (1 << 63) - 1],
}


@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("seed", range(6))
def test_blocks_are_the_rows_of_the_table(tmp_path, monkeypatch, ids, seed):
    rng = random.Random(seed)
    monkeypatch.setattr(database, "_ROWS", 7)
    n = rng.choice((1, 6, 7, 8, 60))
    value = [rng.choice((5, None))] * n  # one value for a while, then another, then no integer at all
    for at in sorted(rng.sample(range(n), min(n, 3))):
        value[at:] = [rng.choice((None, 6, -(1 << 63) + 1, "text", 1.5, b"blob"))] * (n - at)
    rows = [(v, rng.randrange(1000), rng.choice(("", "word", "with\x1eseparator", None, 7))) for v in value]
    numbers, words = read(made(tmp_path / "t.sqlite", rows, IDS[ids](n, rng)))
    assert numbers["a"] == [v if type(v) is int else NO_ID for v in value]
    assert numbers["b"] == [r[1] for r in rows] and numbers["absent"] == [NO_ID] * n
    assert words == [t if isinstance(t, str) else "" for _, _, t in rows]


def test_a_column_that_is_called_rowid_is_a_column(tmp_path):
    path = made(tmp_path / "t.sqlite", [(5, 1, "a"), (5, 2, "b"), (5, 3, "c")], [1, 2, 3], "rowid, b, t")
    assert read(path, "rowid b") == ({"rowid": [5, 5, 5], "b": [1, 2, 3]}, ["a", "b", "c"])


def test_a_table_whose_columns_take_every_name_of_the_rowid_is_refused(tmp_path):
    with sqlite3.connect(tmp_path / "t.sqlite") as db:
        db.execute("CREATE TABLE x (rowid, _rowid_, oid)")
        db.execute("INSERT INTO x VALUES ('p', 'q', 'r')")
    db.close()
    with pytest.raises(TraceFormatError, match="rows have no numbers"):
        read(tmp_path / "t.sqlite", "rowid", "oid")
