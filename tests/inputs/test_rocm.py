"""ROCm: rpd as a database and as JSON, rocprofv3's JSON, rocpd in both of its layouts."""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.inputs.samples import INPUTS, arrow, needs_samples, process, row, write_events
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.report.remarks import sentence_of
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.tables import NO_ROW, Trace


def names(trace: Trace) -> list[str]:
    return [trace.names[i] for i in trace.activities.name.tolist()]


def described(trace: Trace) -> list[str]:
    return [trace.configs[i].describe() for i in trace.activities.config.tolist()]


@needs_samples
def test_both_forms_of_rpd_tell_the_same_story():
    exact, rounded = (read(INPUTS / "rocm" / name) for name in ("matmul.rpd", "matmul_rpd.json"))
    for trace in (exact, rounded):
        assert len(trace.activities) == 85 and (trace.activities.call != NO_ROW).all()
        assert np.bincount(trace.activities.kind).tolist() == [0, 29, 55, 1]
        assert trace.devices[0].number == 2
    assert names(exact) == names(rounded)
    apis = [[t.apis[t.calls.api[c]] for c in t.activities.call.tolist()] for t in (exact, rounded)]
    assert apis[0] == apis[1]
    assert np.array_equal(exact.activities.start_ns // 1000 * 1000, rounded.activities.start_ns)
    assert (exact.meta.step_ns, rounded.meta.step_ns) == (1, 1000)


@needs_samples
def test_rocprofv3_without_host_calls_is_read_and_says_so():
    trace = read(INPUTS / "rocm" / "rocprofv3_kernels_only.json.gz")
    assert len(trace.activities) == 43_915 and not len(trace.calls)
    assert int(trace.activities.dur_ns.sum()) == 4_441_741_378
    assert sorted(lane.stream for lane in trace.lanes) == [16, 17, 18, 19, 20]
    assert (trace.devices[0].number, trace.devices[0].name) == (0, "AMD Instinct MI350X")
    same_lane = np.diff(trace.activities.lane) == 0
    assert (np.diff(trace.activities.start_ns)[same_lane] >= 0).all()
    assert "--hip-trace" in sentence_of(trace.meta.remarks[0])


# -- rpd ---------------------------------------------------------------------------------------------


def rpd(path: Path) -> Path:
    strings = [
        "",
        "hipLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipMemcpyAsync",
        "UserMarker",
        "step",
        "k",
        "KernelExecution",
        "CopyHostToDevice",
        "Barrier",
    ]
    with sqlite3.connect(path) as db:
        db.executescript("""
            CREATE TABLE rocpd_string (id INTEGER PRIMARY KEY, string TEXT);
            CREATE TABLE rocpd_api (id INTEGER PRIMARY KEY, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, apiName_id INTEGER, args_id INTEGER);
            CREATE TABLE rocpd_op (id INTEGER PRIMARY KEY, gpuId INTEGER, queueId INTEGER, start INTEGER, end INTEGER, description_id INTEGER, opType_id INTEGER);
            CREATE TABLE rocpd_api_ops (id INTEGER PRIMARY KEY, api_id INTEGER, op_id INTEGER);
            CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, gridX INTEGER, gridY INTEGER, gridZ INTEGER, workgroupX INTEGER, workgroupY INTEGER, workgroupZ INTEGER, groupSegmentSize INTEGER);
            CREATE TABLE rocpd_copyapi (api_ptr_id INTEGER PRIMARY KEY, size INTEGER, kind INTEGER, width TEXT);
        """)
        db.executemany("INSERT INTO rocpd_string VALUES (?, ?)", list(enumerate(strings, 1)))
        at = {s: i for i, s in enumerate(strings, 1)}
        calls = [
            (1, 70, 71, 0, 9, "hipLaunchKernel", ""),
            (2, 70, 71, 10, 19, "hipExtModuleLaunchKernel", ""),
            (3, 80, 81, 20, 29, "hipMemcpyAsync", ""),
            (4, 70, 71, 0, 90, "UserMarker", "step"),
        ]
        db.executemany(
            "INSERT INTO rocpd_api VALUES (?, ?, ?, ?, ?, ?, ?)", [(*c[:5], at[c[5]], at[c[6]]) for c in calls]
        )
        ops = [
            (11, 1, 0, 30, 40, "k", "KernelExecution"),
            (12, 1, 0, 50, 60, "k", "KernelExecution"),
            (13, 1, 2, 70, 80, "", "CopyHostToDevice"),
            (14, 1, 0, 61, 62, "", "Barrier"),
            (15, 1, 0, 90, 99, "k", "KernelExecution"),
        ]
        db.executemany("INSERT INTO rocpd_op VALUES (?, ?, ?, ?, ?, ?, ?)", [(*o[:5], at[o[5]], at[o[6]]) for o in ops])
        db.executemany("INSERT INTO rocpd_api_ops (api_id, op_id) VALUES (?, ?)", [(1, 11), (2, 12), (3, 13)])
        db.executemany(
            "INSERT INTO rocpd_kernelapi VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(1, 8, 2, 1, 256, 1, 1, 64), (2, 1000, 2, 1, 256, 1, 1, 0)],
        )
        db.execute("INSERT INTO rocpd_copyapi VALUES (3, 4096, 1, '')")
    db.close()
    return path


def test_rpd_links_by_its_own_table_and_counts_grids_in_blocks(tmp_path):
    trace = read(rpd(tmp_path / "t.rpd"))
    by_start = np.argsort(trace.activities.start_ns)
    calls = [trace.activities.call[i] for i in by_start.tolist()]
    assert [trace.apis[trace.calls.api[c]] if c != NO_ROW else "" for c in calls] == [
        "hipLaunchKernel",
        "hipExtModuleLaunchKernel",
        "hipMemcpyAsync",
        "",
    ]
    shown = described(trace)
    assert [shown[i] for i in by_start.tolist()] == [
        "grid 8x2x1 block 256x1x1 smem 64",
        "grid 4x2x1 block 256x1x1 smem 0",
        "not recorded",
        "not recorded",
    ]
    assert [trace.names[i] for i in trace.ranges.name.tolist()] == ["step"]
    assert trace.meta.skipped == {"marker or barrier in a queue": 1}
    copy = by_start[2]
    assert trace.activities.bytes_moved[copy] == 4096
    assert trace.devices[trace.lanes[trace.activities.lane[copy]].device].pid == "80"


def test_arrows_of_rpd_start_anywhere_in_the_call(tmp_path):
    events = [
        *process("2", "GPU2"),
        row("70", "71", "hipLaunchKernel", "100", "50"),
        row("70", "71", "hipMemcpy", "200", "100"),
    ]
    events += [
        row("2", "0", "k", "130", "5", desc="KernelExecution"),
        row("2", "0", "CopyDeviceToHost", "220", "9", desc="CopyDeviceToHost"),
    ]
    events += [arrow("s", "api_op", "1", "70", "71", "130"), arrow("f", "api_op", "1", "2", "0", "130")]
    events += [
        arrow("s", "api_op", "2", "70", "71", "220"),
        arrow("f", "api_op", "2", "2", "0", "220"),
        arrow("s", "api_op", "3", "70", "71", "999"),
    ]
    trace = read(write_events(tmp_path / "t.json", *events))
    assert trace.meta.flavour == "rpd" and trace.activities.kind.tolist() == [RowKind.KERNEL, RowKind.MEMCPY]
    assert [trace.apis[trace.calls.api[c]] for c in trace.activities.call.tolist()] == ["hipLaunchKernel", "hipMemcpy"]


# -- rocprofv3 ---------------------------------------------------------------------------------------


def rocprofv3(**records: Any) -> dict[str, Any]:
    def handle(number: int) -> dict[str, int]:
        return {"handle": number}

    def call(start: int, operation: int, corr: int) -> dict[str, Any]:
        place = {"kind": 0, "operation": operation, "thread_id": 5, "correlation_id": {"internal": corr}}
        return {"start_timestamp": start, "end_timestamp": start + 20} | place

    kernel = {
        "start_timestamp": 500, "end_timestamp": 700, "correlation_id": {"internal": 9, "external": 0},
        "dispatch_info": {
            "agent_id": handle(4711), "queue_id": handle(3), "kernel_id": 8, "group_segment_size": 64,
            "workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x": 1000, "y": 2, "z": 1},
        },
    }  # fmt: skip
    copy = {
        "start_timestamp": 100,
        "end_timestamp": 300,
        "kind": 1,
        "operation": 1,
        "bytes": 4096,
        "correlation_id": {"internal": 7},
        "dst_agent_id": handle(4711),
        "src_agent_id": handle(1),
    }
    return {
        "rocprofiler-sdk-tool": [
            {
                "metadata": {"pid": 70, "command": ["secret"]},
                "agents": [{"id": handle(1), "type": 1, "name": "cpu"}, {"id": handle(4711), "type": 2, "name": "gfx950", "product_name": "MI350X", "logical_node_type_id": 3}],
                "strings": {
                    "buffer_records": [{"kind": "HIP", "operations": ["hipMemcpy", "hipLaunchKernel"]}, {"kind": "MEMORY_COPY", "operations": ["", "MEMORY_COPY_HOST_TO_DEVICE"]}, {"kind": "MARKER", "operations": ["roctxMarkA", "roctxRangePushA"]}],
                    "marker_api": [{"key": 21, "value": "step"}],
                },
                "kernel_symbols": [{"kernel_id": 8, "kernel_name": "k.kd", "formatted_kernel_name": "k(int)", "arch_vgpr_count": 24, "accum_vgpr_count": 8}],
                "buffer_records": {
                    "kernel_dispatch": [kernel], "memory_copy": [copy], "hip_api": [call(0, 0, 7), call(400, 1, 9)],
                    "marker_api": [call(0, 1, 21) | {"kind": 2}, call(0, 0, 22) | {"kind": 2}],
                } | records,
            }
        ]
    }  # fmt: skip


def test_rocprofv3_joins_calls_and_rows_and_counts_grids_in_blocks(tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(rocprofv3(), indent=1))
    trace = read(path)
    rows = sorted(
        zip(
            names(trace),
            described(trace),
            [trace.apis[trace.calls.api[c]] for c in trace.activities.call.tolist()],
            strict=True,
        )
    )
    assert rows == [
        ("Memcpy HtoD (Host -> Device)", "not recorded", "hipMemcpy"),
        ("k(int)", "grid 4x2x1 block 256x1x1 regs 32 smem 64", "hipLaunchKernel"),
    ]
    assert (trace.devices[0].pid, trace.devices[0].number, trace.devices[0].name) == ("70", 3, "MI350X")
    assert sorted(lane.stream for lane in trace.lanes) == [-1, 3]
    assert [trace.names[i] for i in trace.ranges.name.tolist()] == ["step"]
    assert "secret" not in repr(trace.meta)


def test_rocprofv3_is_known_packed_and_ends_in_one_line_when_it_breaks_off(tmp_path):
    text = json.dumps(rocprofv3()).encode()
    packed = tmp_path / "t.json.gz"
    packed.write_bytes(gzip.compress(text))
    assert len(read(packed).activities) == 2
    for end in range(60, len(text), 97):
        cut = tmp_path / "cut.json"
        cut.write_bytes(text[:end])
        with pytest.raises(TraceFormatError) as error:
            read(cut)
        assert "\n" not in str(error.value)


def test_absurd_numbers_and_types_of_rocprofv3(tmp_path):
    path = tmp_path / "t.json"
    kernel = rocprofv3()["rocprofiler-sdk-tool"][0]["buffer_records"]["kernel_dispatch"][0]
    absurd = kernel | {
        "start_timestamp": (1 << 64) - 1,
        "end_timestamp": -5,
        "correlation_id": {"internal": (1 << 64) - 1},
    }
    path.write_text(json.dumps(rocprofv3(kernel_dispatch=[kernel, absurd])))
    trace = read(path)
    assert len(trace.activities) == 2 and sum(trace.meta.salvage.excluded.values()) == 1
    path.write_text(json.dumps(rocprofv3(kernel_dispatch=[kernel | {"start_timestamp": "x"}])))
    with pytest.raises(TraceFormatError, match="cannot be read"):
        read(path)


# -- rocpd -------------------------------------------------------------------------------------------

GUID = "_00000a1b_2c3d"


def rocpd(path: Path, *, tracked: bool) -> Path:
    """Write the layout with times and places in the rows, or the one that points to timestamps and tracks."""

    def table(name: str) -> str:
        return f'"rocpd_{name}{GUID}"'

    place = (
        '"track_id" INTEGER, "start_id" INTEGER, "end_id" INTEGER'
        if tracked
        else '"nid" INTEGER, "pid" INTEGER, "tid" INTEGER, "agent_id" INTEGER, "queue_id" INTEGER, "start" BIGINT, "end" BIGINT'
    )
    with sqlite3.connect(path) as db:
        for name, columns in {
            "string": "string TEXT", "info_process": "pid INTEGER", "info_thread": "tid INTEGER",
            "info_agent": "type TEXT, type_index INTEGER, name TEXT, product_name TEXT", "info_kernel_symbol": "kernel_name TEXT, display_name TEXT",
            "event": "category_id INTEGER, stack_id INTEGER, correlation_id INTEGER, extdata TEXT", "timestamp": "value BIGINT",
            "track": "pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER",
            "region": f"{place}, name_id INTEGER, event_id INTEGER",
            "memory_copy": f"{place}, name_id INTEGER, dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, event_id INTEGER",
            "kernel_dispatch": f"{place}, kernel_id INTEGER, group_segment_size INTEGER, event_id INTEGER, workgroup_size_x INTEGER, workgroup_size_y INTEGER, workgroup_size_z INTEGER, grid_size_x INTEGER, grid_size_y INTEGER, grid_size_z INTEGER",
        }.items():  # fmt: skip
            db.execute(
                f"CREATE TABLE {table(name)} (id INTEGER PRIMARY KEY AUTOINCREMENT, guid TEXT DEFAULT 'g', {columns})"
            )

        def add(into: str, **values: Any) -> int:
            marks = ", ".join("?" * len(values))
            return (
                db.execute(
                    f"INSERT INTO {table(into)} ({', '.join(values)}) VALUES ({marks})", list(values.values())
                ).lastrowid
                or 0
            )

        def placed(start: int, end: int, agent: int | None = None, queue: int | None = None) -> dict[str, int | None]:
            if not tracked:
                return {"pid": 1, "tid": 1, "agent_id": agent, "queue_id": queue, '"start"': start, '"end"': end}
            track = add("track", pid=700, tid=701, agent_id=agent, queue_id=queue)
            return {"track_id": track, "start_id": add("timestamp", value=start), "end_id": add("timestamp", value=end)}

        add("info_process", pid=700)
        add("info_thread", tid=701)
        add("info_agent", type="CPU", type_index=0, name="cpu", product_name="")
        gpu = add("info_agent", type="GPU", type_index=2, name="gfx942", product_name="MI300X")
        symbol = add("info_kernel_symbol", kernel_name="k.kd", display_name="k(int)")
        launch, way, hip, marker, push = (
            add("string", string=s)
            for s in (
                "hipLaunchKernel",
                "MEMORY_COPY_HOST_TO_DEVICE",
                "HIP_RUNTIME_API_EXT",
                "MARKER_CORE_RANGE_API",
                "roctxThreadRangeA",
            )
        )
        of_call = add("event", category_id=hip, stack_id=9, correlation_id=0, extdata="{}")
        of_kernel = add("event", category_id=None, stack_id=9, correlation_id=0, extdata="{}")
        of_marker = add("event", category_id=marker, stack_id=11, correlation_id=0, extdata='{"message": "step"}')
        add("region", **placed(0, 20), name_id=launch, event_id=of_call)
        add("region", **placed(0, 900), name_id=push, event_id=of_marker)
        add(
            "kernel_dispatch",
            **placed(100, 300, gpu, 4),
            kernel_id=symbol,
            group_segment_size=64,
            event_id=of_kernel,
            workgroup_size_x=256,
            workgroup_size_y=1,
            workgroup_size_z=1,
            grid_size_x=1000,
            grid_size_y=2,
            grid_size_z=1,
        )
        add(
            "memory_copy",
            **placed(400, 500, gpu, None),
            name_id=way,
            dst_agent_id=gpu,
            src_agent_id=1,
            size=4096,
            event_id=None,
        )
    db.close()
    return path


@pytest.mark.parametrize("tracked", [False, True])
def test_both_layouts_of_rocpd(tmp_path, tracked):
    trace = read(rocpd(tmp_path / "t.db", tracked=tracked))
    assert trace.meta.flavour == "rocpd" and trace.apis == ["hipLaunchKernel"]
    assert sorted(zip(names(trace), described(trace), trace.activities.start_ns.tolist(), strict=True)) == [
        ("Memcpy HtoD (Host -> Device)", "not recorded", 400), ("k(int)", "grid 4x2x1 block 256x1x1 smem 64", 100),
    ]  # fmt: skip
    kernel = trace.activities.kind.tolist().index(RowKind.KERNEL)
    assert trace.activities.call[kernel] == 0 and trace.activities.dur_ns[kernel] == 200
    assert (trace.devices[0].pid, trace.devices[0].number, trace.devices[0].name) == ("700", 2, "MI300X")
    assert sorted(lane.stream for lane in trace.lanes) == [-1, 4]
    assert [trace.names[i] for i in trace.ranges.name.tolist()] == ["step"]
    assert trace.threads[trace.calls.thread[0]].label == "700/701"
