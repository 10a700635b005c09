"""The conditions of a capture: clocks, power and temperature by NVML, versions, environment switches, the git commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from traceanalyzer.capture.device import DeviceAdapter
from traceanalyzer.trace.names import scrub_paths
from traceanalyzer.trace.sidecar import ClockSample

SWITCHES = (
    "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_MAX_CONNECTIONS", "CUDA_SCALE_LAUNCH_QUEUES", "CUDA_MODULE_LOADING", "CUDA_CACHE_DISABLE",
    "CUDA_VISIBLE_DEVICES", "CUDA_FORCE_PTX_JIT", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF",
    "PYTORCH_NO_CUDA_MEMORY_CACHING", "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE", "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE",
    "CUBLAS_WORKSPACE_CONFIG", "HIP_LAUNCH_BLOCKING", "AMD_SERIALIZE_KERNEL", "AMD_SERIALIZE_COPY", "HIP_VISIBLE_DEVICES",
    "GPU_MAX_HW_QUEUES", "HSA_ENABLE_INTERRUPT", "SYCL_PI_LEVEL_ZERO_USE_IMMEDIATE_COMMANDLISTS", "TRITON_INTERPRET", "TRITON_DEBUG",
    "TRITON_ALWAYS_COMPILE", "TRITON_DISABLE_LINE_INFO", "XLA_FLAGS", "JAX_PLATFORMS", "JAX_ENABLE_X64", "JAX_DISABLE_JIT",
    "TF_ENABLE_ONEDNN_OPTS", "OMP_NUM_THREADS", "MKL_NUM_THREADS",
)  # fmt: skip
"""Environment variables that change what a benchmark reads."""


def environment() -> dict[str, str]:
    """Return the switches that are set, folders left out of their values."""
    return {name: scrub_paths(os.environ[name])[:200] for name in SWITCHES if name in os.environ}


def versions(device: DeviceAdapter) -> dict[str, str]:
    """Return versions of Python and of every package that matters and is installed."""
    from traceanalyzer._version import __version__

    found = {"traceanalyzer": __version__, "python": platform.python_version(), **device.versions()}
    for package in ("triton", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def git_state() -> tuple[str, bool | None]:
    """Return the commit of the working folder and whether tracked files differ from it; nothing outside a repository."""
    try:
        commit = _git("rev-parse", "HEAD")
        return (commit, bool(_git("status", "--porcelain", "--untracked-files=no"))) if commit else ("", None)
    except (OSError, subprocess.SubprocessError):
        return "", None


def _git(*words: str) -> str:
    run = subprocess.run(["git", *words], capture_output=True, text=True, timeout=10, check=False)
    return run.stdout.strip() if run.returncode == 0 else ""


class ClockReader:
    """Reads clocks and power of one NVIDIA device; ``missing`` says why it cannot, empty if it can."""

    def __init__(self, device: DeviceAdapter) -> None:
        self.missing = ""
        self.driver = ""
        self._nvml: Any = None
        if device.facts().kind != "cuda":
            self.missing = f"read through NVML, which knows NVIDIA devices only (this is {device.facts().kind})"
            return
        try:
            import pynvml
        except ImportError:
            self.missing = "not known without nvidia-ml-py, which is not installed"
            return
        try:
            pynvml.nvmlInit()
            uuid = getattr(device, "uuid", lambda: "")()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid) if uuid else pynvml.nvmlDeviceGetHandleByIndex(0)
            self.driver = _text(pynvml.nvmlSystemGetDriverVersion())
        except pynvml.NVMLError as error:
            self.missing = f"NVML does not answer ({' '.join(str(error).split())[:120]})"
            return
        self._nvml = pynvml

    def sample(self, when: str) -> list[ClockSample]:
        """Return one sample, or nothing where clocks cannot be read; a value that the device hides is None."""
        n = self._nvml
        if n is None:
            return []
        handle = self._handle
        milliwatts = self._ask(lambda: n.nvmlDeviceGetPowerUsage(handle))
        limit = self._ask(lambda: n.nvmlDeviceGetEnforcedPowerLimit(handle))
        processes = self._ask(lambda: [p.pid for p in n.nvmlDeviceGetComputeRunningProcesses(handle)])
        # in a container the driver may number processes otherwise, or hide them: where we do not find ourselves, nobody is counted
        others = None if processes is None or os.getpid() not in processes else len(processes) - 1
        return [
            ClockSample(
                when=when,
                sm_clock_mhz=self._ask(lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_SM)),
                max_sm_clock_mhz=self._ask(lambda: n.nvmlDeviceGetMaxClockInfo(handle, n.NVML_CLOCK_SM)),
                memory_clock_mhz=self._ask(lambda: n.nvmlDeviceGetClockInfo(handle, n.NVML_CLOCK_MEM)),
                power_w=None if milliwatts is None else milliwatts / 1000,
                power_limit_w=None if limit is None else limit / 1000,
                temperature_c=self._ask(lambda: n.nvmlDeviceGetTemperature(handle, n.NVML_TEMPERATURE_GPU)),
                throttle_reasons=_reasons(self._ask(lambda: n.nvmlDeviceGetCurrentClocksThrottleReasons(handle)) or 0),
                other_processes=others,
            )
        ]

    def _ask(self, question: Any) -> Any:
        try:
            return question()
        except (self._nvml.NVMLError, AttributeError):
            return None


_THROTTLE = {
    0x2: "application clocks setting", 0x4: "software power cap", 0x8: "hardware slowdown", 0x10: "sync boost",
    0x20: "software thermal slowdown", 0x40: "hardware thermal slowdown", 0x80: "hardware power brake", 0x100: "display clock setting",
}  # fmt: skip
"""NVML's bits; the lowest means idle, which holds nothing down."""


def _reasons(bits: int) -> list[str]:
    return [name for bit, name in _THROTTLE.items() if bits & bit]


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def host() -> dict[str, str]:
    """Return the host's name and system; only written where the user asks for it."""
    return {"name": platform.node(), "system": platform.platform()}
