"""HolisticTraceAnalysis on one trace, in a process of its own: bounded in time and memory, silent, never fatal.

HTA wants a folder of its own, prints to standard output, reads settings from the current folder and may end in any
exception. All of that stays in the child; what comes back is a dataclass with numbers, or one line that says why there
are none.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from importlib import metadata, util
from pathlib import Path
from typing import Any

SECONDS = 300
MEMORY_BYTES = 16 << 30
HOW_TO_GET = "HolisticTraceAnalysis is not installed; it comes with the extra of this repository: pip install '.[hta]'"
_DISTRIBUTIONS = ("HolisticTraceAnalysis", "traceinsight")
_GZIP = b"\x1f\x8b"
VARIANTS = ("shipped", "all_rows", "device_rows", "sound_rows", "unrounded", "joined")


@dataclass(frozen=True)
class HtaFigures:
    """What HTA says under one variant, in microseconds; None (or an empty table) where it gave no answer, see ``failed``.

    ``idle``: stream to category (``host_wait``, ``kernel_wait``, ``other``) to time. ``kernels``: name to ``sum``, ``mean``,
    ``min``, ``max`` as HTA returns them by default; ``every_kernel``: the same with no name folded into "others".
    ``launch_rows``: device rows it joins to a launch; ``delay_p50_us``: their median from the call's end to the start.
    """

    idle_us: float | None = None
    compute_us: float | None = None
    span_us: float | None = None
    idle: dict[str, dict[str, float | None]] = field(default_factory=dict)
    kernels: dict[str, dict[str, float | None]] = field(default_factory=dict)
    every_kernel: dict[str, dict[str, float | None]] = field(default_factory=dict)
    launch_rows: int | None = None
    delay_p50_us: float | None = None
    overlap_percent: float | None = None
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def busy_us(self) -> float | None:
        """Span less idle."""
        return None if self.span_us is None or self.idle_us is None else self.span_us - self.idle_us


@dataclass(frozen=True)
class HtaResult:
    """``error`` is empty where HTA ran. ``figures`` by variant (:mod:`traceanalyzer.peers.hta_process`), ``counts`` of rows."""

    version: str = ""
    error: str = ""
    figures: dict[str, HtaFigures] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)


def installed_version() -> str:
    """Return the name and version of what provides the ``hta`` module, empty without it."""
    if util.find_spec("hta") is None:
        return ""
    for name in _DISTRIBUTIONS:
        try:
            return f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue
    return "hta (version unknown)"


def run_hta(
    trace: str | Path, *, shipped_only: bool = False, seconds: float = SECONDS, memory_bytes: int = MEMORY_BYTES
) -> HtaResult:
    """Return what HTA says of a trace, under every variant or as it is shipped alone.

    Never raises: whatever goes wrong is in ``error``.
    """
    version = installed_version()
    if not version:
        return HtaResult(error=HOW_TO_GET)
    if str(trace) == "-":
        return HtaResult(version, "it reads files, not standard input")
    with tempfile.TemporaryDirectory(prefix="traceanalyzer-", ignore_cleanup_errors=True) as folder:
        try:
            file = _place(Path(trace), Path(folder))
        except OSError as error:
            return HtaResult(version, f"the trace could not be put into a folder of its own: {error.strerror}")
        result = Path(folder) / "result.json"
        fault = _run(file, result, seconds, [str(memory_bytes), *(["shipped"] if shipped_only else [])])
        if fault:
            return HtaResult(version, fault)
        try:
            found = json.loads(result.read_bytes())
        except (OSError, ValueError):
            return HtaResult(version, "it ended without an answer")
    if "error" in found:
        return HtaResult(version, _line(f"it ended in {found['error']}"))
    figures = {name: _figures(found[name]) for name in VARIANTS if name in found}
    return HtaResult(version, "", figures, found.get("counts", {}))


def _place(trace: Path, folder: Path) -> Path:
    """Link the trace into the folder, by a name whose ending tells what is in it, as HTA goes by the ending."""
    with trace.open("rb") as file:
        packed = file.read(2) == _GZIP
    target = folder / ("trace.json.gz" if packed else "trace.json")
    try:
        target.symlink_to(trace.resolve())
    except OSError:  # a file system or system without links
        import shutil

        shutil.copyfile(trace, target)
    return target


_ALONE = "import runpy, sys; del sys.path[0], sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
"""Runs a script so that neither its folder nor the current one is where it finds its modules (-P of Python 3.11)."""


def _run(file: Path, result: Path, seconds: float, options: list[str]) -> str:
    script = Path(__file__).with_name("hta_process.py")
    command = [sys.executable, "-c", _ALONE, str(script), str(file), str(result), *options]
    environment = os.environ | {"MPLBACKEND": "agg", "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    try:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=file.parent,
            env=environment, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        return f"its process could not be started: {error.strerror}"
    try:
        code = child.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        _end(child)
        return f"it was stopped after {seconds:g} s"
    except BaseException:
        _end(child)
        raise
    if code < 0:
        return f"its process was ended by signal {-code}"
    return f"its process ended with code {code}" if code else ""


def _end(child: subprocess.Popen[bytes]) -> None:
    """End the child and what it has started; it leads a session of its own."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (OSError, AttributeError):
        child.kill()
    child.wait()


def _line(text: str) -> str:
    found = " ".join(text.split())
    return found if len(found) <= 300 else found[:299] + "\N{HORIZONTAL ELLIPSIS}"


def _figures(found: dict[str, Any]) -> HtaFigures:
    temporal, launches = found.get("temporal") or {}, found.get("launches") or {}
    return HtaFigures(
        idle_us=temporal.get("idle"),
        compute_us=temporal.get("compute"),
        span_us=temporal.get("kernel"),
        idle=found.get("idle") or {},
        kernels=found.get("kernels") or {},
        every_kernel=found.get("every_kernel") or {},
        launch_rows=launches.get("rows"),
        delay_p50_us=launches.get("delay_p50"),
        overlap_percent=found.get("overlap_percent"),
        failed={str(k): _line(str(v)) for k, v in found.get("failed", {}).items()},
    )
