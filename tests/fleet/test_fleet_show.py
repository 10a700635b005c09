"""Answers over results: who is late and where, what limits, what is inflated; names and queries of others are harmless."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from tests.builders import trace
from tests.fleet.jobs import NCCL, write_job
from traceanalyzer.api import ranks
from traceanalyzer.cli import cli
from traceanalyzer.errors import OptionError

pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra fleet)")
pytest.importorskip("duckdb", reason="duckdb is not installed (extra fleet)")

from traceanalyzer.fleet import worker
from traceanalyzer.fleet.questions import answer, query
from traceanalyzer.fleet.run import FleetOptions, run_fleet

HOSTILE = "<script>alert(1)</script>|`x` \x1b[31m**b** @all #1\u202e"


@pytest.fixture(autouse=True)
def here(monkeypatch):
    class InThisProcess:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def run(self, jobs):
            return map(worker.analyse_one, jobs)

    monkeypatch.setattr("traceanalyzer.fleet.run._runner", lambda options: InThisProcess())


def made(tmp_path, *given, **options):
    run_fleet([str(g) for g in given], FleetOptions(tmp_path / "out", **options))
    return tmp_path / "out"


def test_the_late_rank_and_its_collective_are_those_of_ranks(tmp_path):
    write_job(tmp_path / "t" / "one", 4, late_rank=2)
    write_job(tmp_path / "t" / "two", 3, late_rank=0, late_us=200)
    trace().loop(20, 50, 10, 20).write(tmp_path / "t" / "alone.json")
    found = answer(made(tmp_path, tmp_path / "t"))
    assert found.jobs == 2 and {(j.job, j.ranks, j.collectives, j.reason) for j in found.job_ranks} == {
        ("one", 4, 8, ""),
        ("two", 3, 8, ""),
    }
    assert {(r.job, r.rank, r.part) for r in found.late_ranks} == {("one", 2, "compute"), ("two", 0, "compute")}
    worst = {w.job: w for w in found.late_collectives}
    # three ranks wait 100 us in each of eight collectives; two wait 200 us
    assert (worst["one"].rank, worst["one"].caused_ns, worst["one"].last) == (2, 3 * 8 * 100_000, 8)
    assert (worst["two"].rank, worst["two"].caused_ns, worst["two"].name) == (0, 2 * 8 * 200_000, NCCL)
    theirs = ranks(tmp_path / "t" / "one", hta=False)
    assert theirs.communication.names[0].caused_us * 1000 == worst["one"].caused_ns
    assert [r.rank for r in theirs.ranks if r.straggler] == [2]


def test_a_job_whose_waiting_cannot_be_told_has_the_reason(tmp_path):
    write_job(tmp_path / "t" / "j", 2, steps=3)
    found = answer(made(tmp_path, tmp_path / "t"))
    assert found.job_ranks[0].reason == "few_collectives" and not found.late_collectives


def test_what_limits_counts_devices_and_adds_no_times(tmp_path):
    for n in range(3):
        trace().loop(40, 100, 10, 20).write(tmp_path / f"slow{n}.json")  # busy a fifth
    builder = trace()
    for i in range(40):
        builder.call(1000 + 2 * i, 1100 + 50 * i, 50)
    builder.write(tmp_path / "busy.json")
    found = {x.limit: x for x in answer(made(tmp_path, tmp_path)).limits}
    assert (found["dispatch"].devices, found["device-busy"].devices) == (3, 1)
    assert (
        found["dispatch"].median_share
        == pytest.approx(0.8, abs=0.02)
        == pytest.approx(found["dispatch"].worst_share, abs=0.02)
    )


def test_one_kernel_over_devices_and_commits(tmp_path):
    for commit, dur in (("aaa", 20), ("bbb", 30)):
        for n in range(3):
            builder = trace().loop(20, 100, 10, dur + n, name="my_gemm").loop(20, 100, 10, 5, start=9000, name="other")
            builder.fields["deviceProperties"] = [{"id": 0, "name": "H100" if n else "A100"}]
            builder.write(tmp_path / f"{commit}{n}.json")
        made(tmp_path, *(tmp_path / f"{commit}{n}.json" for n in range(3)), commit=commit)
    found = answer(tmp_path / "out", kernel="GEMM").kernels
    assert {(k.device_name, k.commit, k.runs, k.p50_ns, k.low_ns, k.high_ns) for k in found} == {
        ("A100", "aaa", 1, 20_000, 20_000, 20_000), ("H100", "aaa", 2, 21_000, 21_000, 22_000),
        ("A100", "bbb", 1, 30_000, 30_000, 30_000), ("H100", "bbb", 2, 31_000, 31_000, 32_000),
    }  # fmt: skip
    assert {k.name for k in found} == {"my_gemm"}


@pytest.mark.parametrize("form", ["text", "markdown", "html", "json"])
def test_names_of_others_are_harmless_in_every_format(tmp_path, form):
    folder = tmp_path / "t" / "<img src=x>|`a`"
    folder.mkdir(parents=True)
    trace().loop(30, 50, 10, 20, name=HOSTILE).write(folder / "\x1b[31m.json")
    (folder / "{{7*7}}.json").write_text("{}")
    out = str(made(tmp_path, tmp_path / "t"))
    for more in ([], ["--kernel", HOSTILE[:8]], ["--sql", "select name, file from kernels"]):
        shown = CliRunner().invoke(cli, ["fleet", "show", out, "--format", form, *more])
        assert shown.exit_code == 0, shown.output
        text = shown.output
        assert "\x1b" not in text and "\u202e" not in text
        if form == "markdown":
            page = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)  # it passes HTML on
            assert "<script>" not in page and "<img" not in page and "<b>" not in page and "&lt;script&gt;" in page
        if form == "html":
            assert "<script>alert" not in text and "<img src=x>" not in text and "&lt;script&gt;" in text
        if form == "json":
            json.loads(text)
        if form == "text":
            assert all(len(line) <= 100 for line in text.splitlines())


def test_text_fits_eighty_columns(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    write_job(tmp_path / "t" / "a_rather_long_name_of_a_job_folder", 4)
    out = str(made(tmp_path, tmp_path / "t"))
    shown = CliRunner().invoke(cli, ["fleet", "show", out])
    assert "4 runs" in shown.output and all(len(line) <= 80 for line in shown.output.splitlines())


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_csv('/etc/passwd')", "select * from '/etc/passwd'", "select * from read_parquet('OUT/runs/*.parquet')",
        "select * from glob('/*')", "copy (select 1) to 'OUT/x.csv'", "attach 'OUT/x.db'", "install httpfs", "load httpfs",
        "set enable_external_access = true", "create table t as select 1", "drop view runs", "select 1; select 2", "", "selec", "pragma version",
        "delete from runs", "export database 'OUT/x'", "select * from pyarrow_thing", "select count(*) from range(100000000000) a, range(100000000) b limit x",
    ],
)  # fmt: skip
def test_a_query_reads_the_tables_and_nothing_else(tmp_path, sql):
    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    out = made(tmp_path, tmp_path / "a.json")
    pyarrow_thing = {"a": [1]}  # a variable of the program is no table
    assert pyarrow_thing
    before = sorted(out.rglob("*"))
    with pytest.raises(OptionError) as error:
        query(out, sql.replace("OUT", str(out)))
    assert error.value.kind == "bad_query" and "\n" not in error.value.one_line()
    assert sorted(out.rglob("*")) == before


def test_a_query_of_ones_own_gives_plain_values(tmp_path):
    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    out = made(tmp_path, tmp_path / "a.json")
    found = query(
        out, "select file, kernels, 'nan'::double, [1, 2], {'a': 1}, date '2024-01-01', sum(kernels) over () from runs"
    )
    assert found.rows == [["a.json", 20, None, [1, 2], {"a": 1}, "2024-01-01", 20]]
    shown = CliRunner().invoke(cli, ["fleet", "show", str(out), "--sql", "select file from runs", "--format", "json"])
    assert json.loads(shown.output)["rows"] == [["a.json"]]


def test_results_that_are_damaged_are_one_line(tmp_path):
    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    out = made(tmp_path, tmp_path / "a.json")
    part = next((out / "kernels").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:100])
    shown = CliRunner().invoke(cli, ["fleet", "show", str(out)])
    assert shown.exit_code == 2 and "bad_results" in shown.stderr and len(shown.stderr.splitlines()) == 1
    part.unlink()
    assert CliRunner().invoke(cli, ["fleet", "show", str(out)]).exit_code == 2


def test_results_that_somebody_else_wrote_are_one_line(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    out = made(tmp_path, tmp_path / "a.json")
    sound = json.loads((out / "fleet.json").read_text())
    long = {**sound, "parts": {**sound["parts"], "runs": [f"part-{'9' * 300}.parquet"]}}
    part = next((out / "kernels").glob("*.parquet"))

    def refused(code):
        shown = CliRunner().invoke(cli, ["fleet", "show", str(out)])
        assert shown.exit_code == 2 and code in shown.stderr and len(shown.stderr.splitlines()) == 1, shown.exception

    for manifest in ("[" * 100_000, json.dumps(long), json.dumps({**sound, "settings": [5]})):
        (out / "fleet.json").write_text(manifest)
        refused("no_results")
    (out / "fleet.json").write_text(json.dumps(sound))
    table = pq.read_table(part)
    pq.write_table(pa.table({name: ["x"] * table.num_rows for name in table.column_names}), part)
    refused("bad_results")


def test_a_signal_ends_a_query_that_takes_for_ever(tmp_path):
    """The database computes in one long call, behind which no handler of ours would run."""
    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    words = [sys.executable, "-m", "traceanalyzer", "fleet", "show", str(made(tmp_path, tmp_path / "a.json"))]
    process = subprocess.Popen([*words, "--sql", "SELECT count(*) FROM range(1000000000000)"], stderr=subprocess.PIPE)
    used = Path(f"/proc/{process.pid}/stat")
    before = time.monotonic()
    while time.monotonic() - before < 60 and int(used.read_text().rpartition(")")[2].split()[11]) < 250:
        time.sleep(0.05)  # until it has computed for 2.5 s: start and imports take less
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) in (-signal.SIGTERM, 128 + signal.SIGTERM)
    assert process.stderr.read() == b""


def test_a_part_of_another_table_and_any_changed_byte_of_a_column_are_told(tmp_path):
    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    out = made(tmp_path, tmp_path / "a.json")
    part = next((out / "ledger").glob("*.parquet"))
    sound = part.read_bytes()

    def refused():
        shown = CliRunner().invoke(cli, ["fleet", "show", str(out), "--sql", "select * from ledger"])
        return shown.exit_code, shown.stderr.count("\n")

    assert refused() == (0, 0)
    part.write_bytes(next((out / "kernels").glob("*.parquet")).read_bytes())
    assert refused() == (2, 1)
    untold = []
    for at in range(4, len(sound) - 8, 97):  # magic numbers and the footer's length have a test of their own
        part.write_bytes(sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1 :])
        code, lines = refused()
        assert (code, lines) in ((0, 0), (2, 1))
        if code == 0:
            untold.append(at)
    # a page's own header and statistics have no checksum; what a column holds has
    part.write_bytes(sound)
    values = query(out, "select * from ledger").rows
    for at in untold:
        part.write_bytes(sound[:at] + bytes([sound[at] ^ 0x40]) + sound[at + 1 :])
        assert query(out, "select * from ledger").rows == values


@pytest.mark.skipif(sys.platform != "linux", reason="the bound is that of Linux")
def test_a_query_takes_bounded_memory_and_gives_it_back(tmp_path, monkeypatch):
    import resource

    monkeypatch.setattr("traceanalyzer.fleet.questions.MOST_MEMORY_BYTES", 300 << 20)
    trace().loop(20, 50, 10, 20).write(tmp_path / "a.json")
    out = made(tmp_path, tmp_path / "a.json")
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(OptionError, match="--sql"):
        query(out, "select repeat('x', 1000000000)")
    assert resource.getrlimit(resource.RLIMIT_DATA) == before
    assert query(out, "select 1").rows == [[1]]
