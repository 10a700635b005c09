"""The sidecar of a trace: what the capture knew and no trace holds. Version 1 of its file, and how it is read.

``run.json.gz`` has its sidecar beside it as ``run.sidecar.json``. Capture writes it; the analyser takes from it the
conditions, the readings that were measured under each protocol, and the check of the results. A sidecar that is
damaged or of another version is left out with a note: it never costs the report.

These dataclasses are the schema; docs/sidecar.md is made from them. Times are microseconds as ``_us``, floats
because each is a duration and none a point in time. ``None`` means unknown; a field that ends in ``_missing`` or is
called ``reason`` says why.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path

from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.sidecar_place import sidecar_path as sidecar_path  # noqa: PLC0414 - it belongs to the sidecar

SCHEMA = "traceanalyzer.sidecar/1"
MAX_BYTES = 64 << 20
"""Longest sidecar read; a real one holds a few thousand numbers."""

LARGEST = 1e18
"""Largest number in a sidecar: thirty thousand years in microseconds, a billion gigabytes."""


@dataclass(frozen=True)
class DeviceFacts:
    """What ran the work. ``kind``: cuda, rocm, xpu, mps, cpu (or fake, in tests of the capture itself).

    ``peak_gbytes_per_s``: memory bandwidth by the device's own memory clock and bus width, two transfers a clock.
    """

    kind: str
    name: str = ""
    capability: str = ""
    memory_bytes: int | None = None
    l2_bytes: int | None = None
    multiprocessors: int | None = None
    peak_gbytes_per_s: float | None = None


@dataclass(frozen=True)
class ClockSample:
    """Clocks, power and temperature at one moment; ``when``: before, during or after.

    ``throttle_reasons`` are NVML's names of what holds the clock down (idle is none). ``other_processes`` counts
    compute processes on the device other than ours.
    """

    when: str
    sm_clock_mhz: int | None = None
    max_sm_clock_mhz: int | None = None
    memory_clock_mhz: int | None = None
    power_w: float | None = None
    power_limit_w: float | None = None
    temperature_c: int | None = None
    throttle_reasons: list[str] = field(default_factory=list)
    other_processes: int | None = None


@dataclass(frozen=True)
class Calibration:
    """What the machine's own steps cost, measured before the protocols: symbols of the timing model.

    ``record_us`` e, host time of an event record; ``sync_us`` s, host time of a synchronise with nothing to wait for;
    ``clear_us`` c and ``clear_dispatch_us`` d_c, device and host time of the cache clear; ``event_floor_us`` what an
    event pair reads around nothing, ``event_step_us`` the smallest difference between two such readings (the clock's
    step). ``node_gap_us``: device time between two nodes of a graph; ``graph_launch_us``: what the launch of a graph adds
    to the time between two records, on top of its nodes. None where the device lacks it.
    """

    sync_us: float | None = None
    record_us: float | None = None
    event_floor_us: float | None = None
    clear_us: float | None = None
    clear_dispatch_us: float | None = None
    event_step_us: float | None = None
    node_gap_us: float | None = None
    graph_launch_us: float | None = None


@dataclass(frozen=True)
class WarmUp:
    """Calls before the measurement, none of which counts in any reading.

    ``slow_calls`` at the head were more than twice as slow as the steady level (compilation, autotuning, loading), ``slow_us``
    what they took together; ``steady`` says whether the level had stopped changing, ``reason`` why not.
    """

    calls: int
    slow_calls: int
    slow_us: float
    steady: bool
    reason: str = ""


@dataclass(frozen=True)
class Flush:
    """How the cache was treated between calls: ``kind`` none or l2-clear, with the buffer's size."""

    kind: str = "none"
    buffer_bytes: int | None = None


@dataclass(frozen=True)
class Correctness:
    """The result against the reference, in the same run. ``passed`` is None where nothing was compared; ``reason`` says why.

    ``share_of_allowed`` is the largest ``|out - ref| / (atol + rtol |ref|)``, up to 1 in a right result: the one number that
    means the same for every output; None where nothing is allowed or compared.
    """

    passed: bool | None
    reason: str = ""
    reference: str = ""
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    rtol: float | None = None
    atol: float | None = None
    share_of_allowed: float | None = None


@dataclass(frozen=True)
class ProtocolResult:
    """One protocol's readings per call, in microseconds.

    ``column``: ``device`` (kernel time), ``end-to-end`` or ``neither`` (a reading that mixes both). ``parameters`` as
    the protocol describes itself (calls, rounds, records). ``samples_us`` in order of measurement. With a ``reason``
    the protocol abstained and there are no samples.
    """

    protocol: str
    column: str
    parameters: dict[str, str | int | float | bool]
    n: int
    p50_us: float | None
    ci95_us: tuple[float, float] | None
    mad_us: float | None
    samples_us: list[float] = field(default_factory=list)
    reason: str = ""


@dataclass(frozen=True)
class Inflation:
    """Host time of one call with and without the profiler: what a trace's dispatch must be divided by."""

    unprofiled_us: float
    profiled_us: float

    @property
    def ratio(self) -> float:
        """Profiled over unprofiled."""
        return self.profiled_us / self.unprofiled_us if self.unprofiled_us else 1.0


@dataclass(frozen=True)
class Agreement:
    """Profiler self-time against the unrolled graph: two independent protocols for one number."""

    agree: bool | None
    difference: float | None
    explanation: str


@dataclass(frozen=True)
class OperationRecord:
    """One operation that was captured; ``name`` is that of its annotations in the trace."""

    name: str
    inputs: dict[str, str]
    warm_up: WarmUp
    flush: Flush
    correctness: Correctness
    protocols: list[ProtocolResult]
    agreement: Agreement
    inflation: Inflation | None = None
    inflation_missing: str = ""
    bytes_moved: int | None = None
    flops: int | None = None
    seed: int | None = None
    peak_memory_bytes: int | None = None


@dataclass(frozen=True)
class Sidecar:
    """The whole sidecar."""

    schema: str
    tool: str
    trace: str | None
    framework: str
    device: DeviceFacts
    versions: dict[str, str]
    environment: dict[str, str]
    clocks: list[ClockSample]
    clocks_missing: str
    operations: list[OperationRecord]
    calibration: Calibration = field(default_factory=Calibration)
    git_commit: str = ""
    git_changed: bool | None = None
    notes: list[str] = field(default_factory=list)
    host: dict[str, str] = field(default_factory=dict)


def read_sidecar(trace: str | Path) -> tuple[Sidecar | None, str]:
    """Return the sidecar that lies beside a trace, and why there is none although a file is there (else empty)."""
    if str(trace) == "-":
        return None, ""
    try:
        path = sidecar_path(Path(trace))
        if not path.is_file():
            return None, ""
        if path.stat().st_size > MAX_BYTES:
            return None, f"the sidecar '{path.name}' is longer than {MAX_BYTES} bytes; it was not read"
        # what looks like a file of /proc may wait for ever when it is read
        with open(path, "rb", opener=_without_waiting) as file:
            content = file.read() or b""
    except (OSError, ValueError):
        return None, "there is a sidecar, but it cannot be opened"
    return decode_sidecar(content, path.name)


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))


def of_another_trace(sidecar: Sidecar, names: Iterable[str], devices: Iterable[str], has_device_rows: bool) -> str:
    """Return why a sidecar belongs to another trace than the one it lies beside, empty where nothing speaks against it.

    ``names`` are those in the trace, ``devices`` the names of its devices.
    """
    annotated = {n.removeprefix(CAPTURE_PREFIX) for n in names if n.startswith(CAPTURE_PREFIX)}
    captured = {o.name for o in sidecar.operations}
    known = {d for d in devices if d and not d.startswith("GPU")}  # "GPU 0" is a label, not a device's name
    if annotated and captured and not annotated & captured:
        what = "none of its operations is annotated in this one"
    elif has_device_rows and sidecar.device.kind == "cpu":
        what = "it was captured on the CPU, and this one has device rows"
    elif (
        known
        and sidecar.device.name
        and sidecar.device.kind in ("cuda", "rocm", "xpu")
        and sidecar.device.name not in known
    ):
        what = "it was captured on another device"
    else:
        return ""
    return f"the sidecar belongs to another trace ({what}); it was not used"


def decode_sidecar(content: bytes, name: str) -> tuple[Sidecar | None, str]:
    """Return the sidecar in a file's bytes, or None and what is wrong with it."""
    import msgspec

    try:
        schema = msgspec.json.decode(content, type=_Version).schema
        if schema != SCHEMA:
            return None, f"the sidecar '{name}' is of schema {schema[:60]!r}, not {SCHEMA}; it was not used"
        found = msgspec.json.decode(content, type=Sidecar)
        if not _sound(found):
            return None, f"the sidecar '{name}' holds a number beyond {LARGEST:g}; it was not used"
        return found, ""
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        return None, f"the sidecar '{name}' is damaged ({' '.join(str(error).split())[:200]}); it was not used"


def _sound(value: object) -> bool:
    """Return whether every number is small enough to compute with: sums and products must stay finite."""
    if isinstance(value, (int, float)):
        return -LARGEST <= value <= LARGEST
    if isinstance(value, (list, tuple)):
        return all(map(_sound, value))
    if isinstance(value, dict):
        return all(map(_sound, value.values()))
    return all(_sound(getattr(value, f.name)) for f in fields(value)) if is_dataclass(value) else True


@dataclass(frozen=True)
class _Version:
    schema: str


def encode_sidecar(sidecar: Sidecar) -> bytes:
    """Return the file's bytes: indented JSON in the order of the fields."""
    import msgspec

    return msgspec.json.format(msgspec.json.encode(sidecar), indent=1) + b"\n"
