"""Several processes read what one reads: same tables and same salvage, sound or damaged, and nothing of them is left behind."""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
import threading
import time
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import pytest

import traceanalyzer as ta
from tests.conftest import SHARED
from tests.unit.test_pieces import bare, mutated, sound
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace import cores
from traceanalyzer.trace.kineto import crew as crews
from traceanalyzer.trace.kineto import part as parts

LIMITS = ReadLimits(max_event_bytes=3000, max_depth=40, jobs=1)
TABLES = ("activities", "calls", "host_ops", "ranges", "overheads", "device_syncs", "python")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems read with one process")


def children_of(pid: int) -> list[int]:
    return [int(c) for c in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.fixture(autouse=True)
def no_child_is_left_and_no_pipe():
    pipes, children = len(list(Path("/proc/self/fd").iterdir())), children_of(os.getpid())
    yield
    assert set(children_of(os.getpid())) <= set(children)
    assert len(list(Path("/proc/self/fd").iterdir())) <= pipes


@pytest.fixture(autouse=True)
def threads_that_other_tests_left_do_not_count(monkeypatch):
    """Browsers and clusters of other tests keep threads for the session; with them, all of these would read with one process."""
    count, others = threading.active_count, threading.active_count() - 1
    monkeypatch.setattr(threading, "active_count", lambda: count() - others)


def everything(path: Path, limits: ReadLimits) -> Any:
    try:
        trace = ta.read(path, limits)
    except TraceFormatError as error:
        return error.kind, error.offset
    tables = {}
    for name in TABLES:
        table = trace.python.rows() if name == "python" else getattr(trace, name)
        tables[name] = {f.name: getattr(table, f.name).tolist() for f in fields(table)}
        types = {f.name: str(getattr(table, f.name).dtype) for f in fields(table)}
        tables[name]["types"] = types
    rest = {f.name: getattr(trace, f.name) for f in fields(trace) if f.name not in (*TABLES, "meta")}
    rest["frame names"] = trace.python.names
    meta = {f.name: getattr(trace.meta, f.name) for f in fields(trace.meta) if f.name != "salvage"}
    return tables, rest, meta, asdict(trace.meta.salvage)


def with_frames(text: bytes) -> bytes:
    """Put Python frames, halves of rows, odd rows and flows among the events: everything a part can carry."""
    rows = []
    for i in range(40):
        where = b'"pid": 100, "tid": "1", "ts": %d.125' % (1000 + 20 * i)
        rows += [
            b'{"ph": "X", "cat": "python_function", "name": "f%d", %s, "dur": 5}' % (i % 7, where),
            b'{"ph": "B", "cat": "user_annotation", "name": "r", %s}' % where,
            b'{"ph": "E", "cat": "user_annotation", "name": "r", %s9}' % where,
            b'{"ph": "X", "name": "lane row", "args": {"correlation_id": %d}, %s, "dur": 3}' % (i, where),
            b'{"ph": "X", "cat": "Kernel", "name": "old\\u00e9", "args": {"stream": "7", "external id": 3}, %s, "dur": 2}'
            % where,
            b'{"ph": "M", "name": "thread_name", "pid": 100, "tid": 1, "args": {"name": "t%d"}}' % (9 - i % 5),
            b'{"ph": "s", "cat": "async_npu", "id": "%d", "name": "x", %s}' % (i, where),
            b'{"ph": "X", "cat": "mystery%d", "name": "x", %s}' % (i % 2, where),
            b'{"ph": "B", "cat": "cuda_runtime", "name": "alone", %s, "args": {"correlation": %d}}' % (where, i),
            b"[1, 2]",
        ]
    mark = b'"traceEvents": ['
    at = text.index(mark) + len(mark) if mark in text else 1
    return text[:at] + b", ".join(rows) + b", " + text[at:]


TEXTS = with_frames(sound()), with_frames(bare())


@pytest.mark.parametrize("text", TEXTS, ids=["object", "array"])
@pytest.mark.parametrize("piece", [300, 1000, 5000])
@pytest.mark.parametrize("jobs", [2, 3])
def test_the_tables_are_those_of_one_process(tmp_path, text, piece, jobs):
    path = tmp_path / "t.json"
    path.write_bytes(text)
    alone = everything(path, replace(LIMITS, chunk_bytes=piece))
    assert alone[1]["frame names"] and alone[2]["unknown_categories"] and alone[0]["activities"]["corr"]
    assert everything(path, replace(LIMITS, chunk_bytes=piece, jobs=jobs)) == alone
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(text))
    found = everything(packed, replace(LIMITS, chunk_bytes=piece, jobs=jobs))
    assert found[0] == alone[0] and found[3] == alone[3]


@pytest.mark.parametrize("seed", range(4))
def test_damage_reads_the_same_with_any_number_of_processes(tmp_path, seed):
    rng = random.Random(seed)
    path = tmp_path / "t.json"
    for _ in range(5):
        text = mutated(rng.choice(TEXTS), rng)
        path.write_bytes(text)
        alone = everything(path, LIMITS)
        for jobs in (2, 3):
            limits = replace(LIMITS, jobs=jobs, chunk_bytes=rng.choice((200, 600, 2000, 6000)))
            assert everything(path, limits) == alone, (seed, jobs, text)


@pytest.mark.parametrize("cut", range(300, 15_000, 1_471))
def test_a_file_that_breaks_off_reads_the_same(tmp_path, cut):
    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0][:cut])
    assert everything(path, replace(LIMITS, jobs=2, chunk_bytes=700)) == everything(path, LIMITS)


@pytest.mark.parametrize("name", ["h100_falconsai.json.gz", "mi300_vllm_graph.json.gz", "v100_resnet50_2021.json.gz"])
def test_real_traces_read_the_same(name):
    path = SHARED / "traces" / name
    if not path.is_file():
        pytest.skip("the shared folder is not here")
    assert everything(path, ReadLimits(jobs=2, chunk_bytes=1 << 18)) == everything(path, ReadLimits(jobs=1))


def test_texts_are_numbered_anew_where_a_worker_holds_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_MOST_TEXTS", 5)
    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0])
    assert everything(path, replace(LIMITS, jobs=2, chunk_bytes=900)) == everything(path, LIMITS)


# -- what goes wrong with processes -------------------------------------------------------------------------


def dying(after: int) -> Any:
    class Dying(parts.PartReader):
        left = after

        def __call__(self, text: memoryview) -> parts.DecodedPart | None:
            self.left -= 1
            if not self.left:
                os.kill(os.getpid(), signal.SIGKILL)
            return super().__call__(text)

    return Dying


@pytest.mark.parametrize("after", [1, 2, 5])
def test_a_killed_worker_is_made_up_for_here(tmp_path, monkeypatch, after):
    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0])
    alone = everything(path, LIMITS)
    monkeypatch.setattr("traceanalyzer.trace.kineto.decode.PartReader", dying(after))
    assert everything(path, replace(LIMITS, jobs=3, chunk_bytes=900)) == alone


def test_a_worker_that_fails_says_nothing_and_is_made_up_for(tmp_path, monkeypatch, capfd):
    class Failing(parts.PartReader):
        def __call__(self, text: memoryview) -> parts.DecodedPart | None:
            raise MemoryError

    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0])
    alone = everything(path, LIMITS)
    monkeypatch.setattr("traceanalyzer.trace.kineto.decode.PartReader", Failing)
    assert everything(path, replace(LIMITS, jobs=2, chunk_bytes=900)) == alone
    assert capfd.readouterr() == ("", "")


def test_without_a_process_to_be_had_one_reads_alone(tmp_path, monkeypatch):
    def refused() -> int:
        raise BlockingIOError

    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0])
    alone = everything(path, LIMITS)
    monkeypatch.setattr(crews.os, "fork", refused)
    assert everything(path, replace(LIMITS, jobs=2, chunk_bytes=900)) == alone


def test_the_row_limit_holds_over_all_processes(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0])
    with pytest.raises(TraceFormatError) as error:
        ta.read(path, replace(LIMITS, jobs=2, chunk_bytes=900, max_rows=30))
    assert error.value.kind == "too_large"


def test_a_process_with_threads_is_not_copied():
    assert cores.processes(3) == 3
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        assert cores.processes(3) == 1
    finally:
        stop.set()
        thread.join()


def test_the_environment_says_how_many_and_the_option_comes_first(monkeypatch):
    monkeypatch.setenv(cores.JOBS_VARIABLE, "5")
    assert cores.processes(0) == 5 and cores.processes(2) == 2
    for nonsense in ("", "x", "-1", "0", "9" * 40):
        monkeypatch.setenv(cores.JOBS_VARIABLE, nonsense)
        assert cores.processes(0) == min(cores.usable_cores(), cores.MOST_JOBS)


def test_a_quota_of_the_control_group_counts(monkeypatch):
    files = {
        "/proc/self/cgroup": "0::/a/b\n",
        "/sys/fs/cgroup/a/cpu.max": "150000 100000\n",
        "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
    }
    monkeypatch.setattr(cores, "_text", lambda path: files.get(str(path), ""))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    assert cores.usable_cores() == 2
    files["/proc/self/cgroup"] = "4:cpu,cpuacct:/x\n"
    files["/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us"], files["/sys/fs/cgroup/cpu/x/cpu.cfs_period_us"] = (
        "400000\n",
        "100000\n",
    )
    assert cores.usable_cores() == 4
    files["/sys/fs/cgroup/cpu/x/cpu.cfs_quota_us"] = "-1\n"
    assert cores.usable_cores() == 16


# -- as a user meets them -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """A trace that comes through a pipe and does not end; its first megabytes are there."""
    path = tmp_path_factory.mktemp("pipe") / "pipe"
    os.mkfifo(path)
    return path


def opened(pipe: Path, reader: subprocess.Popen[bytes]) -> Any:
    """Return the pipe for writing once the reader has opened it."""
    until = time.monotonic() + 20
    while reader.poll() is None and time.monotonic() < until:
        try:
            end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            time.sleep(0.02)
            continue
        os.set_blocking(end, True)
        return os.fdopen(end, "wb")
    raise AssertionError(reader.communicate())


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_all_of_them_at_once(endless, number):
    row = b'{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 1, "args": {"device": 0}},\n'
    command = [sys.executable, "-m", "traceanalyzer", "report", "--jobs", "2", str(endless)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        with opened(endless, process) as pipe:
            pipe.write(b"[" + row * ((14 << 20) // len(row)))
            pipe.flush()
            until = time.monotonic() + 20
            while len(workers := children_of(process.pid)) < 2 and time.monotonic() < until:
                time.sleep(0.02)
            assert len(workers) == 2
            process.send_signal(number)
            out, err = process.communicate(timeout=10)
        assert process.returncode in (128 + number, -number) and (out, err) == (b"", b"")
        until = time.monotonic() + 5
        while any(map(alive, workers)) and time.monotonic() < until:
            time.sleep(0.02)
        assert not any(map(alive, workers))


def test_a_script_without_a_main_guard_runs_once(tmp_path):
    path = tmp_path / "t.json"
    path.write_bytes(TEXTS[0])
    script = tmp_path / "script.py"
    script.write_text(
        "import atexit, traceanalyzer as ta\nprint('begins')\natexit.register(print, 'ends')\n"
        f"print(len(ta.read({str(path)!r}, ta.ReadLimits(chunk_bytes=900, jobs=3)).activities))\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["begins", str(len(ta.read(path).activities)), "ends"] and not done.stderr
    piped = subprocess.run([sys.executable, "-"], input=script.read_text(), capture_output=True, text=True, check=True)
    assert piped.stdout == done.stdout
