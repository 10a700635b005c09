"""One rank of a distributed program under the profiler: ``torchrun ... -m traceanalyzer.capture.ranked JOB.json``."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from traceanalyzer.errors import CaptureUnavailable

if TYPE_CHECKING:
    from traceanalyzer.capture.job import Job


def rank_trace(rank: int) -> str:
    """Return the name of a rank's trace: one that ``ranks`` finds the rank in."""
    return f"trace.rank{rank}.json.gz"


def launch(job: Job, say: Callable[[str], None]) -> None:
    """Start torchrun, which starts this module once a rank. Raises CaptureUnavailable where a rank fails."""
    assert job.launcher is not None
    out = Path(job.out)
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("trace.rank*"):
        old.unlink(missing_ok=True)
    say("running the ranks")
    with tempfile.TemporaryDirectory() as folder:
        description = Path(folder) / "job.json"
        description.write_bytes(msgspec.json.encode(job))
        code = subprocess.run(
            [
                sys.executable, "-m", "torch.distributed.run", *job.launcher, "-m", "traceanalyzer.capture.ranked",
                str(description),
            ],
            stdout=sys.stderr.fileno(), check=False,
        ).returncode  # fmt: skip
    if code:
        raise CaptureUnavailable(
            "script_failed",
            f"torchrun ended with status {code}",
            hint="make it run alone first; what each rank wrote is kept",
        )
    if not list(out.glob("trace.rank*.json.gz")):
        raise CaptureUnavailable("nothing_recorded", "no rank left a trace", hint="give a smaller --after")


def main(path: str) -> int:
    """Record the rank that the environment names."""
    from traceanalyzer.capture.job import Job
    from traceanalyzer.capture.script import run_script

    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    rank = int(os.environ.get("RANK", "0"))
    device = job.device
    if (local := os.environ.get("LOCAL_RANK", "")).isdecimal() and device == "cuda":
        device = f"cuda:{local}"
    try:
        run_script(replace(job, launcher=None, trace_name=rank_trace(rank), device=device), lambda _: None)
    except CaptureUnavailable as error:
        print(f"traceanalyze: rank {rank}: {error.one_line()}", file=sys.stderr)  # noqa: T201 - this is a program of its own
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
