"""JAX: the lanes of its Chrome JSON, and XPlane files."""

from __future__ import annotations

import gzip
import os

import numpy as np
import pytest

import traceanalyzer as ta
from tests.inputs.samples import INPUTS, lane, needs_samples, process, row, write_events
from tests.inputs.xplane_writer import Plane, message, number
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.parts import RecordedPart
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.tables import NO_ROW


@needs_samples
@pytest.mark.parametrize(("name", "rows"), [("a10g.trace.json.gz", 60), ("mi300_conv.xplane.pb", 235)])
def test_every_device_row_of_the_public_files_is_linked(name, rows):
    trace = read(INPUTS / "jax" / name)
    assert len(trace.activities) == rows and (trace.activities.call != NO_ROW).all()
    assert trace.meta.flavour == "jax" and not trace.meta.salvage.touched


@needs_samples
def test_one_graph_launch_owns_its_kernels_and_one_call_of_the_function_is_one_range():
    trace = read(INPUTS / "jax" / "a10g.trace.json.gz")
    assert trace.calls.n_activities.tolist() == [6] * 10
    assert set(trace.calls.api_class.tolist()) == {ApiClass.GRAPH_LAUNCH}
    assert [trace.names[i] for i in trace.ranges.name.tolist()] == ["PjitFunction(conv2d_manual_jax)"] * 10


def test_ids_are_strings_and_derived_lanes_are_no_device_rows(tmp_path):
    trace = read(
        write_events(
            tmp_path / "t.json", *process(1, "/device:GPU:3"), lane(1, 7, "Stream #7(Compute)"), lane(1, 8, "XLA Ops"),
            lane(1, 9, "Stream #9(MemcpyH2D)"), *process(2, "/host:CPU"),
            row(2, 5, "cuLaunchKernel", 0, 2, correlation_id="11"),
            row(2, 5, "cuMemcpyHtoDAsync_v2", 4, 2, correlation_id="12"),
            row(1, 7, "fusion", 5, 3, correlation_id="11", kernel_details="regs:32 static_shared:8 dynamic_shared:4 grid:8,1,1 block:256,1,1"),
            row(1, 8, "fusion", 5, 3, correlation_id="11"),
            row(1, 9, "MemcpyH2D", 9, 1, correlation_id="12", memcpy_details="kind_src:pageable kind_dst:device size:4096 async:1"),
        )
    )  # fmt: skip
    assert [(d.number, lane_.stream) for lane_ in trace.lanes for d in [trace.devices[lane_.device]]] == [
        (3, 7),
        (3, 9),
    ]
    assert [trace.names[i] for i in trace.activities.name.tolist()] == ["fusion", "Memcpy HtoD (Pageable -> Device)"]
    assert trace.configs[trace.activities.config[0]].describe() == "grid 8x1x1 block 256x1x1 regs 32 smem 12"
    assert trace.activities.bytes_moved[1] == 4096 and (trace.activities.call != NO_ROW).all()
    assert trace.meta.skipped["row of a lane that shows others' work again"] == 1


@pytest.mark.parametrize(
    "details",
    [
        "grid:8,1,1 block:4294967295,1,1",
        "grid:0,0,0 block:0,0,0",
        "grid:8,1 block:1,1,1 x",
        "grid:99999999999999,1,1 block:512,512,1",
        "",
    ],
)
def test_numbers_that_were_never_set_are_no_configuration(tmp_path, details):
    events = [*process(1, "/device:GPU:0"), lane(1, 7, "Stream #7"), row(1, 7, "k", 5, 3, kernel_details=details)]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert trace.configs[trace.activities.config[0]].block in (None, (1, 1, 1))


def test_what_xla_does_not_trace_is_not_said_to_be_absent(tmp_path):
    events = [*process(1, "/device:GPU:0"), lane(1, 7, "Stream #7"), row(1, 7, "k", 5, 3, correlation_id="1")]
    events += [*process(2, "/host:CPU"), row(2, 5, "cuLaunchKernel", 0, 2, correlation_id="1")]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert {
        RecordedPart.SYNC_CALLS,
        RecordedPart.ALLOCATIONS,
        RecordedPart.MODULE_LOADS,
        RecordedPart.OVERHEADS,
    } <= trace.meta.unrecorded
    synced = [*events, row(2, 5, "cuStreamSynchronize", 9, 2)]
    assert RecordedPart.SYNC_CALLS not in read(write_events(tmp_path / "s.json", *synced)).meta.unrecorded


# -- XPlane ------------------------------------------------------------------------------------------


def planes() -> bytes:
    device, host = Plane("/device:GPU:2"), Plane("/host:CPU")
    details = "regs:24 static_shared:0 dynamic_shared:16 grid:4,2,1 block:128,1,1"
    device.line(
        13, "Stream #13(Compute)", 1000,
        [device.event("k", 1_500_500, 2_000_000, correlation_id=1, kernel_details=details), device.event("k", 9_000_000, 500, correlation_id=2)],
    )  # fmt: skip
    device.line(99, "XLA Modules", 1000, [device.event("module", 0, 9_000_000)])
    host.line(
        -7, "python", 1000,
        [
            host.event("PjitFunction(f)", 0, 8_000_000), host.event("PjitFunction(f)", 100_000, 7_000_000), host.event("train", 0, 9_000_000, step_num=3),
            host.event("cuLaunchKernel", 200_000, 300_000, correlation_id=1), host.event("$f.py:1 f", 0, 1), host.event("Execute", 150_000, 500_000),
        ],
    )  # fmt: skip
    return device.encode() + host.encode() + message(4, "a-host-name")


def test_times_ids_and_names_of_xplane(tmp_path):
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(planes())
    trace = read(path)
    assert trace.activities.start_ns.tolist() == [2501, 10_000] and trace.activities.dur_ns.tolist() == [2000, 1]
    assert trace.activities.call.tolist() == [0, NO_ROW] and trace.apis == ["cuLaunchKernel"]
    assert trace.devices[0].number == 2 and trace.lanes[0].stream == 13
    assert trace.configs[trace.activities.config[0]].describe() == "grid 4x2x1 block 128x1x1 regs 24 smem 16"
    assert sorted(trace.names[i] for i in trace.ranges.name.tolist()) == ["PjitFunction(f)", "train"]
    assert [trace.names[i] for i in trace.host_ops.name.tolist()] == ["Execute"]
    assert "a-host-name" not in repr(trace.meta)


def test_a_compressed_xplane_is_the_same(tmp_path):
    plain, packed = tmp_path / "t.xplane.pb", tmp_path / "p.xplane.pb.gz"
    plain.write_bytes(planes())
    packed.write_bytes(gzip.compress(planes()))
    assert np.array_equal(read(plain).activities.start_ns, read(packed).activities.start_ns)


def test_a_file_cut_anywhere_gives_what_is_there_or_one_line(tmp_path):
    whole, path = planes(), tmp_path / "t.xplane.pb"
    most = 0
    for end in range(1, len(whole)):
        path.write_bytes(whole[:end])
        try:
            trace = read(path)
        except TraceFormatError as error:
            assert "\n" not in str(error)
            continue
        most = max(most, len(trace.activities))
        # a file that ends between two planes is a whole file
        assert trace.meta.salvage.incomplete or whole[end : end + 1] in (b"\x0a", b"\x22")
    assert most == 2


def test_random_bytes_behind_a_good_beginning_end_well(tmp_path):
    path, whole = tmp_path / "t.xplane.pb", planes()
    for seed in range(40):
        junk = bytearray(whole)
        for at in os.urandom(12):
            junk[30 + at % (len(junk) - 30)] = os.urandom(1)[0]
        path.write_bytes(bytes(junk))
        try:
            read(path)
        except TraceFormatError as error:
            assert "\n" not in str(error), seed


def test_lengths_beyond_the_file_and_numbers_beyond_64_bits(tmp_path):
    path = tmp_path / "t.xplane.pb"
    plane = Plane("/device:GPU:0")
    plane.line(1, "Stream #1", (1 << 63) - 1, [plane.event("k", (1 << 62), 1, correlation_id=(1 << 63) - 1)])
    plane.line(2, "Stream #99999999999999999999", 5, [plane.event("k", 5, 1)])
    path.write_bytes(plane.encode())
    assert len(read(path).activities) <= 1
    path.write_bytes(b"\x0a\xff\xff\xff\xff\x0f" + number(1, 1) + message(2, "/host:CPU"))
    assert read(path).meta.salvage.incomplete


def test_more_events_than_the_limit_are_refused(tmp_path):
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(planes())
    with pytest.raises(TraceFormatError, match="rows to keep"):
        read(path, ReadLimits(max_rows=1))


def test_rocclr_kernels_are_copies_and_the_suffix_of_code_objects_goes(tmp_path):
    plane = Plane("/device:GPU:0")
    plane.line(
        1,
        "Stream #1(Kernel)",
        0,
        [plane.event("__amd_rocclr_copyBuffer.kd", 0, 1000), plane.event("fusion.kd", 5000, 1000)],
    )
    path = tmp_path / "t.xplane.pb"
    path.write_bytes(plane.encode())
    trace = read(path)
    assert trace.activities.kind.tolist() == [RowKind.MEMCPY, RowKind.KERNEL]
    assert [trace.names[i] for i in trace.activities.name.tolist()] == ["__amd_rocclr_copyBuffer", "fusion"]


def test_a_lane_that_computes_and_copies_has_kernels_and_copies(tmp_path):
    events = [
        *process(1, "/device:GPU:0"),
        lane(1, 7, "Stream #7(Compute,MemcpyD2D)"),
        lane(1, 8, "Stream #8(MemcpyH2D)"),
    ]
    events += [
        row(1, 7, "fusion", 0, 3),
        row(1, 7, "MemcpyD2D", 5, 3),
        row(1, 7, "memset32_post", 9, 3),
        row(1, 8, "x", 5, 3),
    ]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert trace.activities.kind.tolist() == [RowKind.KERNEL, RowKind.MEMCPY, RowKind.MEMSET, RowKind.MEMCPY]


def test_a_trace_of_the_host_alone_is_of_jax_too(tmp_path):
    events = [*process(2, "/host:CPU"), row(2, 5, "PjitFunction(f)", 0, 2)]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert trace.meta.flavour == "jax" and len(trace.ranges) == 1


def test_graph_launches_of_several_processes_are_linked(tmp_path):
    events = [*process(1, "/device:GPU:0"), lane(1, 7, "Stream #7"), *process(2, "/host:CPU"), *process(3, "/host:CPU")]
    for host in (2, 3):
        events += [row(host, 5, "cuGraphLaunch (CudaGraph:1)", 0, 2, correlation_id=str(host))]
        events += [row(1, 7, "k", 10 * host, 3, correlation_id=str(host))]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert (trace.activities.call != NO_ROW).all()


def test_a_name_that_holds_the_mark_of_a_number_is_a_name(tmp_path):
    events = [*process(1, "/device:GPU:0"), lane(1, 7, "Stream #7"), *process(2, "/host:CPU")]
    for i, name in enumerate(("PjitFunction(f_\0)", "PjitFunction(f_1)", "PjitFunction(f_2)")):
        events += [row(2, 5, name, 100 * i, 50), row(2, 5, "cuLaunchKernel", 100 * i + 1, 2, correlation_id=str(i + 1))]
        events += [row(1, 7, "k", 100 * i + 10, 3, correlation_id=str(i + 1))]
    assert len(ta.analyze(write_events(tmp_path / "t.json", *events)).data.kernels) == 1
