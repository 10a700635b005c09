"""The minimal honest timer: barrier, call, barrier, whatever the framework."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from traceanalyzer.capture.frameworks import framework_of, leaves, loaded


@dataclass(frozen=True)
class Timed:
    """One call: its ``result``, and ``elapsed_ns`` from an idle device to the end of all its work.

    ``framework`` is that of the outputs (or inputs), empty for plain Python; ``barrier`` says what was waited for.
    A single reading from an empty queue: dispatch, launch latency, kernel and synchronise in a row
    (``wall_sync_each``). It is what a lone call costs, and never the kernel's own time.
    """

    result: Any
    elapsed_ns: int
    framework: str
    barrier: str

    @property
    def elapsed_us(self) -> float:
        """Elapsed time in microseconds."""
        return self.elapsed_ns / 1000


def timed(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Timed:
    """Return the result of ``fn(*args, **kwargs)`` and its time with all device work done before and after.

    The framework is found from the outputs, or from the inputs where the outputs hold no array; every framework this
    process has loaded is drained before the clock starts, so that nobody else's work is counted.
    """
    _drain(args, kwargs)
    start = time.perf_counter_ns()
    result = fn(*args, **kwargs)
    framework = framework_of(result) or framework_of(args, kwargs)
    barrier = _wait(framework, result, args, kwargs)
    return Timed(result, time.perf_counter_ns() - start, framework, barrier)


def _drain(*values: Any) -> None:
    for framework in loaded():
        _wait(framework, *values)


def _wait(framework: str, *values: Any) -> str:
    """Wait for a framework's work on the values' devices; returns what was called."""
    if framework == "pytorch":
        return _wait_torch(values)
    if framework == "jax":
        from importlib import import_module

        jax: Any = import_module("jax")
        jax.block_until_ready([v for v in leaves(values) if isinstance(v, jax.Array)])
        return "jax.block_until_ready"
    if framework == "tensorflow":
        import tensorflow as tf

        tf.test.experimental.sync_devices()
        return "tf.test.experimental.sync_devices"
    return "none: no array of a known framework, so the call is taken to be done when it returns"


def _wait_torch(values: Any) -> str:
    import torch

    waited = []
    devices = [d for v in leaves(values) if isinstance(d := getattr(v, "device", None), torch.device)]
    # the current device too: a call may launch where none of its arguments or results shows it
    for kind, module in (("cuda", torch.cuda), ("xpu", getattr(torch, "xpu", None))):
        if module is None or not module.is_available() or not module.is_initialized():
            continue
        current = module.current_device()
        for index in sorted({current, *(current if d.index is None else d.index for d in devices if d.type == kind)}):
            module.synchronize(index)
        waited.append(f"torch.{kind}.synchronize")
    if any(d.type == "mps" for d in devices):
        torch.mps.synchronize()
        waited.append("torch.mps.synchronize")
    return " and ".join(waited) or "none needed: torch on the CPU is done when it returns"
