"""Make a folder of small traces (jobs of eight ranks) and measure `traceanalyze fleet` on it: seconds, memory, results.

    python benchmarks/fleet.py FOLDER --traces 2000 [--jobs N] [--scheduler ADDRESS]

One rank of each job computes longer than the others in every step, and `fleet show` must name it. Memory is the resident memory of
the command's own process, and of all its processes together, looked at five times a second (Linux). Shared pages count in each.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

RANKS = 8
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def trace(job: int, rank: int, steps: int = 12, kernels: int = 16) -> dict:
    late = 80 if rank == job % RANKS else 0
    events, at, corr = [], 1000, 0

    def row(cat: str, name: str, ts: float, dur: float, **more: object) -> None:
        on = {"pid": 0, "tid": 7 if "nccl" not in name else 20} if cat == "kernel" else {"pid": 1, "tid": 1}
        events.append({"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, **on, "args": more})

    for step in range(steps):
        begin = at - 30
        for k in range(kernels):
            corr += 1
            mine = 20 + late / kernels
            row("cuda_runtime", "cudaLaunchKernel", at - 20 + k, 0.8, correlation=corr)
            row(
                "kernel",
                f"gemm_{k % 5}_job{job % 7}",
                at + k * mine,
                mine,
                correlation=corr,
                device=0,
                context=1,
                stream=7,
            )
        corr += 1
        ends = at + 20 * kernels + 80 + 40
        row("cuda_runtime", "cudaLaunchKernel", at - 2, 0.8, correlation=corr)
        start = at + kernels * mine
        row("kernel", NCCL, start, ends - start, correlation=corr, device=0, context=1, stream=20)
        row("user_annotation", f"ProfilerStep#{step}", begin, ends + 2 - begin)
        at = ends + 40
    return {
        "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": RANKS}, "traceEvents": events,
    }  # fmt: skip


def make(folder: Path, traces: int) -> int:
    size = 0
    for n in range(traces):
        job, rank = divmod(n, RANKS)
        place = folder / f"job{job:04}"
        place.mkdir(parents=True, exist_ok=True)
        text = json.dumps(trace(job, rank))
        size += (place / f"rank{rank}.json").write_text(text, encoding="utf-8")
    return size


def resident(pid: int) -> tuple[int, int]:
    """Return the resident bytes of a process, and of it with all that came from it."""
    page = os.sysconf("SC_PAGE_SIZE")
    own = whole = 0
    waiting = [pid]
    while waiting:
        at = waiting.pop()
        try:
            pages = int(Path(f"/proc/{at}/statm").read_text().split()[1])
            for task in Path(f"/proc/{at}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())
        except (OSError, IndexError):
            continue
        whole += pages * page
        own = pages * page if at == pid else own
    return own, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--traces", type=int, default=2000)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--scheduler")
    given = parser.parse_args()
    traces, results = given.folder / "traces", given.folder / "results"
    shutil.rmtree(traces, ignore_errors=True)
    shutil.rmtree(results, ignore_errors=True)
    size = make(traces, given.traces)
    command = [sys.executable, "-m", "traceanalyzer", "fleet", str(traces), "-o", str(results)]
    command += ["--jobs", str(given.jobs)] if given.jobs else []
    command += ["--scheduler", given.scheduler] if given.scheduler else []
    began = time.monotonic()
    process = subprocess.Popen(command)
    own = whole = most_files = 0
    while process.poll() is None:
        a, b = resident(process.pid)
        own, whole = max(own, a), max(whole, b)
        most_files = max(most_files, sum(1 for _ in results.rglob("*.parquet")) if results.exists() else 0)
        time.sleep(0.2)
    seconds = time.monotonic() - began
    again = time.monotonic()
    subprocess.run(command, stderr=subprocess.DEVNULL)
    again = time.monotonic() - again
    asked = time.monotonic()
    shown = subprocess.run(
        [sys.executable, "-m", "traceanalyzer", "fleet", "show", str(results), "--format", "json"],
        capture_output=True,
        text=True,
    )
    asked = time.monotonic() - asked
    answers = json.loads(shown.stdout)
    late = {(r["job"], r["rank"]) for r in answers["late_ranks"]}
    right = all(rank == int(job.removeprefix("job")) % RANKS for job, rank in late)
    parquet = list(results.rglob("*.parquet"))
    print(json.dumps({
        "traces": given.traces, "input_mb": round(size / 1e6, 1), "seconds": round(seconds, 1), "traces_per_second": round(given.traces / seconds, 1),
        "cpu_ms_per_trace": round(answers["cpu_ns"] / 1e6 / max(1, answers["runs"]), 1), "runs": answers["runs"], "faults": answers["faults"],
        "own_memory_mb": round(own / 1e6), "all_processes_mb": round(whole / 1e6), "largest_trace_process_mb": round(answers["peak_memory_bytes"] / 1e6),
        "results_mb": round(sum(p.stat().st_size for p in parquet) / 1e6, 2), "files": len(parquet), "most_files": most_files,
        "nothing_left_seconds": round(again, 2), "show_seconds": round(asked, 2), "late_ranks_right": right and bool(late), "exit": process.returncode,
    }, indent=1))  # fmt: skip


if __name__ == "__main__":
    main()
