"""Ascend's trace_view, Intel's unitrace and Kineto's rows of MTIA."""

from __future__ import annotations

import numpy as np

from tests.inputs.samples import INPUTS, arrow, lane, needs_samples, process, row, write_events
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.tables import NO_ROW


@needs_samples
def test_the_public_ascend_file_links_by_its_arrows_and_has_one_device():
    trace = read(INPUTS / "ascend" / "trace_view.json.gz")
    assert len(trace.activities) == 276 and int((trace.activities.call != NO_ROW).sum()) == 274
    assert len(trace.devices) == 1 and len(trace.host_ops) == 711
    assert not {"Free", "Computing"} & {trace.names[i] for i in trace.activities.name.tolist()}
    own = trace.activities.call != NO_ROW
    assert {trace.threads[t].process for t in trace.calls.thread[trace.activities.call[own]].tolist()} == {"43767502"}


def test_derived_processes_of_ascend_are_no_devices_and_waiting_tasks_no_kernels(tmp_path):
    events = [
        *process(8, "Ascend Hardware", "NPU"),
        lane(8, 3, "Stream 3"),
        *process(9, "Overlap Analysis", "NPU"),
        *process(7, "CANN", "CPU"),
    ]
    events += [
        row(7, 1, "AscendCL@aclnnAdd", "10.5", 20),
        row(7, 1, "AscendCL@inner", "12", 4),
        row(7, 1, "AscendCL@aclrtSynchronizeStream", 40, 9),
    ]
    events += [row(8, 3, "Add", "35.250", 2.5), row(8, 3, "EVENT_WAIT", 50, 900), row(8, 3, "MEMCPY_ASYNC", 60, 1)]
    events += [row(9, 3, "Free", 0, 30), row(9, 0, "Computing", 35.25, 2.5)]
    events += [arrow("s", "HostToDevice", "5", 7, 1, "13.5"), arrow("f", "HostToDevice", "5", 8, 3, "35.250")]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert [trace.names[i] for i in trace.activities.name.tolist()] == ["Add", "MEMCPY_ASYNC"]
    assert trace.activities.kind.tolist() == [RowKind.KERNEL, RowKind.MEMCPY]
    assert trace.apis[trace.calls.api[trace.activities.call[0]]] == "inner"
    assert ApiClass.SYNC_STREAM in trace.calls.api_class.tolist()
    assert trace.meta.skipped["event or notify task of a stream"] == 1
    assert [(r.code.value, r.params["rows"]) for r in trace.meta.remarks] == [("derived_lanes", 2)]


def unitrace() -> list[dict[str, object]]:
    device = 4294967295
    events = [
        *process(7, "HOST<somewhere>"),
        *process(device, "DEVICE<somewhere>0:3a:0:0 #1"),
        lane(device, 90, "Thread 7 L0 Engine<0,0>"),
        lane(device, 89, "Thread 7 L0 Engine<1,0>"),
    ]
    events += [
        row(7, 7, "zeEventHostReset", 100, 0, "cpu_op"),
        row(7, 7, "zeCommandListAppendLaunchKernel", 100, 5, "cpu_op"),
        row(7, 7, "zeCommandListAppendMemoryCopy", 110, 5, "cpu_op"),
        row(7, 7, "my task", 90, 60, "cpu_op"),
    ]
    events += [
        row(device, 90, "gemm[SIMD16 {64; 2; 1} {128; 1; 1}]", 120, 10, "gpu_op", id="1"),
        row(device, 89, "zeCommandListAppendMemoryCopy(M2D)[4096]", 131, 4, "gpu_op", id="2"),
        row(device, 90, "zeCommandListAppendBarrier", 140, 50, "gpu_op", id="3"),
    ]
    for number, at, begun in ((1, 100, 120), (2, 110, 131)):
        place = (device, 90 if number == 1 else 89, begun)
        events += [
            arrow("s", f"Flow_H2D_{number}_0", number, 7, 7, at),
            arrow("t", f"Flow_H2D_{number}_0", number, *place),
            arrow("s", f"Flow_D2H_{number}_0", number, *place),
        ]
    return events


def test_unitrace_joins_by_arrows_and_reads_sizes_from_names(tmp_path):
    trace = read(write_events(tmp_path / "t.json", *unitrace()))
    assert trace.meta.flavour == "unitrace" and trace.devices[0].number == 1
    names = [trace.names[i] for i in trace.activities.name.tolist()]
    by_name = dict(zip(names, range(len(names)), strict=True))
    gemm, copy = by_name["gemm"], by_name["zeCommandListAppendMemoryCopy(M2D)"]
    assert trace.configs[trace.activities.config[gemm]].describe() == "grid 64x2x1 block 128x1x1"
    assert trace.activities.bytes_moved[copy] == 4096
    assert [trace.apis[trace.calls.api[trace.activities.call[i]]] for i in (gemm, copy)] == [
        "zeCommandListAppendLaunchKernel",
        "zeCommandListAppendMemoryCopy",
    ]
    assert [trace.names[i] for i in trace.host_ops.name.tolist()] == ["my task"]
    assert trace.meta.skipped["barrier or event command of a queue"] == 1 and trace.meta.skipped["Flow_D2H"] == 2
    assert len(trace.lanes) == 2 and "somewhere" not in repr(trace.meta) + repr(trace.devices)


def test_an_unclosed_file_of_unitrace_is_read_to_its_end(tmp_path):
    path = write_events(tmp_path / "t.json", *unitrace())
    path.write_text(path.read_text().removesuffix("]}") + ",\n")
    trace = read(path)
    assert trace.meta.salvage.incomplete and len(trace.activities) == 2


def test_cpu_op_without_device_rows_of_unitrace_stays_an_operator(tmp_path):
    trace = read(
        write_events(
            tmp_path / "t.json", row(1, 1, "aten::add", 0, 5, "cpu_op"), row(1, 1, "aten::add", 9, 5, "cpu_op")
        )
    )
    assert len(trace.host_ops) == 2 and not len(trace.calls)


def test_rows_of_mtia_are_device_rows_and_their_calls_calls(tmp_path):
    events = [
        row(1, 1, "runFunction - job_prep_and_submit_for_execution", 0, 4, "mtia_runtime", correlation=3),
        row(0, 7, "fba_gemm", 9, 5, "mtia_ccp_events", correlation=3, device=0, stream=7),
    ]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert np.array_equal(trace.activities.kind, [RowKind.KERNEL]) and trace.activities.call[0] == 0
    assert trace.calls.api_class[0] == ApiClass.KERNEL_LAUNCH and trace.meta.flavour == "kineto"
