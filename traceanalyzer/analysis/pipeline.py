"""The one place that orders the analyses of a trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from traceanalyzer import number_text
from traceanalyzer.analysis import clocks as clock_analysis
from traceanalyzer.analysis import stats
from traceanalyzer.analysis.clocks import Clocks, ClockState
from traceanalyzer.analysis.coverage import LinkCoverage, coverage
from traceanalyzer.analysis.graphs import ReplayFacts, graph_replays, in_graph
from traceanalyzer.analysis.idle import IdleFacts, idle_facts
from traceanalyzer.analysis.iterations import find_iterations, step_iterations
from traceanalyzer.analysis.kernels import KernelFacts, kernel_table
from traceanalyzer.analysis.launching import Launching, ThreadDispatch, dispatch, launching
from traceanalyzer.analysis.ledger import DeviceLedger, LedgerMaker
from traceanalyzer.analysis.operations import OpFacts, operation
from traceanalyzer.analysis.origin import Origin, origin
from traceanalyzer.analysis.queue import Doubts, Judge, QueueState, QueueVerdict, dry_launches, starved_for_judgement
from traceanalyzer.analysis.readings import Readings, event_readings
from traceanalyzer.analysis.selection import Chosen, choose
from traceanalyzer.analysis.steps import StepFacts, find_steps
from traceanalyzer.analysis.streams import StreamFacts, Waits, depth_at_launch, stream_facts, waits
from traceanalyzer.analysis.symbols import MachineSymbols, machine_symbols
from traceanalyzer.analysis.unit_ledgers import Repeats, unit_ledgers, with_unit
from traceanalyzer.analysis.worth.worth import WorthMaker
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.record import record
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.tables import Bool, Int64, Trace

FEW_LAUNCHES = 10
"""Below this a device-wide state needs regular intervals too: the share of so few launches may be chance."""

_HEAVY_FLAGS = ("with_stack", "record_shapes", "profile_memory")


@record(frozen=True)
class DeviceAnalysis:
    """One device: its chosen rows, its idle anatomy and its queue state."""

    device: int
    rows: Int64
    idle: IdleFacts
    queue: QueueVerdict


@record(frozen=True)
class Analysis:
    """A trace with everything computed from it; lists are empty where the trace has no such rows.

    ``ledgers`` has one per device, over its span; ``op_ledgers`` one per operation and device, from the first row of its first
    call to the first row of its last.
    """

    trace: Trace
    options: AnalysisOptions
    origin: Origin
    chosen: Chosen
    host: Launching
    waits: Waits
    starved: Bool
    depth: Int64
    readings: Readings
    clocks: Clocks
    doubts: Doubts
    threads: list[ThreadDispatch]
    streams: list[StreamFacts]
    devices: list[DeviceAnalysis]
    kernels: list[KernelFacts]
    copies: list[KernelFacts]
    replays: list[ReplayFacts]
    replay_queues: list[QueueVerdict]
    coverage: LinkCoverage
    machines: list[MachineSymbols]
    operations: list[OpFacts]
    no_operations: str
    ledgers: list[DeviceLedger]
    op_ledgers: list[DeviceLedger]
    steps: list[StepFacts]


def analyse(trace: Trace, options: AnalysisOptions | None = None) -> Analysis:
    """Return the analysis of a trace under the given options."""
    options = options or AnalysisOptions()
    where = origin(trace)
    chosen = choose(trace, options.selection, where)
    rows = trace.activities
    host = launching(trace)
    found = waits(trace, host)
    depth = depth_at_launch(trace, found)
    threads = dispatch(trace, host, chosen.calls)
    pooled = np.concatenate([t.steady_ns for t in threads]) if threads else np.empty(0, dtype=np.int64)
    clocks = clock_analysis.clocks(trace, found, stats.median(pooled), options)
    starved = starved_for_judgement(found, clocks)
    linkage = coverage(trace, host, found, chosen.rows, chosen.calls)
    doubts = Doubts(_link_doubt(linkage, options), _host_doubt(trace))
    readings = event_readings(trace, host, found, clocks.state is ClockState.OFFSET)

    dry = dry_launches(trace, found, depth)
    queue_of = Judge(found, starved, dry, in_graph(trace), clocks, doubts, options)

    is_kernel = rows.kind == RowKind.KERNEL
    wanted = chosen.rows & chosen.names[rows.name] if len(rows) else chosen.rows
    machines = [
        machine_symbols(trace, host, found, readings, options.clear_us, d, where) for d in range(len(trace.devices))
    ]
    iterations = find_iterations(trace, host, chosen, options.selection.range_name, where)
    replays = graph_replays(trace, host, readings, chosen.rows)
    devices = _devices(trace, found, chosen, linkage, threads, queue_of, options)
    operations = (
        []
        if isinstance(iterations, str)
        else [
            operation(trace, host, found, machines, i, queue_of, clocks.state is ClockState.DISAGREE, options)
            for i in iterations
        ]
    )
    maker = LedgerMaker(trace)
    ledgers = maker.spans([(d.device, d.rows) for d in devices])
    worth = WorthMaker(trace, clocks.state is ClockState.DISAGREE)
    op_ledgers = unit_ledgers(trace, ledgers, [Repeats.of(op) for op in operations], worth)
    steps = step_iterations(trace, host, chosen, where, operations[0].iterations.method if operations else "")
    step_ledgers = unit_ledgers(trace, ledgers, [Repeats.of_steps(trace, s) for s in steps], worth)
    return Analysis(
        trace=trace,
        options=options,
        origin=where,
        chosen=chosen,
        host=host,
        waits=found,
        starved=starved,
        depth=depth,
        readings=readings,
        clocks=clocks,
        doubts=doubts,
        threads=threads,
        streams=stream_facts(trace, found, depth, chosen.rows),
        devices=devices,
        kernels=kernel_table(trace, host, found, readings, depth, wanted & is_kernel, queue_of),
        copies=kernel_table(trace, host, found, readings, depth, wanted & ~is_kernel, queue_of),
        replays=replays,
        replay_queues=[queue_of(r.opening) for r in replays],
        coverage=linkage,
        machines=machines,
        operations=operations,
        no_operations=_no_operations(iterations, bool(replays)) if isinstance(iterations, str) else "",
        ledgers=[with_unit(ledger, op_ledgers, step_ledgers) for ledger in ledgers],
        op_ledgers=[found.ledger for found in op_ledgers],
        steps=find_steps(trace, host, chosen, where, [op.iterations for op in operations], ledgers),
    )


def _no_operations(reason: str, replays: bool) -> str:
    # the operations table shows replays of a graph; the rules on calls do not judge them
    return f"{reason} (replays of a graph do not count here)" if replays else reason


def _devices(
    trace: Trace, found: Waits, chosen: Chosen, linkage: LinkCoverage, threads: list[ThreadDispatch],
    queue_of: Callable[[Int64], QueueVerdict], options: AnalysisOptions,
) -> list[DeviceAnalysis]:  # fmt: skip
    rows = trace.activities
    device_of_lane = np.array([lane.device for lane in trace.lanes], dtype=np.int64)
    result = []
    for number in range(len(trace.devices)):
        at = np.flatnonzero(chosen.rows & (device_of_lane[rows.lane] == number)) if len(rows) else np.empty(0, np.int64)
        if not len(at):
            continue
        idle = idle_facts(trace, found, number, at, rows.kind[at] == RowKind.KERNEL, options)
        queue = _temper(queue_of(at), idle, linkage, threads, options)
        result.append(DeviceAnalysis(number, at, idle, queue))
    return result


def _temper(
    queue: QueueVerdict, idle: IdleFacts, linkage: LinkCoverage, threads: list[ThreadDispatch], options: AnalysisOptions
) -> QueueVerdict:
    """Take back a device-wide "cpu-bound" that starvation alone does not carry (TA201's false positives)."""
    if queue.state is not QueueState.CPU_BOUND:
        return queue
    idle_share = 1 - idle.busy_ns / idle.span_ns if idle.span_ns else 0.0
    if linkage.captured > linkage.launches:
        reason = f"{linkage.captured} launches were recorded into a graph and ran nothing; {linkage.launches} ran"
        return replace(queue, state=QueueState.UNKNOWN, grade=None, reason=reason)
    if queue.counted < FEW_LAUNCHES and not _regular(threads):
        reason = f"too few launches ({queue.counted}), at irregular intervals"
        return replace(queue, state=QueueState.UNKNOWN, grade=None, reason=reason)
    if idle_share < options.threshold("idle_share"):
        return replace(
            queue, state=QueueState.MIXED, reason=f"starved launches, but only {number_text.percent(idle_share)} idle"
        )
    if idle.busy_ns and idle.copy_ns / idle.busy_ns > options.threshold("copy_share"):
        took, busy = number_text.duration(idle.copy_ns), number_text.duration(idle.busy_ns)
        return replace(
            queue, state=QueueState.MIXED, reason=f"copies and fills take {took}, and the device is busy for {busy}"
        )
    return queue


def _regular(threads: list[ThreadDispatch]) -> bool:
    """Return whether the busiest thread launches at a steady pace: MAD of kernel dispatch within a quarter of its median."""
    gaps = max((t.kernel_dispatch_ns for t in threads), key=len, default=np.empty(0, dtype=np.int64))
    middle, spread = stats.median(gaps), stats.mad(gaps)
    return middle is not None and spread is not None and len(gaps) >= 2 and spread <= 0.25 * middle


def _link_doubt(linkage: LinkCoverage, options: AnalysisOptions) -> str:
    if linkage.rows and linkage.unlinked / linkage.rows > options.threshold("lost_share"):
        return f"{linkage.unlinked} of {linkage.rows} device rows have no launch in the trace"
    return ""


def _host_doubt(trace: Trace) -> str:
    causes = [f for f in _HEAVY_FLAGS if trace.meta.flags.get(f)]
    if trace.meta.python_rows and "with_stack" not in causes:
        causes.insert(0, "Python frames")
    return f"the profiler recorded {', '.join(causes)}, which slows the host" if causes else ""
