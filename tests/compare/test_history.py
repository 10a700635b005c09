"""``history``: what was added is shown, levels that change are found, other files are left alone."""

from __future__ import annotations

import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner

from tests.compare.test_compare_command import simulate
from traceanalyzer.cli import cli
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.report.history.changes import changepoints
from traceanalyzer.report.history.store import Entry, add_entries, read_entries


def entry(period_us: float) -> Entry:
    return Entry(
        "2026-01-01T00:00:00", "c", "t.json", "GPU", "step", "range", 9, period_us, None, None, 1.0, 1.0, 3.0, "ok", {}
    )


def run(*args: object, code: int = 0) -> str:
    done = CliRunner().invoke(cli, ["history", *map(str, args)])
    assert done.exit_code == code, done.output
    return done.output


def test_levels_that_change_are_found_and_noise_is_not():
    rng = np.random.default_rng(5)
    wrong = found = 0
    for _ in range(100):
        noise = 100 * np.exp(0.02 * rng.standard_normal(40))
        wrong += bool(changepoints(noise.tolist()))
        noise[25:] *= 1.1
        cuts = changepoints(noise.tolist())
        found += any(abs(c.index - 25) <= 2 for c in cuts)
    assert wrong <= 5 and found >= 90
    assert changepoints([1.0] * 40) == [] and changepoints([1.0, 2.0]) == []


def test_a_history_shows_its_trend_and_feeds_the_services(tmp_path):
    db = tmp_path / "bench.sqlite"
    for i in range(8):
        trace = simulate(tmp_path / "t.json", 40_000 if i < 4 else 60_000, 10_000, n=30, seed=i, mark="<b>step")
        run("add", trace, "--db", db, "--commit", f"c{i}")
    text = run("show", "--db", db)
    assert text.count("\n  ") == 8 and "level 40." in text and "-> 60." in text
    page = run("show", "--db", db, "--format", "html")
    assert "<b>step" not in page and page.count("<circle") == 8 and page.count('class="change"') == 2
    assert "<title>bench.sqlite: " in page and "Level changed" in page
    [(name, metric)] = json.loads(run("show", "--db", db, "--format", "bmf")).items()
    assert name == "<b>step" and metric["latency"]["lower_value"] <= metric["latency"]["value"] == pytest.approx(
        60e3, rel=0.02
    )
    [row] = json.loads(run("show", "--db", db, "--format", "github-action-benchmark"))
    assert row["unit"] == "us" and row["value"] == pytest.approx(60, rel=0.02)


def test_another_database_and_no_file_are_refused_and_left_alone(tmp_path):
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE mine (a)")
    before = other.read_bytes()
    trace = simulate(tmp_path / "t.json", 40_000, 10_000, mark="step")
    assert "no history" in run("add", trace, "--db", other, code=2) and other.read_bytes() == before
    assert "no file" in run("show", "--db", tmp_path / "none.sqlite", code=2)


def test_a_history_of_another_version_is_left_alone(tmp_path):
    db = tmp_path / "h.db"
    add_entries(db, [entry(10.0)])
    with closing(sqlite3.connect(db)) as connection, connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        connection.execute("PRAGMA user_version = 2")
    for act in (lambda: read_entries(db), lambda: add_entries(db, [entry(11.0)])):
        with pytest.raises(TraceFormatError, match="of version 2, this traceanalyzer has version 1"):
            act()


def test_a_history_in_a_folder_that_is_not_there_or_that_others_hold_is_said_to_be_that(tmp_path, monkeypatch):
    with pytest.raises(TraceFormatError, match="cannot be written"):
        add_entries(tmp_path / "none" / "h.db", [entry(10.0)])
    db = tmp_path / "h.db"
    add_entries(db, [entry(10.0)])
    monkeypatch.setattr("traceanalyzer.report.history.store._WAIT_S", 0.05)
    with closing(sqlite3.connect(db, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(TraceFormatError, match="locked"):
            add_entries(db, [entry(11.0)])
    assert len(read_entries(db)) == 1


def test_adds_at_once_lose_nothing_even_where_the_file_is_new(tmp_path):
    db = tmp_path / "h.db"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: add_entries(db, [entry(float(n + 1))]), range(24)))
    assert sorted(e.period_us for e in read_entries(db)) == [float(n + 1) for n in range(24)]
