"""Runs a capture in a process of its own and says in one line how it ended, whatever the code in it did."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec

from traceanalyzer.capture.job import Job, Status
from traceanalyzer.capture.place import Stamp, made_since, stamps
from traceanalyzer.errors import CaptureUnavailable, ExitCode, TraceAnalyzerError

_GRACE_S = 5.0


def supervise(job: Job, timeout_s: float) -> TraceAnalyzerError | None:
    """Run a job (its ``status`` is set here); return what ended it early, None when it came to its end.

    Whatever ends the process, files that it had written by then are left in ``job.out``.
    """
    # the code under capture may change the working directory
    out = Path(job.out).absolute()
    before = stamps(out)
    with tempfile.TemporaryDirectory() as folder:
        status, description = Path(folder) / "status.json", Path(folder) / "job.json"
        description.write_bytes(msgspec.json.encode(replace(job, out=str(out), status=str(status))))
        command = [sys.executable, "-m", "traceanalyzer.capture.worker", str(description)]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), start_new_session=True
            )
        except OSError as error:
            return CaptureUnavailable("cannot_start", f"the capture's process cannot be started: {error.strerror}")
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return CaptureUnavailable(
                "timed_out", f"not done after {timeout_s:g} s (at: {_read(status).stage}){_kept(out, before)}",
                hint="allow more with --timeout, or measure less work",
            )  # fmt: skip
        except KeyboardInterrupt:
            _end(process)
            raise
        finally:
            # whatever the function started goes with it
            _kill_group(process.pid)
        found = _read(status)
    if found.done:
        return None
    if found.kind:
        failure = CaptureUnavailable(found.kind, found.message, hint=found.hint)
        failure.exit_code = ExitCode(found.exit_code)
        return failure
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended the process with status {code}"
    return CaptureUnavailable(
        "crashed",
        f"the code under capture {how} (at: {found.stage}){_kept(out, before)}",
        hint="make it run alone first; what runs a profiler itself cannot be captured",
    )


def _kept(out: Path, before: dict[Path, Stamp]) -> str:
    return "; what was measured so far is kept" if made_since(before, out) else ""


def _read(status: Path) -> Status:
    try:
        return msgspec.json.decode(status.read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError):
        return Status("starting")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_GRACE_S)
    except subprocess.TimeoutExpired:
        _kill_group(process.pid)
        process.wait()


def _kill_group(leader: int) -> None:
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
