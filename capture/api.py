"""Capture from Python: one function under every protocol, with its trace, sidecar and report."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceanalyzer._version import __version__
from traceanalyzer.capture import conditions
from traceanalyzer.capture.calibrate import calibrate
from traceanalyzer.capture.correctness import Tolerances
from traceanalyzer.capture.device import DeviceAdapter
from traceanalyzer.capture.frameworks import framework_of, leaves, loaded, open_device
from traceanalyzer.capture.place import TRACE_NAME
from traceanalyzer.capture.protocols import chosen_protocols
from traceanalyzer.capture.session import Observer, Operation, Session, Settings
from traceanalyzer.errors import CaptureUnavailable, OptionError, TraceAnalyzerError
from traceanalyzer.trace.sidecar import SCHEMA, OperationRecord, Sidecar, encode_sidecar, sidecar_path

if TYPE_CHECKING:
    from traceanalyzer.report.public import Report


@dataclass(frozen=True)
class Capture:
    """What a capture made. ``trace`` is None where no profiler ran; ``out`` is the folder of both files.

    ``failure`` is the error that ended it early, if one did: the sidecar then holds what was measured before.
    """

    sidecar: Sidecar
    out: Path
    trace: Path | None
    failure: TraceAnalyzerError | None = None

    @property
    def operation(self) -> OperationRecord:
        """The record of the operation."""
        return self.sidecar.operations[0]

    def report(self) -> Report:
        """Return the report of the trace with its sidecar. Raises CaptureUnavailable where there is no trace."""
        from traceanalyzer.api import analyze

        if self.trace is None:
            raise CaptureUnavailable(
                "no_trace", "this capture has no trace", hint="ask for the protocol profiler_self_time"
            )
        return analyze(self.trace)

    def __str__(self) -> str:
        from traceanalyzer.render.unreported import render_measured

        return render_measured(self.sidecar)


@dataclass(frozen=True)
class CaptureOptions:
    """How to capture; :func:`capture` says what each means, and takes them as keywords."""

    protocols: str | tuple[str, ...] = "all"
    warmup: int = 10
    iters: int = 100
    reference: Callable[..., Any] | None = None
    tolerance: Tolerances | None = None
    name: str | None = None
    budget_s: float = 30.0
    device: str | DeviceAdapter = "auto"
    framework: str = "auto"
    seed: int | None = None
    bytes_moved: int | None = None
    flops: int | None = None
    with_host: bool = False
    inputs: Mapping[str, str] | None = None
    observe: Observer = lambda *_: None


def capture(
    fn: Callable[..., Any], /, *args: Any, out: str | Path, protocols: str | tuple[str, ...] = "all", warmup: int = 10, iters: int = 100,
    reference: Callable[..., Any] | None = None, tolerance: Tolerances | None = None, name: str | None = None,
    budget_s: float = 30.0, device: str | DeviceAdapter = "auto", framework: str = "auto", seed: int | None = None,
    bytes_moved: int | None = None, flops: int | None = None, with_host: bool = False, inputs: Mapping[str, str] | None = None,
    observe: Observer = lambda *_: None, **kwargs: Any,
) -> Capture:  # fmt: skip
    """Time ``fn(*args, **kwargs)`` under every protocol and write ``trace.json.gz`` with its sidecar into ``out``.

    Args:
        fn: what is measured; called many times with the same arguments.
        out: folder, made if need be. Files of an earlier capture in it are replaced.
        protocols: ``all`` or keys of :data:`traceanalyzer.capture.PROTOCOLS`.
        warmup: least number of calls before the measurement; more are made until the level is steady.
        iters: calls per protocol. Fewer are made where they would not fit into ``budget_s`` seconds.
        reference: a function of the same arguments; gets floating tensors in float64. Its result is compared in the same run.
        tolerance: (rtol, atol) for that, or one for each array of the result; the default is by the result's type.
        device: auto, cuda, xpu, mps or cpu, or an adapter. framework: auto finds it from arguments and result.
        with_host: write the host's name into the sidecar, which is left out otherwise.

    A keyword argument of ``fn`` that is named as one of these: give it with ``functools.partial``, or :func:`capture_call`.

    Raises CaptureUnavailable where nothing can be measured (``fn`` fails, a device or package is missing); what was
    measured before stays in the sidecar.
    """
    return capture_call(
        fn, args, kwargs, out=out, options=CaptureOptions(
            protocols, warmup, iters, reference, tolerance, name, budget_s, device, framework, seed, bytes_moved, flops, with_host,
            inputs, observe,
        ),
    )  # fmt: skip


def capture_call(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, out: str | Path, options: CaptureOptions | None = None
) -> Capture:  # fmt: skip
    """Do what :func:`capture` does for a function whose arguments may have any names, ``out`` and ``name`` too."""
    return begin_call(fn, args, kwargs, out=out, options=options).finish()


def begin_call(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, out: str | Path, options: CaptureOptions | None = None
) -> Begun:  # fmt: skip
    """Return a capture that has begun and measured nothing; :func:`together` runs several in turns."""
    o = options or CaptureOptions()
    protocols, iters, warmup, budget_s, device, observe = (
        o.protocols, o.iters, o.warmup, o.budget_s, o.device, o.observe,
    )  # fmt: skip
    chosen = chosen_protocols((protocols,) if isinstance(protocols, str) else tuple(protocols))
    if iters < 1 or warmup < 0 or not budget_s > 0:
        raise OptionError(
            "bad_count",
            f"iters {iters}, warmup {warmup}, budget_s {budget_s}",
            hint="iters and budget above 0, warmup from 0",
        )
    label = o.name or str(getattr(fn, "__name__", type(fn).__name__))

    def call() -> Any:
        return fn(*args, **kwargs)

    earlier_ns: list[int] = []
    if isinstance(device, DeviceAdapter):
        adapter = device
    else:
        observe("the first call, to find its framework", 0, 1)
        adapter = _device(o.framework, device, call, args, kwargs, earlier_ns)
    operation = Operation(
        label, call, args, kwargs, o.reference, o.tolerance,
        dict(o.inputs) if o.inputs is not None else describe_inputs(args, kwargs), o.bytes_moved, o.flops, o.seed, tuple(earlier_ns),
    )  # fmt: skip
    return begin(
        adapter, operation, Settings(chosen, warmup, iters, budget_s), Path(out), observe=observe, with_host=o.with_host
    )


def run(
    device: DeviceAdapter,
    operation: Operation,
    settings: Settings,
    out: Path,
    *,
    observe: Observer = lambda *_: None,
    with_host: bool = False,
) -> Capture:
    """Run one session and write its files; see :func:`capture`."""
    return begin(device, operation, settings, out, observe=observe, with_host=with_host).finish()


@dataclass
class Begun:
    """A capture that runs in turns. ``failure`` is what ended it early, once something did."""

    session: Session
    turns: Iterator[None]
    end: Callable[[], Capture]
    failure: TraceAnalyzerError | None = None

    def finish(self) -> Capture:
        """Run what is left of it and return what it made. Raises CaptureUnavailable."""
        for _ in self.turns:
            pass
        return self.end()


def together(begun: list[Begun]) -> list[Capture | None]:
    """Run captures in turns: each round of one is measured with the same round of the others. One that fails is None, with its failure."""
    found: list[Capture | None] = [None] * len(begun)
    running = dict(enumerate(begun))
    while running:
        for place, one in list(running.items()):
            try:
                next(one.turns)
            except StopIteration:
                found[place] = one.end()
                del running[place]
            except TraceAnalyzerError as error:
                one.failure = error
                del running[place]
    return found


def begin(
    device: DeviceAdapter,
    operation: Operation,
    settings: Settings,
    out: Path,
    *,
    observe: Observer = lambda *_: None,
    with_host: bool = False,
) -> Begun:
    """Return a session that will write its files into ``out``; see :func:`capture`."""
    trace = out / TRACE_NAME
    target = sidecar_path(trace)
    try:
        out.mkdir(parents=True, exist_ok=True)
        # a trace of an earlier capture beside a new sidecar would be taken for its own
        trace.unlink(missing_ok=True)
        target.unlink(missing_ok=True)
    except OSError as error:
        raise OptionError(
            "cannot_write", f"'{out.name}': {error.strerror}", hint="give another folder with -o"
        ) from None
    clocks = conditions.ClockReader(device)
    commit, changed = conditions.git_state()
    observe("calibration", 0, 1)
    base = Sidecar(
        schema=SCHEMA,
        tool=f"traceanalyzer {__version__}",
        trace=None,
        framework=device.framework,
        device=device.facts(),
        versions=conditions.versions(device) | ({"driver": clocks.driver} if clocks.driver else {}),
        environment=conditions.environment(),
        clocks=clocks.sample("before"),
        clocks_missing=clocks.missing,
        operations=[],
        calibration=calibrate(device),
        git_commit=commit,
        git_changed=changed,
        host=conditions.host() if with_host else {},
    )
    samples = list(base.clocks)

    def build(record: OperationRecord) -> Sidecar:
        return replace(
            base,
            trace=trace.name if trace.is_file() else None,
            clocks=list(samples),
            operations=[record],
            notes=list(session.notes),
        )

    def keep(record: OperationRecord) -> None:
        partial = target.with_name(f".{target.name}.part")
        partial.write_bytes(encode_sidecar(build(record)))
        partial.replace(target)

    session = Session(
        device,
        operation,
        settings,
        trace,
        observe=observe,
        keep=keep,
        sample_clocks=None if clocks.missing else lambda: samples.extend(clocks.sample("during")),
        calibration=base.calibration,
    )

    def end() -> Capture:
        samples.extend(clocks.sample("after"))
        keep(session.record)
        return Capture(build(session.record), out, trace if trace.is_file() else None)

    return Begun(session, session.turns(), end)


def describe_inputs(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, str]:
    """Return shape and type of every array among the arguments, and the value of every number."""
    found = {}
    for name, value in [*((f"arg {i}", a) for i, a in enumerate(args)), *kwargs.items()]:
        parts = [text for leaf in leaves(value) if (text := _described(leaf))]
        if parts:
            found[name] = ", ".join(parts[:16]) + (", ..." if len(parts) > 16 else "")
    return found


def _described(leaf: Any) -> str:
    if hasattr(leaf, "shape") and hasattr(leaf, "dtype"):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    if isinstance(leaf, (bool, int, float)):
        return repr(leaf)
    return ""


def _device(
    framework: str,
    kind: str,
    call: Callable[[], Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    earlier_ns: list[int],
) -> DeviceAdapter:
    """Return the adapter: that of the arguments, else of what one call returns, else of the only framework loaded.

    The time of that call is added to ``earlier_ns``: it is the one that compiles.
    """
    if framework == "auto":
        found = framework_of(args, kwargs)
        if not found:
            start = time.perf_counter_ns()
            found = _framework_of_result(call)
            earlier_ns.append(time.perf_counter_ns() - start)
        framework = found or next(iter(loaded()), "pytorch")
    used = _torch_kind(args, kwargs) if framework == "pytorch" else ""
    if used and (kind == "auto" or used.startswith(f"{kind}:")):
        kind = used
    return open_device(framework, kind)


def _framework_of_result(call: Callable[[], Any]) -> str:
    try:
        result = call()
    except KeyboardInterrupt:
        raise
    except BaseException:  # the session calls it again and says what is wrong
        return ""
    if inspect.iscoroutine(result):
        result.close()
    return framework_of(result)


def _torch_kind(*values: Any) -> str:
    """Return the device of the tensors among the arguments (``cpu``, ``cuda``, ``cuda:1``), empty without any."""
    found = [d for v in leaves(values) if (d := getattr(v, "device", None)) is not None and hasattr(d, "type")]
    device = next((d for d in found if d.type != "cpu"), found[0] if found else None)
    if device is None:
        return ""
    return f"{device.type}:{device.index}" if device.type != "cpu" and device.index else str(device.type)
