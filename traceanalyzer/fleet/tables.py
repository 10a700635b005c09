"""The tables of a fleet: every column with its type, and what it means. docs/fleet.md is made from them.

Times are integer nanoseconds, sizes bytes; a value that does not exist is null. Columns hold numbers, codes and names, never sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

SCHEMA = "traceanalyzer.fleet/1"
MOST_NAME = 4_000
"""Characters kept of a name: a longer one keeps both ends."""


@dataclass(frozen=True)
class TableColumn:
    """One column; ``kind`` is string, int64, int32, float64 or bool. ``required`` columns are never null."""

    name: str
    kind: str
    doc: str
    required: bool = False


def _columns(text: str) -> tuple[TableColumn, ...]:
    found = []
    for line in text.strip().splitlines():
        name, kind, doc = (part.strip() for part in line.split("|"))
        found.append(TableColumn(name, kind.removesuffix("!"), doc, kind.endswith("!")))
    return tuple(found)


COMMON = _columns("""
run    | string! | digest of the file's relative path, size and time of change: one run is one file in one state
job    | string! | folder of the file, relative, `.` for the top: the traces of one job lie in one folder
rank   | int32   | distributedInfo of the trace, else the file's name (rank3, worker-3)
host   | string  | host in the name of a file that PyTorch's TensorBoard handler wrote (HOST_PID.TIME.pt.trace.json)
commit | string  | `--commit`, else what a capture kept in the sidecar
file   | string! | path relative to the folder that was given
""")

RUNS = _columns("""
file_bytes         | int64!  | size of the file
file_mtime_ns      | int64!  | its time of change
world_size         | int32   | ranks of the job, by distributedInfo
format             | string! | format of the file
flavour            | string! | what recorded it
verdict            | string! | ok, suspect or cannot-judge, as `report` has it
reason             | string  | for cannot-judge: rule and message of the finding (TA101.lost), else clocks_disagree, no_links, few_launches or no_cause
events             | int64!  | elements of the trace
device_rows        | int64!  | kernels, copies and fills
kernels            | int64!  | kernels among them
incomplete         | bool!   | the file ends before its trace does
salvaged           | bool!   | something was repaired or left out
start_ns           | int64   | first device row, absolute, on the clock of the host
span_ns            | int64   | first launch or device row to the end of the last device row
rows_left_out      | int64!  | rows of the tables below that were over the bounds per trace
elapsed_ns         | int64!  | wall time of the analysis
cpu_ns             | int64!  | its CPU time, with the processes that decode for it
peak_memory_bytes  | int64!  | largest resident memory of its process, without those
version            | string! | version of traceanalyzer
""")

DEVICES = _columns("""
device                   | int32!  | number of the device
owner                    | string! | process of the device's rows where ranks are merged in one file, else empty
device_name              | string! | name of the device, empty where the trace has none
rank_from                | string! | distributedInfo, file name, or empty
span_ns                  | int64!  | first start to last end of its rows
busy_ns                  | int64!  | compute + exposed communication + exposed copies, exactly
idle_ns                  | int64!  | span less busy
compute_ns               | int64!  | union of kernels that are no communication
communication_ns         | int64!  | union of communication kernels
copy_ns                  | int64!  | union of copies and fills
exposed_communication_ns | int64!  | communication that no compute covers
exposed_copy_ns          | int64!  | copies that no kernel covers
overlap_share            | float64 | share of the communication that compute covers
kernels                  | int64!  | kernels
communication_kernels    | int64!  | kernels of collectives among them
queue                    | string! | cpu-bound, gpu-bound, sync-bound, mixed or unknown
grade                    | string  | PROVEN, DERIVED or HINT
limit                    | string! | family with the largest cost; device-busy from 90 % busy on; unknown-time where most of the loss has no cause; clocks where they disagree
limit_ns                 | int64!  | what that family cost
limit_share              | float64 | its share of the span
limit_class              | string  | class of the family's largest item
limit_name               | string  | its name: an API, operator, range, kernel
""")

KERNELS = _columns("""
device             | int32   | device
owner              | string! | as in devices
kind               | string! | kernel, or copy (copies and fills)
name               | string! | full name
short_name         | string! | name as reports show it
config             | string  | launch configuration, where a name was launched in several: each has a row, and no row mixes them
count              | int64!  | rows
total_ns           | int64!  | sum of self-times
min_ns             | int64!  | shortest
p50_ns             | int64!  | median self-time
p90_ns             | int64!  | 90th percentile
max_ns             | int64!  | longest
mad_ns             | int64!  | median absolute deviation
p50_low_ns         | int64   | 95 % interval of the median, lower end
p50_high_ns        | int64   | upper end
exclusive_p50_ns   | int64   | median of what a run adds to its predecessors' busy time
share              | float64 | share of all kernel time of the trace
starved            | int64!  | launches that met an empty stream
dispatch_p50_ns    | int64   | time from launch to launch
event_reading_ns   | int64   | what an event pair reads
inflation          | float64 | event_reading over self-time
reading_absent     | string  | code of why there is no reading
queue              | string! | as in devices
grade              | string  | as in devices
""")

OPERATIONS = _columns("""
device                 | int32   | set where the trace has several
name                   | string! | name of the operation
method                 | string! | how its calls were told apart
calls                  | int64!  | calls
launches_per_call      | float64 | launches
kernels_per_call       | float64 | kernels
self_time_p50_ns       | int64   | sum of the kernels' self-times per call
busy_p50_ns            | int64   | device busy time per call
span_p50_ns            | int64   | first start to last end per call
period_p50_ns          | int64   | from call to call
dispatch_p50_ns        | int64   | host time from call to call
wall_nosync_ns         | int64   | reading of a wall clock without synchronise
wall_sync_each_ns      | int64   | of a wall clock, synchronise each call
wall_sync_once_ns      | int64   | of a wall clock, synchronise once
event_pair_ns          | int64   | of an event pair per call
event_pair_sync_ns     | int64   | of an event pair, synchronise each call
event_loop_ns          | int64   | of events around the loop
do_bench_ns            | int64   | of an event pair behind a cache clear
graph_unrolled_ns      | int64   | of calls unrolled in one graph
profiler_self_time_ns  | int64   | of the profiler
inflation              | float64 | event pair over self-time
reading_absent         | string  | code of why the event pair has no reading
queue                  | string! | as in devices
grade                  | string  | as in devices
""")

STEPS = _columns("""
device          | int32   | device
owner           | string! | as in devices
name            | string! | name of the step
method          | string! | ProfilerStep, a range, or launches that repeat
count           | int64!  | steps
p50_ns          | int64!  | median length on the host
mean_ns         | int64!  | mean
min_ns          | int64!  | shortest
max_ns          | int64!  | longest
wait_p50_ns     | int64!  | time in which its thread waited for the device
busy_p50_ns     | int64   | time in which the device worked
slowest_index   | int64!  | which step is the slowest, from 0
slowest_cause   | string! | class of the ledger of which it has most more than the median step; empty for none
""")

LEDGER = _columns("""
device     | int32!  | device
owner      | string! | as in devices
window     | string! | span, or the name of an operation
axis       | string! | class (these add up to span_ns), drained_by (these add up to the idle time), family (what limits; span only), or item (the largest causes)
code       | string! | the class, the reason the device ran dry, or the family
name       | string  | of an item: API, operator, range, frame or device row
within     | string  | of an item: innermost range of the user
ns         | int64!  | time
span_ns    | int64!  | of the window
count      | int64   | of an item: idle intervals that it met
longest_ns | int64   | of an item: the longest of them
""")

FINDINGS = _columns("""
rule         | string! | code of the rule
code         | string! | which of its messages
severity     | string! | error, warning or note
grade        | string! | PROVEN, DERIVED or HINT
subject_kind | string! | trace, device, operation, kernel, range or api
subject_name | string! | its name, empty where it has none
device       | int32   | device of the subject
stream       | int32   | stream of the subject
window       | string  | what the cost is a part of
cost_ns      | int64   | device time that the cause took
cost_share   | float64 | its share of the window
worth        | float64 | part of the period that goes when the cause goes
params       | string! | what is in the message, as a JSON object of numbers and names
""")

COLLECTIVES = _columns("""
device   | int32!  | how many devices of the trace with collectives came before
place    | int64!  | place among the collectives of the device, by start
name     | string! | name of the kernel
start_ns | int64!  | absolute, on the clock of the rank's host
end_ns   | int64!  | end
""")

FAULTS = _columns("""
file_bytes        | int64!  | size of the file
file_mtime_ns     | int64!  | its time of change
code              | string! | kind of error as the commands print it (truncated, not_a_trace), or timeout, out_of_memory, killed, exited, worker_lost, internal_error
place             | string  | of internal_error: type and place in the source
offset_bytes      | int64   | where in the (decompressed) file
signal            | int32   | of killed: number of the signal
exit_code         | int32   | of exited
elapsed_ns        | int64!  | how long it ran
cpu_ns            | int64   | its CPU time, where known
peak_memory_bytes | int64   | its largest resident memory, where known
version           | string! | version of traceanalyzer
""")

TABLES: dict[str, tuple[TableColumn, ...]] = {
    name: (*COMMON, *own)
    for name, own in (
        ("runs", RUNS), ("devices", DEVICES), ("kernels", KERNELS), ("operations", OPERATIONS), ("steps", STEPS), ("ledger", LEDGER),
        ("findings", FINDINGS), ("collectives", COLLECTIVES), ("faults", FAULTS),
    )
}  # fmt: skip
ABOUT = {
    "runs": "one row per trace that was analysed",
    "devices": "one row per device of a trace",
    "kernels": "one row per kernel name, launch configuration and device, the largest totals first; copies and fills too",
    "operations": "one row per operation: the thing that a benchmark measures, and graph replays",
    "steps": "one row per kind of step",
    "ledger": "where the time of each device went; no row mixes devices",
    "findings": "one row per finding",
    "collectives": "the collectives of each rank, where its rank is known",
    "faults": "one row per file without a run, and why",
}

Row = dict[str, Any]
Rows = dict[str, list[Row]]
"""Rows by table; a column that a row lacks is null."""


def kept_name(text: str) -> str:
    """Return a name that every table can hold: valid Unicode, no NUL, at most :data:`MOST_NAME` characters."""
    if len(text) > MOST_NAME:
        half = (MOST_NAME - 1) // 2
        text = f"{text[:half]}…{text[-half:]}"
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "\\x00").encode("utf-8", "backslashreplace").decode("utf-8")
