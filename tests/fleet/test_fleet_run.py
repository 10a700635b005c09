"""A fleet loses nothing: faults are rows, a stop keeps what is done, a change is seen, and no half of a batch counts."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import trace
from traceanalyzer.cli import cli
from traceanalyzer.errors import OptionError, TraceFormatError

pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra fleet)")
pytest.importorskip("duckdb", reason="duckdb is not installed (extra fleet)")

from traceanalyzer.fleet import tables_page, worker
from traceanalyzer.fleet.pool import Pool, PoolOptions, Slot
from traceanalyzer.fleet.run import FleetOptions, run_fleet
from traceanalyzer.fleet.scan import TraceSource, sources
from traceanalyzer.fleet.store import Results, ResultsWriter, of_stream, schema_of, to_stream
from traceanalyzer.fleet.tables import TABLES
from traceanalyzer.options import AnalysisOptions, ReadLimits


def loop(path: Path, n: int = 20, **kernel) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return trace().loop(n, 50, 10, 20, **kernel).write(path)


class InThisProcess:
    """A runner without processes, for tests of what is made of the answers."""

    def __init__(self, *_):
        self.ran: list[str] = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def run(self, jobs):
        for job in jobs:
            self.ran.append(job.source.file)
            yield worker.analyse_one(job) if not job.source.code else worker.Answer(job.source, code=job.source.code)


@pytest.fixture
def here(monkeypatch):
    runner = InThisProcess()
    monkeypatch.setattr("traceanalyzer.fleet.run._runner", lambda options: runner)
    return runner


def rows(results: Path, table: str) -> list[dict]:
    return Results(results).read(table, [c.name for c in TABLES[table]]).to_pylist()


def test_faults_are_rows_and_the_rest_is_analysed(tmp_path, here):
    made = tmp_path / "traces"
    loop(made / "a/good.json")
    (made / "empty.json").write_bytes(b"")
    (made / "foreign.json").write_text('{"hello": 1}')
    (made / "cut.json.gz").write_bytes(b"\x1f\x8b\x08\x00")
    os.mkfifo(made / "pipe.json")
    (made / "gone.json").symlink_to("/nowhere")
    (made / ".hidden.json").write_text("{}")
    (made / "x.sidecar.json").write_text("{}")
    found = run_fleet([str(made)], FleetOptions(tmp_path / "out"))
    assert (found.total, found.analysed) == (6, 1)
    codes = {r["file"]: r["code"] for r in rows(tmp_path / "out", "faults")}
    assert codes.pop("pipe.json") == "not_a_file" and codes.pop("gone.json") == "cannot_open"
    assert codes["empty.json"] == "empty_file" and set(codes) == {"empty.json", "foreign.json", "cut.json.gz"}
    (run,) = rows(tmp_path / "out", "runs")
    assert (run["file"], run["job"], run["kernels"]) == ("a/good.json", "a", 20)
    assert run["file_bytes"] == (made / "a/good.json").stat().st_size


def test_numbers_are_those_of_the_report(tmp_path, here):
    from traceanalyzer import analyze

    path = loop(tmp_path / "t" / "x.json")
    run_fleet([str(path)], FleetOptions(tmp_path / "out", commit="abc"))
    report = analyze(path).data
    kernel, op, device = (rows(tmp_path / "out", t)[0] for t in ("kernels", "operations", "devices"))
    assert kernel["p50_ns"] == report.kernels[0].p50_us * 1000 and kernel["count"] == 20
    assert op["event_pair_ns"] == round(report.ops[0].readings["event_pair"] * 1000)
    assert op["inflation"] == pytest.approx(report.ops[0].readings["event_pair"] / report.ops[0].self_time_p50_us)
    assert device["busy_ns"] + device["idle_ns"] == device["span_ns"] == round(report.devices[0].span_us * 1000)
    ledger = [r for r in rows(tmp_path / "out", "ledger") if r["window"] == "span"]
    assert sum(r["ns"] for r in ledger if r["axis"] == "class") == device["span_ns"]
    assert sum(r["ns"] for r in ledger if r["axis"] == "drained_by") == device["idle_ns"]
    assert device["limit_ns"] == max(r["ns"] for r in ledger if r["axis"] == "family" and r["code"] != "unknown")
    assert {r["commit"] for r in ledger} == {"abc"}


def test_a_name_in_several_configurations_has_a_row_each_and_none_that_mixes_them(tmp_path, here):
    builder = trace()
    for i in range(20):
        builder.call(
            1000 + 100 * i, 1020 + 100 * i, 10 + 20 * (i % 2), name="gemm", grid=[1 + i % 2, 1, 1], block=[64, 1, 1]
        )
    builder.write(tmp_path / "x.json")
    run_fleet([str(tmp_path / "x.json")], FleetOptions(tmp_path / "out"))
    found = rows(tmp_path / "out", "kernels")
    assert sorted((r["count"], r["p50_ns"]) for r in found) == [(10, 10_000), (10, 30_000)]
    assert len({r["config"] for r in found}) == 2


def test_what_is_done_is_skipped_and_what_changed_is_replaced(tmp_path, here):
    made = tmp_path / "traces"
    for name in ("a", "b", "c"):
        loop(made / f"{name}.json")
    (made / "bad.json").write_text("{}")
    options = FleetOptions(tmp_path / "out")
    run_fleet([str(made)], options)
    here.ran.clear()
    loop(made / "b.json", n=30)
    found = run_fleet([str(made)], options)
    assert here.ran == ["b.json"] and (found.skipped, found.analysed) == (3, 1)
    runs = {r["file"]: r["kernels"] for r in rows(tmp_path / "out", "runs")}
    assert runs == {"a.json": 20, "b.json": 30, "c.json": 20}
    assert len([r for r in rows(tmp_path / "out", "kernels") if r["file"] == "b.json"]) == 1
    here.ran.clear()
    run_fleet([str(made)], FleetOptions(tmp_path / "out", retry_faults=True))
    assert here.ran == ["bad.json"] and len(rows(tmp_path / "out", "faults")) == 1
    here.ran.clear()
    run_fleet([str(made)], FleetOptions(tmp_path / "out", fresh=True))
    assert len(here.ran) == 4 and len(rows(tmp_path / "out", "runs")) == 3


def test_an_interrupt_keeps_what_is_done(tmp_path, monkeypatch):
    made = tmp_path / "traces"
    for n in range(6):
        loop(made / f"{n}.json")

    class Stopped(InThisProcess):
        def run(self, jobs):
            for n, answer in enumerate(super().run(jobs)):
                if n == 3:
                    raise KeyboardInterrupt
                yield answer

    monkeypatch.setattr("traceanalyzer.fleet.run._runner", lambda options: Stopped())
    with pytest.raises(KeyboardInterrupt):
        run_fleet([str(made)], FleetOptions(tmp_path / "out"))
    assert len(rows(tmp_path / "out", "runs")) == 3
    again = InThisProcess()
    monkeypatch.setattr("traceanalyzer.fleet.run._runner", lambda options: again)
    run_fleet([str(made)], FleetOptions(tmp_path / "out"))
    assert again.ran == ["3.json", "4.json", "5.json"] and len(rows(tmp_path / "out", "runs")) == 6


def test_half_a_batch_never_counts(tmp_path, here, monkeypatch):
    made = tmp_path / "traces"
    loop(made / "a.json")
    run_fleet([str(made)], FleetOptions(tmp_path / "out"))
    loop(made / "b.json")
    whole, writes = ResultsWriter._write, []

    def dies(self, table, number, batches):
        if len(writes) == 2:
            (self.folder / table / ".part-000099.parquet.part").write_bytes(b"half")
            raise KeyboardInterrupt
        writes.append(table)
        return whole(self, table, number, batches)

    monkeypatch.setattr(ResultsWriter, "_write", dies)
    with pytest.raises(KeyboardInterrupt):
        run_fleet([str(made)], FleetOptions(tmp_path / "out"))
    monkeypatch.setattr(ResultsWriter, "_write", whole)
    assert [r["file"] for r in rows(tmp_path / "out", "runs")] == ["a.json"]
    here.ran.clear()
    run_fleet([str(made)], FleetOptions(tmp_path / "out"))
    assert here.ran == ["b.json"]
    for table in TABLES:
        assert len({r["file"] for r in rows(tmp_path / "out", table)}) in (0, 2)
        listed = set(Results(tmp_path / "out").parts[table])
        assert {p.name for p in (tmp_path / "out" / table).glob("*")} == listed


def test_parts_stay_few_however_many_batches_come(tmp_path):
    row = {c.name: {"string": "x", "bool": False}.get(c.kind, 1) for c in TABLES["faults"]}
    with ResultsWriter(tmp_path / "out", {}) as store:
        for n in range(100):
            store.add({"faults": [of_stream(to_stream("faults", [row | {"file": str(n)}]))]})
            assert len(list((tmp_path / "out" / "faults").iterdir())) <= 33
        store.compact()
        assert len(store.parts["faults"]) == 1
    assert sorted(int(r["file"]) for r in rows(tmp_path / "out", "faults")) == list(range(100))


def test_one_process_writes_at_a_time_and_no_folder_of_others_is_touched(tmp_path):
    with ResultsWriter(tmp_path / "out", {}), pytest.raises(OptionError, match="another process"):
        ResultsWriter(tmp_path / "out", {})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(OptionError, match="not empty"):
        ResultsWriter(tmp_path / "mine", {}, fresh=True)
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_fresh_forgets_results_that_are_damaged(tmp_path, here):
    loop(tmp_path / "a.json")
    run_fleet([str(tmp_path / "a.json")], FleetOptions(tmp_path / "out"))
    (tmp_path / "out" / "fleet.json").write_text("{")
    with pytest.raises(TraceFormatError, match="no results"):
        run_fleet([str(tmp_path / "a.json")], FleetOptions(tmp_path / "out"))
    found = run_fleet([str(tmp_path / "a.json")], FleetOptions(tmp_path / "out", fresh=True))
    assert found.analysed == 1 and len(rows(tmp_path / "out", "runs")) == 1
    assert len(list((tmp_path / "out" / "runs").iterdir())) == 1


def test_a_manifest_that_names_other_files_is_no_results(tmp_path):
    (tmp_path / "fleet.json").write_text(
        json.dumps({"schema": "traceanalyzer.fleet/1", "parts": {"runs": ["../../x.parquet"]}})
    )
    with pytest.raises(TraceFormatError, match="no results"):
        Results(tmp_path)


def test_every_column_says_its_unit_and_its_meaning():
    for table, columns in TABLES.items():
        assert len({c.name for c in columns}) == len(columns) and schema_of(table).names == [c.name for c in columns]
        for c in columns:
            assert c.kind in ("string", "int64", "int32", "float64", "bool") and c.doc
            if c.name.endswith(("_ns", "_bytes")):
                assert c.kind == "int64"


def test_the_page_lists_the_tables_as_they_are():
    text = tables_page.PAGE.read_text(encoding="utf-8")
    assert text == tables_page.with_section(text)


# processes


def job(path: Path, **options) -> worker.TraceJob:
    return worker.TraceJob(sources([str(path)])[0], **options)


@pytest.fixture
def slow(tmp_path):
    """A file that takes minutes to read: it never ends."""
    path = tmp_path / "slow.json"
    os.mkfifo(path)
    status = path.stat()
    return TraceSource(str(path), "slow.json", status.st_size, status.st_mtime_ns)


def _child_of(slot: Slot) -> int:
    process = slot._process
    for _ in range(600):
        if process is not None:
            found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            if found:
                return int(found[0])
        process = slot._process
        time.sleep(0.02)
    raise AssertionError("no child came")


needs_proc = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks at processes through /proc")


@needs_proc
def test_killed_workers_and_late_ones_are_faults_and_the_next_trace_is_analysed(tmp_path, slow):
    good = job(loop(tmp_path / "good.json"))
    slot = Slot()
    try:
        threading.Thread(target=lambda: os.kill(_child_of(slot), signal.SIGKILL), daemon=True).start()
        found = slot.run(worker.TraceJob(slow), 60)
        assert (found.code, found.known["signal"]) == ("killed", 9) and found.known["peak_memory_bytes"] > 1 << 20
        server = slot._process.pid
        assert not slot.run(good, 60).code and slot._process.pid == server

        def kill_both():
            child = _child_of(slot)
            os.kill(slot._process.pid, signal.SIGKILL)
            assert child

        threading.Thread(target=kill_both, daemon=True).start()
        assert slot.run(worker.TraceJob(slow), 60).code == "killed"
        began = time.monotonic()
        assert slot.run(worker.TraceJob(slow), 1.0).code == "timeout" and time.monotonic() - began < 20
        assert set(slot.run(good, 60).tables) >= {"runs", "devices", "kernels"}
        os.kill(slot._process.pid, signal.SIGKILL)  # between two traces: nobody's fault
        assert not slot.run(good, 60).code
    finally:
        slot.close()


@needs_proc
@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA counts mapped memory on Linux alone")
def test_a_trace_over_its_memory_is_a_fault(tmp_path):
    path = tmp_path / "big.json"
    with path.open("w") as file:
        file.write(
            '{"traceEvents": [{"ph": "X", "cat": "kernel", "name": "' + "x" * (60 << 20) + '", "ts": 1, "dur": 1}]}'
        )
    with Pool(PoolOptions(1, 60, 150 << 20)) as pool:
        (found,) = pool.run([job(path)])
    assert found.code == "out_of_memory"


@needs_proc
def test_ctrl_c_ends_within_a_second_and_keeps_what_is_done(tmp_path):
    made = tmp_path / "traces"
    for n in range(3):
        loop(made / f"{n}.json")
    (made / "zz.json").write_text("{}")
    code = (
        f"import sys; from traceanalyzer.fleet import pool; pool._SERVE = {_SLOW!r}\n"
        "from traceanalyzer import interrupts; interrupts.install()\n"
        "from traceanalyzer.cli import run; sys.exit(run(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "fleet", str(made), "-o", str(tmp_path / "out"), "--jobs", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    for _ in range(600):
        if (tmp_path / "blocked").exists():
            break
        time.sleep(0.05)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130 and time.monotonic() - began < 1.5
    assert process.stderr.read() == ""
    assert len(rows(tmp_path / "out", "runs")) == 3
    status = Path("/proc") / (tmp_path / "blocked").read_text() / "stat"
    for _ in range(100):  # what is killed may wait to be collected
        if not status.exists() or status.read_text().rpartition(")")[2].split()[0] in "ZX":
            break
        time.sleep(0.02)
    else:
        raise AssertionError("the process of the trace outlives the job")


_SLOW = """
import os, time
from pathlib import Path
from traceanalyzer.fleet import worker
known = worker.analyse_one
def analyse_one(job):
    if job.source.file == "zz.json":
        Path("blocked").write_text(str(os.getpid()))
        time.sleep(600)
    return known(job)
worker.analyse_one = analyse_one
worker.main()
"""


def test_the_command_end_to_end(tmp_path):
    loop(tmp_path / "traces" / "a.json")
    (tmp_path / "traces" / "b.json").write_text("{")
    run = CliRunner().invoke(cli, ["fleet", str(tmp_path / "traces"), "-o", str(tmp_path / "out"), "--jobs", "1"])
    assert run.exit_code == 0 and "2 traces: 1 analysed, 0 done before, 1 fault (" in run.stderr
    again = CliRunner().invoke(cli, ["fleet", str(tmp_path / "traces"), "-o", str(tmp_path / "out"), "--jobs", "1"])
    assert "0 analysed, 2 done before (1 of them faults: --retry-faults)" in again.stderr
    shown = CliRunner().invoke(cli, ["fleet", "show", str(tmp_path / "out")])
    assert shown.exit_code == 0 and "1 run" in shown.output


def test_the_gate_and_nothing_to_read(tmp_path, here):
    shutil.copy(Path(__file__).resolve().parents[2] / "samples" / "cpu_bound_loop.json", tmp_path / "x.json")
    out = str(tmp_path / "out")
    assert CliRunner().invoke(cli, ["fleet", str(tmp_path / "x.json"), "-o", out]).exit_code == 0
    assert (
        CliRunner().invoke(cli, ["fleet", str(tmp_path / "x.json"), "-o", out, "--fail-on", "warning"]).exit_code == 1
    )
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "x.json").write_text("{}")
    none = CliRunner().invoke(cli, ["fleet", str(tmp_path / "bad"), "-o", str(tmp_path / "out2")])
    assert none.exit_code == 2 and "none of 1 files" in none.stderr and len(none.stderr.splitlines()) == 1
    assert CliRunner().invoke(cli, ["fleet", str(tmp_path / "nowhere"), "-o", out]).exit_code == 2
    assert CliRunner().invoke(cli, ["fleet", "show", str(tmp_path / "nowhere")]).exit_code == 2


def test_patterns_and_results_inside_of_the_folder(tmp_path, here):
    for name in ("a/x.json", "b/x.json", "b/y.json"):
        loop(tmp_path / name)
    run_fleet([str(tmp_path / "*" / "x.json")], FleetOptions(tmp_path / "results"))
    assert here.ran == ["a/x.json", "b/x.json"]
    here.ran.clear()
    run_fleet([str(tmp_path)], FleetOptions(tmp_path / "results"))
    assert here.ran == ["b/y.json"]  # named from the same folder: the others are done, and the results are no traces


@pytest.mark.parametrize("missing", ["pyarrow", "duckdb"])
def test_a_missing_extra_is_one_line_that_names_it(tmp_path, missing):
    loop(tmp_path / "a.json")
    command = "show" if missing == "duckdb" else str(tmp_path / "a.json")
    rest = [str(tmp_path)] if missing == "duckdb" else ["-o", str(tmp_path / "out")]
    code = (
        f"import sys; sys.modules[{missing!r}] = None\nfrom traceanalyzer.cli import run; sys.exit(run(sys.argv[1:]))"
    )
    done = subprocess.run([sys.executable, "-c", code, "fleet", command, *rest], capture_output=True, text=True)
    assert done.returncode == 2 and "'.[fleet]'" in done.stderr and len(done.stderr.splitlines()) == 1


def test_limits_of_reading_hold_in_the_fleet_too(tmp_path, here):
    loop(tmp_path / "a.json")
    options = FleetOptions(tmp_path / "out", analysis=AnalysisOptions(limits=ReadLimits(max_bytes=100)))
    with pytest.raises(TraceFormatError, match="none of 1"):
        run_fleet([str(tmp_path / "a.json")], options)
    assert [r["code"] for r in rows(tmp_path / "out", "faults")] == ["too_large"]
