"""The GPU's clock held at one value during a benchmark, and given back however the benchmark ends.

A process of its own locks the clock and waits until its standard input is closed, which happens at the end of the benchmark,
at Ctrl-C and when the benchmark is killed; then it gives the clock back to the driver. It is in a session of its own, so that
Ctrl-C does not end it first. Locking needs the rights of an administrator; where they are missing nothing is changed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

BASE_SHARE = 0.75
"""Share of the highest clock that is locked where the driver names no default clock: low enough to be held under load."""
_ANSWER_S = 20.0


@contextlib.contextmanager
def locked_clocks() -> Iterator[str]:
    """Lock the SM clock of the machine's one visible NVIDIA GPU inside; yields what was done, or why nothing was, in words."""
    guard = subprocess.Popen(
        [sys.executable, "-m", "traceanalyzer.capture.clock_lock"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
    )  # fmt: skip
    try:
        assert guard.stdout is not None
        answer = guard.stdout.readline().decode("utf-8", "replace").strip()
        yield answer or "the clock is not locked: the process that should lock it ended"
    finally:
        assert guard.stdin is not None
        with contextlib.suppress(OSError):
            guard.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(_ANSWER_S)


def main() -> int:
    """Lock, say so in one line, wait for the end of standard input, and give the clock back."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        import pynvml
    except ImportError:
        _say("the clock is not locked: nvidia-ml-py is not installed")
        return 0
    try:
        pynvml.nvmlInit()
        handle = _handle(pynvml)
        clock = _clock(pynvml, handle)
        pynvml.nvmlDeviceSetGpuLockedClocks(handle, clock, clock)
    except (pynvml.NVMLError, AttributeError, LookupError) as error:
        _say(f"the clock is not locked: {' '.join(str(error).split())[:200]}")
        return 0
    try:
        with contextlib.suppress(OSError):  # nobody may be there any more to read it
            _say(f"the SM clock was locked at {clock} MHz")
        sys.stdin.buffer.read()
    finally:
        pynvml.nvmlDeviceResetGpuLockedClocks(handle)
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _handle(pynvml: Any) -> Any:
    """Return the one GPU that is meant. NVML and CUDA may number several in different orders, so an index will not do."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip()
    if visible.startswith("GPU-"):
        return pynvml.nvmlDeviceGetHandleByUUID(visible)
    count = pynvml.nvmlDeviceGetCount()
    if count != 1:
        raise LookupError(f"NVML sees {count} GPUs; name one: CUDA_VISIBLE_DEVICES=GPU-... (nvidia-smi -L)")
    return pynvml.nvmlDeviceGetHandleByIndex(0)


def _clock(pynvml: Any, handle: Any) -> int:
    """Return the clock that the device holds under load: the driver's default, else a share of the highest."""
    try:
        return int(pynvml.nvmlDeviceGetDefaultApplicationsClock(handle, pynvml.NVML_CLOCK_GRAPHICS))
    except (pynvml.NVMLError, AttributeError):
        return int(BASE_SHARE * pynvml.nvmlDeviceGetMaxClockInfo(handle, pynvml.NVML_CLOCK_SM))


if __name__ == "__main__":
    sys.exit(main())
