"""One operation through every protocol, in interleaved order. Measures and writes down; judges nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from traceanalyzer import number_text
from traceanalyzer.analysis import stats
from traceanalyzer.analysis.steadiness import changepoint
from traceanalyzer.capture import agreement, correctness
from traceanalyzer.capture.device import Call, DeviceAdapter
from traceanalyzer.capture.frameworks import framework_of, leaves
from traceanalyzer.capture.plan import Plan, plan
from traceanalyzer.capture.protocols import PROTOCOLS, TIMED
from traceanalyzer.capture.protocols.base import Abstain, Protocol
from traceanalyzer.capture.protocols.profiler import Profiler
from traceanalyzer.capture.said import said
from traceanalyzer.capture.warmup import trend, warm_up
from traceanalyzer.errors import CaptureUnavailable
from traceanalyzer.trace.sidecar import (
    Agreement,
    Calibration,
    Correctness,
    Flush,
    Inflation,
    OperationRecord,
    ProtocolResult,
    WarmUp,
)


@dataclass(frozen=True)
class Operation:
    """The thing being measured. ``call`` takes no arguments; ``args`` and ``kwargs`` are those it is made with.

    ``earlier_ns``: times of calls that were made before the session, which count as warm-up.
    """

    name: str
    call: Call
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    reference: Callable[..., Any] | None = None
    tolerance: correctness.Tolerances | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)
    bytes_moved: int | None = None
    flops: int | None = None
    seed: int | None = None
    earlier_ns: tuple[int, ...] = ()


@dataclass(frozen=True)
class Settings:
    """``iterations`` calls per protocol; ``warm_up`` at least so many before; ``budget_s`` for all readings together."""

    protocols: tuple[str, ...] = PROTOCOLS
    warm_up: int = 10
    iterations: int = 100
    budget_s: float = 30.0


NOT_SO_FAR = "the capture did not come so far"
_CLOCK_SAMPLES = 5
_BUSY_NS = 20_000_000
"""Calls that take about so long are in flight when the clocks are sampled; a clock follows its load in some milliseconds."""
_MOST_BUSY_CALLS = 1000
_ENOUGH_TO_TELL = 20
_LEAST_PROFILED = 6
"""Under six calls a median has no 95 % interval."""

Observer = Callable[[str, int, int], None]
"""Told what is being done, and how many of how many steps are done."""
Keep = Callable[[OperationRecord], None]
"""Given the record so far, after each step: what was measured must outlive the function that fails."""


class Session:
    """Captures one operation on one device. ``record`` holds what is known so far."""

    def __init__(
        self, device: DeviceAdapter, operation: Operation, settings: Settings, trace: Path, *, observe: Observer = lambda *_: None,
        keep: Keep = lambda _: None, sample_clocks: Callable[[], None] | None = None,
        calibration: Calibration | None = None,
    ) -> None:  # fmt: skip
        self._device, self._operation, self._settings, self._trace = device, operation, settings, trace
        self._observe, self._keep, self._sample_clocks = observe, keep, sample_clocks
        self._stage, self._calls, self._spent_ns, self._level_ns = "the first call", 0, 0, 1.0
        self._calibration = calibration or Calibration()
        self._samples: dict[str, list[float]] = {p: [] for p in settings.protocols}
        self._reasons: dict[str, str] = {}
        self._parameters: dict[str, dict[str, str | int | float | bool]] = {}
        self.notes: list[str] = []
        self.record = OperationRecord(
            name=operation.name,
            inputs=dict(operation.inputs),
            warm_up=WarmUp(0, 0, 0.0, False, NOT_SO_FAR),
            flush=Flush(),
            correctness=Correctness(None, NOT_SO_FAR),
            protocols=[],
            agreement=Agreement(None, None, NOT_SO_FAR),
            inflation_missing=NOT_SO_FAR,
            bytes_moved=operation.bytes_moved,
            flops=operation.flops,
            seed=operation.seed,
        )

    def run(self) -> OperationRecord:
        """Return the finished record. Raises CaptureUnavailable where the function fails; the record so far is kept."""
        for _ in self.turns():
            pass
        return self.record

    def turns(self) -> Iterator[None]:
        """Measure in steps: what comes before the rounds, each round, what comes behind. Sessions in turn share what drifts.

        Raises CaptureUnavailable where the function fails; ``record`` is finished when the last step is done.
        """
        try:
            yield from self._turns()
        except (CaptureUnavailable, KeyboardInterrupt, GeneratorExit):
            self._write()
            raise
        except BaseException as error:
            self._write()
            raise self._failure(error) from error

    def _turns(self) -> Iterator[None]:
        operation, device, settings = self._operation, self._device, self._settings
        before = correctness.snapshot((operation.args, operation.kwargs)) if operation.reference else None
        self._observe("first call", 0, 1)
        start = device.now_ns()
        first = self._call()
        device.synchronize(first)
        first_ns = device.now_ns() - start
        _refuse_what_is_no_result(first)
        self._check(first, before)
        held = sum(int(getattr(x, "nbytes", 0)) for x in leaves(first)) if device.holds_outputs else 0
        first = None
        self._stage = "the warm-up"
        budget_ns = int(settings.budget_s * 1e9)
        # of ordinary calls alone: the reference, cache clears and unrolled graphs hold far more
        device.forget_peak_memory()
        warm, level = warm_up(
            device,
            self._call,
            settings.warm_up,
            budget_ns // 4,
            [*operation.earlier_ns, first_ns],
            lambda: self._observe("warm-up", self._calls, 0),
        )
        self._level_ns = level
        peak = device.peak_memory_bytes()
        copies = sum(int(getattr(x, "nbytes", 0)) for x in leaves(before) if _on_a_device(x))
        self.record = replace(
            self.record, warm_up=warm, peak_memory_bytes=None if peak is None else max(0, peak - copies)
        )
        timed = [p() for p in TIMED if p.key in settings.protocols]
        blocks = sum(p.loop for p in timed)
        planned = plan(settings.iterations, level, blocks, len(timed) - blocks, budget_ns, held)
        if planned.note:
            self.notes.append(planned.note)
        self._write()
        yield
        yield from self._rounds(timed, planned)
        if Profiler.key in settings.protocols:
            left = max(budget_ns - self._spent_ns, budget_ns // 10)
            fitting = max(_LEAST_PROFILED, int(left / (2 * max(level, 1.0))))  # the loop runs once without the profiler
            self._profile(min(settings.iterations, max(planned.round_calls * planned.rounds, 1), fitting))
        self._check_steadiness()
        self._check_again(before)
        self._write()

    def _call(self) -> Any:
        self._calls += 1
        return self._operation.call()

    def _rounds(self, timed: list[Protocol], planned: Plan) -> Iterator[None]:
        """Run every protocol in every round, each round beginning with another one: drift then falls on all alike."""
        ready = []
        for protocol in timed:
            self._stage = protocol.key
            calls = planned.block_calls if protocol.loop else planned.round_calls
            self._parameters[protocol.key] = {"rounds": planned.rounds, "calls_per_round": calls}
            reason = protocol.cannot(self._device) or self._alone(
                lambda p=protocol, n=calls: p.prepare(self._device, self._call, n)  # type: ignore[misc]
            )
            if reason:
                self._reasons[protocol.key] = reason
            else:
                ready.append((protocol, calls))
        done, budget_ns = 0, int(self._settings.budget_s * 1e9)
        sampled = {i * planned.rounds // _CLOCK_SAMPLES for i in range(_CLOCK_SAMPLES)}
        for turn in range(planned.rounds):
            if self._sample_clocks is not None and turn in sampled:
                self._sample_while_busy(self._sample_clocks)
            begun = self._device.now_ns()  # a turn of this session alone: others may run between two of them
            if done and self._spent_ns >= budget_ns:
                self.notes.append(
                    f"the budget of {self._settings.budget_s:g} s ended after {done} of {planned.rounds} rounds"
                )
                break
            for protocol, calls in ready[turn % max(1, len(ready)) :] + ready[: turn % max(1, len(ready))]:
                if protocol.key in self._reasons:
                    continue
                self._stage = protocol.key
                self._observe(protocol.key, turn, planned.rounds)
                reason = self._alone(
                    lambda p=protocol, n=calls: self._samples[p.key].extend(  # type: ignore[misc]
                        p.measure(self._device, self._call, n)
                    )
                )
                if reason:
                    self._reasons[protocol.key] = reason
                self._parameters[protocol.key] |= protocol.parameters()
            done += 1
            self._spent_ns += self._device.now_ns() - begun
            self._count_rounds(timed, done)
            self._write()
            yield

    def _sample_while_busy(self, sample: Callable[[], None]) -> None:
        """Sample the clocks with calls in flight, outside of every reading: an idle device's clock says nothing about them."""
        self._stage = "clock samples"
        calls = min(_MOST_BUSY_CALLS, max(1, int(_BUSY_NS / max(self._level_ns, 1.0))))
        outputs = None
        for _ in range(calls):
            outputs = self._call()
        sample()
        self._device.synchronize(outputs)

    def _alone(self, step: Callable[[], None]) -> str:
        """Run one step of one protocol; return why that protocol has no reading, empty where all went well.

        What a protocol needs beyond the call (a buffer to clear, a graph) may fail and leaves the others whole; what the
        function itself raises is raised: it is called once more, alone, to tell the two apart.
        """
        try:
            step()
        except Abstain as abstained:
            return str(abstained)
        except Exception as error:
            first = said(error, 160)
            with contextlib.suppress(Exception):
                self._device.synchronize()
            try:
                self._device.synchronize(self._call())
            except Exception:
                raise error from None
            if self._device.is_out_of_memory(error):
                return f"memory ran out for what this protocol needs beyond the call: {first}"
            return f"this protocol failed where the call alone does not ({type(error).__name__}: {first})"
        return ""

    def _count_rounds(self, timed: list[Protocol], rounds: int) -> None:
        """Write rounds and calls as they were made, which may be fewer than planned, or a framework's own choice."""
        for protocol in timed:
            if not (made := len(self._samples[protocol.key])):
                continue
            found = self._parameters[protocol.key]
            found["rounds"] = rounds
            if protocol.per_call and made != rounds * int(found["calls_per_round"]):
                found["calls_per_round"] = round(made / rounds, 2)

    def _profile(self, calls: int) -> None:
        profiler = Profiler(self._operation.name, self._trace)
        self._stage = profiler.key
        self._observe(profiler.key, 0, 1)
        self._parameters[profiler.key] = {"rounds": 1, "calls_per_round": calls}
        reason = profiler.cannot(self._device)
        unprofiled = self._host_times(calls) if not reason else []
        try:
            if not reason:
                self._samples[profiler.key] = profiler.measure(self._device, self._call, calls)
        except Abstain as abstained:
            reason = str(abstained)
        self._parameters[profiler.key] |= profiler.parameters()
        if reason:
            self._reasons[profiler.key] = reason
        if profiler.run is None:
            self.record = replace(self.record, inflation_missing=reason)
        else:
            medians = [round(float(np.median(times)) / 1000, 3) for times in (unprofiled, profiler.run.host_ns)]
            self.record = replace(self.record, inflation=Inflation(*medians), inflation_missing="")

    def _host_times(self, calls: int) -> list[int]:
        """Return the host time of each call in the loop that the profiler will record, without the profiler."""
        device = self._device
        device.synchronize()
        outputs: list[Any] = []
        times = []
        for _ in range(calls):
            start = device.now_ns()
            output = self._call()
            times.append(device.now_ns() - start)
            if not device.holds_outputs:
                outputs.clear()
            outputs.append(output)
        device.synchronize(outputs)
        return times

    def _check(self, output: Any, before: Any) -> None:
        operation = self._operation
        if operation.reference is None:
            found = Correctness(None, "no reference was given: nothing says that the result is right")
        else:
            self._observe("reference", 0, 1)
            found = self._compared(output, before)
        self.record = replace(self.record, correctness=found)

    def _compared(self, output: Any, before: Any) -> Correctness:
        operation = self._operation
        assert operation.reference is not None
        if not correctness.has_arrays(output):
            output = (operation.args, operation.kwargs)
        return correctness.check(
            correctness.snapshot(output), operation.reference, before[0], before[1], operation.tolerance
        )

    def _check_steadiness(self) -> None:
        """Take back that the level was steady where the readings themselves go one way, or change their level."""
        for key in ("wall_sync_each", "event_pair_sync", "wall_sync_once"):
            samples = np.array(self._samples.get(key, []), dtype=np.float64).astype(np.int64)
            if not self.record.warm_up.steady or len(samples) < _ENOUGH_TO_TELL:
                continue
            slope, change = trend(samples), changepoint(samples, 0.1)
            reason = f"{key} {slope} over its {len(samples)} readings" if slope else ""
            if change is not None and not slope:
                reason = f"{key} changes from {number_text.duration(change.before)} to {number_text.duration(change.after)} after {change.at} of {len(samples)} readings"
            if reason:
                self.record = replace(self.record, warm_up=replace(self.record.warm_up, steady=False, reason=reason))

    def _check_again(self, before: Any) -> None:
        """Compare a last result too: a function that is right once and then returns what it has is not measured."""
        found = self.record.correctness
        if self._operation.reference is None or found.passed is not True:
            return
        self._stage = "the last check"
        self._refill(before)
        output = self._call()
        self._device.synchronize(output)
        again = self._compared(output, before)
        if again.passed is False:
            again = replace(again, reason=f"right in the first call, wrong after {self._calls}: {again.reason}")
            self.record = replace(self.record, correctness=again)

    def _refill(self, before: Any) -> None:
        """Give inputs that the calls have changed their first values back; others are left alone."""
        for now, then in zip(leaves((self._operation.args, self._operation.kwargs)), leaves(before), strict=False):
            if framework_of(now) == "pytorch" and hasattr(now, "copy_") and now.shape == then.shape:
                import torch

                with torch.no_grad():
                    now.copy_(then)
                if getattr(now, "is_leaf", False):
                    now.grad = None  # gradients add up from call to call

    def _results(self) -> list[ProtocolResult]:
        results = []
        for key in self._settings.protocols:
            samples = [round(s / 1000, 4) for s in self._samples[key]]
            reason = self._reasons.get(key, "") or ("" if samples else NOT_SO_FAR)
            values = np.array(samples, dtype=np.float64)
            interval = stats.median_interval(values)
            column = Profiler.column if key == Profiler.key else next(p.column for p in TIMED if p.key == key)
            results.append(
                ProtocolResult(
                    key,
                    column,
                    self._parameters.get(key, {}),
                    len(samples),
                    stats.median(values),
                    interval,
                    stats.mad(values),
                    samples,
                    reason,
                )
            )
        return results

    def _write(self) -> None:
        results = self._results()
        self.record = replace(
            self.record, protocols=results, agreement=agreement.agreement(results, self._calibration),
        )  # fmt: skip
        self._keep(self.record)

    def _failure(self, error: BaseException) -> CaptureUnavailable:
        text = said(error, 300)
        where = f"in {self._stage}, call {self._calls}"
        if self._device.is_out_of_memory(error):
            return CaptureUnavailable(
                "out_of_memory", f"memory ran out {where}: {text or type(error).__name__}", hint="use a smaller preset"
            )
        if isinstance(error, SystemExit):
            return CaptureUnavailable(
                "function_exited",
                f"the function ended the program {where} (exit code {error.code})",
                hint="measure a function that returns",
            )
        if "CUDA" in text and any(
            s in text for s in ("not compiled", "no NVIDIA driver", "No CUDA GPUs", "not available", "driver")
        ):
            return CaptureUnavailable(
                "needs_gpu",
                f"the function needs a CUDA device, and torch sees none here ({text[:120]})",
                hint="run it where there is one",
            )
        return CaptureUnavailable(
            "function_raised", f"{type(error).__name__} {where}: {text}", hint="make it run alone first"
        )


def _on_a_device(value: Any) -> bool:
    return getattr(getattr(value, "device", None), "type", "cpu") != "cpu"


def _refuse_what_is_no_result(value: Any) -> None:
    import inspect

    if inspect.iscoroutine(value):
        value.close()
        raise CaptureUnavailable(
            "no_work", "the function returned a coroutine and did nothing", hint="wrap it: lambda: asyncio.run(f())"
        )
    if inspect.isgenerator(value) or inspect.isasyncgen(value):
        raise CaptureUnavailable(
            "no_work",
            "the function returned a generator and did nothing",
            hint="wrap it in a function that consumes it",
        )
