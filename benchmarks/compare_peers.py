"""Whole-process time and memory of a report against two other trace analysers, side by side in one run.

Usage: python benchmarks/compare_peers.py TRACE.json.gz [--runs N] [--copies 8]

The tools take turns (A B C A B C ...) on TRACE and on the same trace repeated ``--copies`` times, so that a slow
moment of the machine hits all of them; what is printed are medians and the ratios of medians. Peers that are not
installed are left out (pip install -r benchmarks/requirements.txt). gpu-idle reads no gzip, so it gets the
unpacked file.
"""

from __future__ import annotations

import argparse
import compileall
import gzip
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).resolve().parent


def measure(command: list[str]) -> tuple[float, float]:
    """Run a command to its end; return (wall seconds, peak memory in MiB)."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, 1, 3):
        raise SystemExit(f"exit code {code}: {' '.join(command)}")
    return seconds, usage.ru_maxrss / 1024


def commands(packed: Path, plain: Path) -> dict[str, list[str]]:
    """Return what is run for each tool that is installed."""
    found = {"traceanalyze": [sys.executable, "-m", "traceanalyzer", "report", str(packed)]}
    if find_spec("hta"):
        found["HTA 0.5.0"] = [sys.executable, str(HERE / "hta_run.py"), str(packed)]
    gpu_idle = shutil.which("gpu-idle", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if gpu_idle:
        found["gpu-idle 0.1.0"] = [gpu_idle, str(plain)]
    return found


def compare(title: str, packed: Path, plain: Path, runs: int) -> None:
    """Time every tool in turn and print the table."""
    tools = commands(packed, plain)
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in tools}
    for turn in range(runs + 1):
        for name, command in tools.items():
            found = measure(command)
            if turn:  # the first turn warms the file cache
                results[name].append(found)
    ours = statistics.median(s for s, _ in results["traceanalyze"])
    print(f"\n{title}: {plain.stat().st_size / 1e6:.0f} MB of JSON, median of {runs}")
    print("| tool | seconds (min-max) | peak MiB | times ours |\n| --- | ---: | ---: | ---: |")
    for name, found in results.items():
        seconds = [s for s, _ in found]
        median = statistics.median(seconds)
        memory = max(m for _, m in found)
        print(
            f"| {name} | {median:.2f} ({min(seconds):.2f}-{max(seconds):.2f}) | {memory:.0f} | {median / ours:.1f}x |"
        )


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--copies", type=int, default=8)
    options = parser.parse_args()
    # pip compiled the peers when it installed them; an editable install is not compiled
    compileall.compile_dir(str(HERE.parent / "traceanalyzer"), quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "small.json"
        with Path(options.trace).open("rb") as head:
            packed = head.read(2) == b"\x1f\x8b"
        with (gzip.open if packed else open)(options.trace, "rb") as source, plain.open("wb") as target:
            shutil.copyfileobj(source, target)
        compare("small", options.trace, plain, options.runs)
        large = Path(folder) / "large.json"
        # in a process of its own: a child's peak memory starts at what its parent holds
        maker = [sys.executable, str(HERE / "large_trace.py"), str(options.trace), str(options.copies), str(large)]
        subprocess.run(maker, check=True, stdout=subprocess.DEVNULL)
        compare("large", large, large, max(2, options.runs // 2))


if __name__ == "__main__":
    main()
