"""A process that may take too little memory says so in a line, with the code of bad input: never the code of a finding."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

resource = pytest.importorskip("resource", reason="this system has no such limits")
SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "cpu_bound_loop.json"


@pytest.mark.skipif(sys.platform != "linux", reason="sizes are those of Linux")
@pytest.mark.parametrize("megabytes", [60, 80, 100, 130])
def test_too_little_memory_is_one_line_and_bad_input(megabytes):
    limit = megabytes << 20
    done = subprocess.run(
        [sys.executable, "-m", "traceanalyzer", "report", str(SAMPLE)], capture_output=True, text=True, timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )  # fmt: skip
    if done.returncode == 0:
        assert "CPU-bound" in done.stdout and not done.stderr
        return
    assert done.returncode == 2 and not done.stdout, done.stderr
    assert done.stderr.startswith("traceanalyze: out_of_memory: ") and done.stderr.count("\n") == 1
