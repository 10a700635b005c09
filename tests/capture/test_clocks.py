"""Clocks are sampled while calls are in flight, and locked clocks are given back however the benchmark ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from tests.capture.fake_device import FakeDevice
from traceanalyzer.capture.session import Operation, Session, Settings


def test_clocks_are_sampled_with_calls_in_flight_and_outside_of_every_reading(tmp_path):
    device = FakeDevice()
    call = device.op([(10_000, 100_000)])
    seen = []

    def sample():
        busy_until = max(r.end for r in device.machine.device)
        seen.append(busy_until - device.machine.now)

    keys = ("wall_sync_once", "wall_sync_each")
    found = {}
    for sampler in (None, sample):
        session = Session(
            device, Operation("op", call), Settings(keys, iterations=20), tmp_path / "t.json.gz", sample_clocks=sampler
        )
        record = session.run()
        found[sampler is None] = [p.p50_us for p in record.protocols]
    assert len(seen) == 5
    assert min(seen) > 5_000_000  # nanoseconds of work that was still in the queue
    assert found[True] == found[False]


NVML = """
import os
class NVMLError(Exception): pass
NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM = 0, 1
def note(text):
    with open(os.environ["NVML_LOG"], "a") as f: f.write(text + "\\n")
def nvmlInit(): pass
def nvmlDeviceGetCount(): return int(os.environ.get("NVML_COUNT", "1"))
def nvmlDeviceGetHandleByIndex(i): return i
def nvmlDeviceGetHandleByUUID(u): return u
def nvmlDeviceGetDefaultApplicationsClock(h, k):
    if os.environ.get("NVML_NO_DEFAULT"): raise NVMLError("Not Supported")
    return 1410
def nvmlDeviceGetMaxClockInfo(h, k): return 2000
def nvmlDeviceSetGpuLockedClocks(h, low, high):
    if os.environ.get("NVML_DENIED"): raise NVMLError("Insufficient Permissions")
    note(f"lock {h} {low} {high}")
def nvmlDeviceResetGpuLockedClocks(h): note(f"reset {h}")
"""
BENCH = """
import sys, time
from traceanalyzer.capture.clock_lock import locked_clocks
with locked_clocks() as said:
    print(said, flush=True)
    time.sleep(float(sys.argv[1]))
"""


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine whose NVML is a stand-in that writes down what it was told; returns its log's reader and a starter."""
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "pynvml.py").write_text(NVML)
    (tmp_path / "bench.py").write_text(textwrap.dedent(BENCH))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    monkeypatch.setenv("NVML_LOG", str(tmp_path / "log"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def start(seconds, **environment):
        return subprocess.Popen(
            [sys.executable, str(tmp_path / "bench.py"), str(seconds)], stdout=subprocess.PIPE, text=True, env=os.environ | environment
        )  # fmt: skip

    def log():
        path = tmp_path / "log"
        return path.read_text().splitlines() if path.exists() else []

    return start, log


def wait_for(log, lines):
    end = time.monotonic() + 30
    while len(log()) < lines and time.monotonic() < end:
        time.sleep(0.02)
    return log()


def test_the_clock_is_locked_at_the_drivers_default_and_given_back(machine):
    start, log = machine
    said, _ = start(0).communicate(timeout=60)
    assert said.strip() == "the SM clock was locked at 1410 MHz"
    assert log() == ["lock 0 1410 1410", "reset 0"]


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_is_given_back_when_the_benchmark_is_ended(machine, how):
    start, log = machine
    process = start(60)
    assert "locked at" in process.stdout.readline()
    process.send_signal(how)
    process.wait(30)
    assert wait_for(log, 2) == ["lock 0 1410 1410", "reset 0"]


@pytest.mark.parametrize(
    ("environment", "says"),
    [({"NVML_DENIED": "1"}, "Insufficient Permissions"), ({"NVML_COUNT": "4"}, "NVML sees 4 GPUs; name one")],
)
def test_where_it_is_not_permitted_or_not_clear_nothing_is_changed(machine, environment, says):
    start, log = machine
    said, _ = start(0, **environment).communicate(timeout=60)
    assert said.startswith("the clock is not locked: ") and says in said
    assert log() == []


def test_one_of_several_is_named_by_its_uuid_and_a_clock_without_default_is_a_share_of_the_highest(machine):
    start, log = machine
    environment = {"NVML_COUNT": "4", "CUDA_VISIBLE_DEVICES": "GPU-abc,GPU-def", "NVML_NO_DEFAULT": "1"}
    start(0, **environment).communicate(timeout=60)
    assert log() == ["lock GPU-abc 1500 1500", "reset GPU-abc"]
