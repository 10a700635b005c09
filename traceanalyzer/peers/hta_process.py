"""Runs HolisticTraceAnalysis on one trace and writes what it says as JSON: the child process of :mod:`traceanalyzer.peers.hta`.

Started as ``python hta_process.py TRACE RESULT MEMORY_BYTES [shipped]``, never imported by the analyser. Beside the numbers HTA gives as it
is shipped are those it gives when one of its habits after the other is taken away:

- ``shipped``: as a user calls it
- ``all_rows``: without the filter that drops the last ProfilerStep and device rows it finds no host call for
- ``device_rows``: only rows whose category says that they ran on the device
- ``sound_rows``: without device rows whose time cannot be true (never set, negative, a day from all others), if there are any
- ``unrounded``: with times as the file writes them (as 64-bit floats), not whole microseconds
- ``joined``: without joining device rows that have no launch to the first event of the file
"""

from __future__ import annotations

import copy
import json
import math
import sys
from pathlib import Path
from typing import Any

DEVICE_CATEGORIES = ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset")
SYNC_CATEGORIES = ("cuda_sync", "xpu_sync")
NAMES = 500
DAY_US = 86_400e6
EVERY_KERNEL = 1_000_000
_KERNEL_DELAY_US = 30


def bound_memory(most_bytes: int) -> None:
    """Let the process fail rather than the machine."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (most_bytes, most_bytes))
    except (ImportError, ValueError, OSError):
        return  # no such limit here; the time limit still holds


def number(value: Any) -> float | None:
    """Return a finite number, else None."""
    found = float(value)
    return found if math.isfinite(found) else None


def watch(saved: dict[str, Any]) -> list[str]:
    """Keep what HTA is about to round or drop; return the reasons why some of it cannot be kept."""
    import hta.common.trace as traces
    import hta.common.trace_parser as parser

    missing = []
    if hasattr(parser, "round_down_time_stamps"):
        rounding = parser.round_down_time_stamps

        def keep_times(df: Any) -> None:
            df["unrounded_ts"], df["unrounded_dur"] = df["ts"], df["dur"]
            rounding(df)

        parser.round_down_time_stamps = keep_times
    else:
        missing.append("unrounded")
    if hasattr(traces.Trace, "_filter_irrelevant_gpu_kernels"):
        dropping = traces.Trace._filter_irrelevant_gpu_kernels

        def keep_rows(self: Any, *options: Any) -> None:
            saved["all"] = self.traces[0].copy()
            dropping(self, *options)

        traces.Trace._filter_irrelevant_gpu_kernels = keep_rows
    else:
        missing.append("all_rows")
    return missing


def figures(trace: Any, scale: int) -> dict[str, Any]:
    """Return what HTA says of a loaded trace, in microseconds; times in it are ``scale`` to the microsecond.

    A question it cannot answer is None; the reason is under ``failed``.
    """
    from hta.analyzers.breakdown_analysis import BreakdownAnalysis
    from hta.analyzers.communication_analysis import CommunicationAnalysis
    from hta.analyzers.cuda_kernel_analysis import CudaKernelAnalysis

    def temporal() -> dict[str, float | None]:
        row = BreakdownAnalysis.get_temporal_breakdown(trace, visualize=False).iloc[0]
        return {name: number(row[f"{name}_time(us)"] / scale) for name in ("idle", "compute", "non_compute", "kernel")}

    def idle() -> dict[str, dict[str, float | None]]:
        frame, _ = BreakdownAnalysis.get_idle_time_breakdown(trace, _KERNEL_DELAY_US * scale, rank=0, visualize=False)
        found: dict[str, dict[str, float | None]] = {}
        for row in frame.itertuples():
            found.setdefault(str(row.stream), {})[row.idle_category] = number(row.idle_time / scale)
        return found

    def kernels(most: int) -> dict[str, dict[str, float | None]]:
        _, frame = BreakdownAnalysis.get_gpu_kernel_breakdown(trace, visualize=False, num_kernels=most)
        frame = frame.sort_values("sum (us)", ascending=False).head(NAMES)
        columns = {"sum": "sum (us)", "mean": "mean (us)", "min": "min (us)", "max": "max (us)"}
        return {
            str(row["name"]): {short: number(row[column] / scale) for short, column in columns.items()}
            for _, row in frame.iterrows()
        }

    def launches() -> dict[str, float | None]:
        frame = CudaKernelAnalysis.cuda_kernel_launch_stats(trace, ranks=[0], visualize=False)[0]
        return {"rows": len(frame), "delay_p50": number(frame["launch_delay"].median() / scale) if len(frame) else None}

    def overlap() -> float | None:
        return number(CommunicationAnalysis.get_comm_comp_overlap(trace, visualize=False).iloc[0, 1])

    found: dict[str, Any] = {"failed": {}}
    questions = {
        "temporal": temporal, "idle": idle, "kernels": lambda: kernels(10), "every_kernel": lambda: kernels(EVERY_KERNEL),
        "launches": launches, "overlap_percent": overlap,
    }  # fmt: skip
    for name, question in questions.items():
        try:
            found[name] = question()
        except Exception as error:  # whatever it is, it is theirs
            found[name] = None
            found["failed"][name] = f"{type(error).__name__}: {error}"[:200]
    return found


def with_rows(trace: Any, frame: Any) -> Any:
    """Return a copy of HTA's trace that holds other rows."""
    other = copy.copy(trace)
    other.traces = {0: frame}
    return other


def answers(trace_path: str, shipped_only: bool) -> dict[str, Any]:
    """Return every variant's figures, or those of the first alone, and the counts of rows that tell them apart."""
    saved: dict[str, Any] = {}
    missing = watch(saved)
    from hta.trace_analysis import TraceAnalysis

    trace = TraceAnalysis(trace_files={0: trace_path}, trace_dir=str(Path(trace_path).parent)).t
    result: dict[str, Any] = {"missing": missing, "shipped": figures(trace, 1)}
    frame = saved.pop("all", None)
    if frame is None or shipped_only:
        return result
    frame = frame.set_index("index", drop=False)
    frame.index.names = [None]
    symbols = trace.symbol_table.get_sym_table()
    category = frame["cat"].map(lambda code: str(symbols[code]).lower())
    on_stream = frame["stream"].ne(-1)
    device = category.isin(DEVICE_CATEGORIES)
    shipped = trace.traces[0]
    result["counts"] = {
        "device_rows": int(device.sum()),
        "kept_rows": int(shipped["stream"].ne(-1).sum()),
        "rows_on_streams": int(on_stream.sum()),
        "dropped_rows": int((on_stream & ~frame["index"].isin(shipped["index"])).sum()),
        "host_rows_on_streams": int((on_stream & ~device & ~category.isin(SYNC_CATEGORIES)).sum()),
        "sync_rows_on_streams": int((on_stream & category.isin(SYNC_CATEGORIES)).sum()),
        "device_rows_without_stream": int((device & ~on_stream).sum()),
        "steps": sum("ProfilerStep" in str(name) for name in symbols),
    }
    result["all_rows"] = figures(with_rows(trace, frame.copy()), 1)
    frame["stream"] = frame["stream"].astype("int64")
    frame.loc[on_stream & ~device, "stream"] = -1
    frame.loc[device & ~on_stream, "stream"] = 1_000_000
    result["device_rows"] = figures(with_rows(trace, frame.copy()), 1)
    if "unrounded_ts" in frame.columns:
        start, length = frame["unrounded_ts"], frame["unrounded_dur"]
        unset, far = (start == 0) & (length == 0), (start - start.median()).abs() > DAY_US
        unsound = device & (unset | far | (length < 0) | (length > DAY_US))
        result["counts"]["unsound_device_rows"] = int(unsound.sum())
        if unsound.any():
            frame = frame[~unsound].copy()
            result["sound_rows"] = figures(with_rows(trace, frame.copy()), 1)
        # whole nanoseconds of the floats, so that no sum of floats adds an error of its own
        first = frame["unrounded_ts"].min()
        frame["ts"] = ((frame["unrounded_ts"] - first) * 1000).round().astype("int64")
        frame["dur"] = (frame["unrounded_dur"] * 1000).round().astype("int64")
        frame["end"] = frame["ts"] + frame["dur"]
        result["unrounded"] = figures(with_rows(trace, frame.copy()), 1000)
        if "index_correlation" in frame.columns:
            # 0 stands for "no such row" to HTA, and is the number of the first event all the same
            lost = frame["stream"].ne(-1) & frame["index_correlation"].eq(0)
            result["counts"]["rows_joined_to_the_first_event"] = int(lost.sum())
            frame["index_correlation"] = frame["index_correlation"].astype("int64")
            frame.loc[lost, "index_correlation"] = -1
            result["joined"] = figures(with_rows(trace, frame), 1000)
    return result


def main() -> None:
    """Answer, or say in one line why not."""
    trace_path, result_path, memory, *mode = sys.argv[1:]
    bound_memory(int(memory))
    try:
        found = answers(trace_path, mode == ["shipped"])
    except MemoryError:
        found = {"error": f"it needs more than {int(memory) >> 20:,} MiB of memory"}
    except Exception as error:  # whatever it is, it is theirs
        found = {"error": f"{type(error).__name__}: {error}"}
    Path(result_path).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
