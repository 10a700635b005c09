"""Clocks through NVML (a stand-in here), environment switches, versions, the git commit."""

import os
import subprocess
import sys
import types

import pytest

from tests.capture.fake_device import FakeDevice
from traceanalyzer.capture import conditions
from traceanalyzer.trace.sidecar import DeviceFacts


class Cuda(FakeDevice):
    def facts(self):
        return DeviceFacts("cuda", "Some GPU")

    def uuid(self):
        return "GPU-1"


@pytest.fixture
def nvml(monkeypatch):
    module = types.ModuleType("pynvml")

    class NVMLError(Exception):
        pass

    def unsupported(*_):
        raise NVMLError("Not Supported")

    module.NVMLError = NVMLError
    module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM, module.NVML_TEMPERATURE_GPU = 1, 2, 0
    module.nvmlInit = lambda: None
    module.nvmlDeviceGetHandleByUUID = lambda uuid: uuid
    module.nvmlSystemGetDriverVersion = lambda: b"580.95"
    module.nvmlDeviceGetPowerUsage = lambda _: 350_500
    module.nvmlDeviceGetEnforcedPowerLimit = lambda _: 700_000
    module.nvmlDeviceGetClockInfo = lambda _, kind: 1005 if kind == 1 else 2619
    module.nvmlDeviceGetMaxClockInfo = lambda _, kind: 1980
    module.nvmlDeviceGetTemperature = unsupported
    module.nvmlDeviceGetCurrentClocksThrottleReasons = lambda _: 0x1 | 0x4 | 0x40
    module.nvmlDeviceGetComputeRunningProcesses = lambda _: [
        types.SimpleNamespace(pid=os.getpid()),
        types.SimpleNamespace(pid=-1),
    ]
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_clocks_are_read_and_what_the_device_hides_is_none(nvml):
    clocks = conditions.ClockReader(Cuda())
    (sample,) = clocks.sample("during")
    assert (clocks.missing, clocks.driver) == ("", "580.95")
    assert (sample.when, sample.sm_clock_mhz, sample.max_sm_clock_mhz, sample.memory_clock_mhz) == (
        "during",
        1005,
        1980,
        2619,
    )
    assert (sample.power_w, sample.power_limit_w, sample.temperature_c) == (350.5, 700.0, None)
    assert (
        sample.throttle_reasons == ["software power cap", "hardware thermal slowdown"] and sample.other_processes == 1
    )


@pytest.mark.parametrize("seen", [[], [-1], [-1, -2]])
def test_processes_are_not_counted_where_the_driver_does_not_show_our_own(nvml, seen):
    """In a container process numbers may be another's, or none are shown: a count would accuse ourselves."""
    nvml.nvmlDeviceGetComputeRunningProcesses = lambda _: [types.SimpleNamespace(pid=p) for p in seen]
    (sample,) = conditions.ClockReader(Cuda()).sample("during")
    assert sample.other_processes is None


def test_an_nvml_that_does_not_answer_is_a_reason(nvml):
    def fails():
        raise nvml.NVMLError("Driver Not Loaded")

    nvml.nvmlInit = fails
    clocks = conditions.ClockReader(Cuda())
    assert "Driver Not Loaded" in clocks.missing and clocks.sample("before") == []


def test_without_nvidia_ml_py_the_sidecar_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py" in conditions.ClockReader(Cuda()).missing


def test_other_devices_have_no_nvml():
    assert "fake" in conditions.ClockReader(FakeDevice()).missing


def test_switches_that_matter_are_kept_and_others_are_not(monkeypatch):
    monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/home/somebody/dump")
    monkeypatch.setenv("SECRET_TOKEN", "x")
    found = conditions.environment()
    assert found["CUDA_LAUNCH_BLOCKING"] == "1" and "SECRET_TOKEN" not in found
    assert "somebody" not in found["XLA_FLAGS"]


def test_the_commit_is_that_of_the_working_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert conditions.git_state() == ("", None)
    for words in (
        ["init", "-q"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"],
    ):
        subprocess.run(["git", *words], check=True, cwd=tmp_path)
    commit, changed = conditions.git_state()
    assert len(commit) == 40 and changed is False


def test_versions_name_python_and_this_project():
    found = conditions.versions(FakeDevice())
    assert {"python", "traceanalyzer", "numpy"} <= set(found)
