"""One function measured from Python: ``measure(fn, *args)`` gives its two times, what the trace says, and whether it is right."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traceanalyzer.capture.api import Capture, CaptureOptions, capture_call
from traceanalyzer.capture.correctness import Tolerances
from traceanalyzer.capture.device import DeviceAdapter
from traceanalyzer.capture.precision import MOST_RUNS, half_width, next_calls
from traceanalyzer.errors import TraceAnalyzerError
from traceanalyzer.trace.sidecar import ProtocolResult, Sidecar

COLD = "do_bench"
_WARM = ("profiler_self_time", "graph_unrolled", "backlog")
_END_TO_END = "wall_sync_once"


@dataclass(frozen=True)
class Measured:
    """What was measured. Times in microseconds per call; None where the device or the capture has none, with ``reason``.

    ``device_us``: kernel time with warm caches, ``cold_us`` behind a cache clear, ``end_to_end_us`` what a call costs in a
    loop. ``*_ci95_us``: order-statistic 95 % interval of the median. ``verdict``: ok, suspect or cannot-judge, of the trace,
    with ``headline``. ``correct`` is None where no reference was given. ``sidecar`` has every protocol's samples.
    """

    name: str
    device_us: float | None
    device_ci95_us: tuple[float, float] | None
    cold_us: float | None
    end_to_end_us: float | None
    end_to_end_ci95_us: tuple[float, float] | None
    verdict: str
    headline: str
    correct: bool | None
    reason: str
    sidecar: Sidecar

    @property
    def time_us(self) -> float | None:
        """The device's time, end to end where the device has no clock of its own."""
        return self.device_us if self.device_us is not None else self.end_to_end_us

    @property
    def ci95_us(self) -> tuple[float, float] | None:
        """The interval of :attr:`time_us`."""
        return self.device_ci95_us if self.device_us is not None else self.end_to_end_ci95_us

    def __str__(self) -> str:
        def time(value: float | None) -> str:
            return "n/a" if value is None else f"{value:,.4g} us"

        return (
            f"{self.name}: device {time(self.device_us)} (cold cache {time(self.cold_us)}), end to end {time(self.end_to_end_us)}; "
            f"{self.verdict}: {self.headline}"
        )


def measure(
    fn: Callable[..., Any], /, *args: Any, reference: Callable[..., Any] | None = None, tolerance: Tolerances | None = None,
    iters: int = 100, warmup: int = 10, budget_s: float = 10.0, precision: float | None = None, name: str | None = None,
    device: str | DeviceAdapter = "auto", out: str | Path | None = None, **kwargs: Any,
) -> Measured:  # fmt: skip
    """Return the times of ``fn(*args, **kwargs)``, each under the protocol that answers its question.

    ``precision``: go on until the 95 % interval of the time is within that share of it to either side (0.01: one per cent), in
    runs of more calls each, as long as they fit into ``budget_s`` each and narrow it. ``out``: a folder that keeps trace and sidecar; without one they
    are not kept. Other arguments as in :func:`traceanalyzer.capture.capture`. Raises CaptureUnavailable.
    """
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(out) if out is not None else Path(scratch)
        options = CaptureOptions(
            protocols=(_END_TO_END, COLD, *_WARM), warmup=warmup, iters=iters, reference=reference, tolerance=tolerance, name=name,
            budget_s=budget_s, device=device,
        )  # fmt: skip
        before: float | None = None
        for _ in range(MOST_RUNS):
            found = measured_of(capture_call(fn, args, kwargs, out=folder, options=options))
            half = half_width(found.time_us, found.ci95_us)
            calls = (
                None
                if precision is None or found.time_us is None
                else next_calls(options.iters, half, before, precision)
            )
            if calls is None:
                return found
            options, before = replace(options, iters=calls), half
        return found


def measured_of(made: Capture) -> Measured:
    """Return the result of a capture."""
    record = made.operation
    results = {p.protocol: p for p in record.protocols}
    warm = next((results[k] for k in _WARM if k in results and results[k].p50_us is not None), None)
    loop = results.get(_END_TO_END)
    status, headline = "cannot-judge", "there is no trace"
    if made.trace is not None:
        try:
            verdict = made.report().data.verdict
            status, headline = verdict.status, verdict.headline
        except TraceAnalyzerError as error:
            headline = str(error)
    reasons = [p.reason for p in (warm, loop) if p is not None and p.reason]
    if warm is None and _WARM[0] in results:
        reasons.append(results[_WARM[0]].reason)
    return Measured(
        record.name, _time(warm), warm.ci95_us if warm else None, _time(results.get(COLD)), _time(loop), loop.ci95_us if loop else None,
        status, headline, record.correctness.passed, record.correctness.reason or "; ".join(reasons), made.sidecar,
    )  # fmt: skip


def _time(result: ProtocolResult | None) -> float | None:
    return result.p50_us if result is not None else None
