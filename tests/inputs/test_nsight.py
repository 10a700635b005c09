"""Nsight Systems databases: exact against an independent count, and the traps of real files."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from tests.inputs.nsys_builder import PROCESS, NsysBuilder
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import ReadLimits
from traceanalyzer.report.remarks import sentence_of
from traceanalyzer.trace import database
from traceanalyzer.trace.categories import RowKind
from traceanalyzer.trace.file_faults import FileFault, FileNote
from traceanalyzer.trace.launch_names import ApiClass
from traceanalyzer.trace.reader import read
from traceanalyzer.trace.tables import NO_ROW, Trace

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ROOT.parent / "shared" / "inputs"
TRUTH = json.loads((INPUTS / "nsys_truth.json").read_text()) if (INPUTS / "nsys_truth.json").exists() else {}
needs_samples = pytest.mark.skipif(not TRUTH, reason="the shared samples are not here")


def busy_ns(trace: Trace, number: int) -> int:
    lanes = [i for i, lane in enumerate(trace.lanes) if trace.devices[lane.device].number == number]
    at = np.isin(trace.activities.lane, lanes)
    covered, reached = 0, -(1 << 62)
    for start, end in sorted(
        zip(trace.activities.start_ns[at].tolist(), trace.activities.end_ns[at].tolist(), strict=True)
    ):
        covered += max(0, end - max(start, reached))
        reached = max(reached, end)
    return covered


@needs_samples
@pytest.mark.parametrize("name", sorted(TRUTH))
def test_public_exports_are_read_to_the_nanosecond(name):
    truth, trace = TRUTH[name], read(INPUTS / "nsys" / name)
    rows = trace.activities
    kernels = rows.kind == RowKind.KERNEL
    assert int(kernels.sum()) == truth["kernels"]
    assert len(rows) == truth["device_activities"]
    assert int((rows.call != NO_ROW).sum()) == truth["linked"]
    assert int(rows.dur_ns[kernels].sum()) == round(truth["kernel_total_us"] * 1000)
    assert {n: busy_ns(trace, int(n)) for n in truth["busy_us"]} == {
        n: round(b * 1000) for n, b in truth["busy_us"].items()
    }
    launching = (ApiClass.KERNEL_LAUNCH, ApiClass.GRAPH_LAUNCH)
    assert int(np.isin(trace.calls.api_class, launching).sum()) == truth["launch_calls"]
    assert bool(len(trace.ranges) + len(trace.host_ops)) == truth["nvtx"]
    assert trace.meta.flavour == "nsight" and not trace.meta.salvage.touched


@needs_samples
def test_ids_that_two_processes_share_link_within_their_process():
    trace = read(INPUTS / "nsys" / "two_gpus_two_processes.sqlite")
    calls = {}
    for process, corr in zip(
        [trace.threads[t].process for t in trace.calls.thread.tolist()], trace.calls.corr.tolist(), strict=True
    ):
        calls.setdefault(corr, set()).add(process)
    kernels = trace.activities.kind == RowKind.KERNEL
    shared = np.array([len(calls.get(c, ())) > 1 for c in trace.activities.corr.tolist()]) & kernels
    assert int(shared.sum()) == 293
    for row in np.flatnonzero(shared & (trace.activities.call != NO_ROW)).tolist():
        call = trace.activities.call[row]
        device = trace.devices[trace.lanes[trace.activities.lane[row]].device]
        assert trace.threads[trace.calls.thread[call]].process == device.pid


def test_only_the_columns_that_are_there_are_asked_for(tmp_path):
    built = NsysBuilder().call("cudaLaunchKernel_v7000", 0, 5, 1)
    built.add(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        start=10,
        end=30,
        deviceId=2,
        streamId=7,
        correlationId=1,
        globalPid=PROCESS << 24,
        shortName=built.text("k"),
    )
    trace = read(built.write(tmp_path / "t.sqlite"))
    assert trace.names == ["k"] and trace.devices[0].number == 2
    assert trace.configs[trace.activities.config[0]].describe() == "not recorded"
    assert trace.apis == ["cudaLaunchKernel"] and trace.activities.call[0] == 0


def test_configuration_names_and_streams(tmp_path):
    built = (
        NsysBuilder()
        .call("cuLaunchKernelEx_ptsz", 0, 5, 1, eventClass=1)
        .call("cudaLaunchKernel", 6, 7, 2, eventClass=67)
    )
    built.kernel("void k<int>(int*)", 10, 30, 1, streamId=4294967295)
    trace = read(built.write(tmp_path / "t.sqlite"))
    config = trace.configs[trace.activities.config[0]]
    assert (config.grid, config.block, config.registers, config.shared_bytes) == ((128, 1, 1), (256, 1, 1), 32, 48)
    assert trace.names == ["void k<int>(int*)"] and trace.lanes[0].stream == -1
    assert trace.apis == ["cuLaunchKernelEx"] and trace.meta.skipped == {"call of another event class": 1}
    assert trace.devices[0].pid == "700"


def test_streams_of_two_contexts_are_two_lanes(tmp_path):
    built = NsysBuilder()
    for i, place in enumerate(({}, {"contextId": 2}, {"greenContextId": 3}, {"streamId": 8})):
        built.kernel("k", 100 * i, 100 * i + 50, i + 1, **place)
    trace = read(built.write(tmp_path / "t.sqlite"))
    assert [(lane.stream, lane.context) for lane in trace.lanes] == [(7, 1), (7, 2), (7, 3), (8, 0)]


def test_graph_launches_recorded_whole_are_no_kernels(tmp_path):
    built = NsysBuilder().call("cudaGraphLaunch_v10000", 0, 5, 1)
    built.add(
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
        start=10,
        end=90,
        deviceId=0,
        contextId=1,
        streamId=7,
        correlationId=1,
        globalPid=PROCESS << 24,
        graphId=4,
    )
    trace = read(built.write(tmp_path / "t.sqlite"))
    assert trace.activities.kind.tolist() == [RowKind.GRAPH] and trace.names == ["CUDA graph 4"]
    assert trace.activities.call[0] == 0
    assert "--cuda-graph-trace=node" in sentence_of(trace.meta.remarks[0])


def test_page_migrations_are_no_copies_of_the_program(tmp_path):
    built = NsysBuilder().call("cudaMemcpyAsync", 0, 5, 1)
    built.memory("MEMCPY", 10, 30, 1, copyKind=1, srcKind=1, dstKind=2)
    built.memory("MEMCPY", 40, 70, None, copyKind=11, srcKind=4, dstKind=4)
    built.memory("MEMSET", 80, 90, 2, memKind=2)
    trace = read(built.write(tmp_path / "t.sqlite"))
    assert [trace.names[i] for i in trace.activities.name.tolist()] == [
        "Memcpy HtoD (Pinned -> Device)",
        "Memset (Device)",
    ]
    assert trace.activities.bytes_moved.tolist() == [4096, 4096]
    assert [r.params for r in trace.meta.remarks] == [{"rows": 1, "total_ns": 30}]


def test_ranges_come_by_text_or_by_id_and_operators_are_told_apart(tmp_path):
    built = NsysBuilder().nvtx("step", 0, 100).nvtx("aten::mul, seq = 4, op_id = 9, sizes = [[2]]", 10, 20, by_id=True)
    built.nvtx("mpi", 5, 6, kind=60, by_id=True).nvtx("a mark", 7, None, kind=34).nvtx("never ends", 8, None)
    trace = read(built.write(tmp_path / "t.sqlite"))
    assert sorted(trace.names[i] for i in trace.ranges.name.tolist()) == ["mpi", "step"]
    assert [trace.names[i] for i in trace.host_ops.name.tolist()] == ["aten::mul"]
    assert trace.meta.skipped == {"NVTX event that is no range": 1, "NVTX range that does not end in the recording": 1}


def test_the_device_is_named_through_the_table_that_maps_it(tmp_path):
    built = NsysBuilder().kernel("k", 0, 5, 1)
    built.add("TARGET_INFO_GPU", id=0, name="the other", cuDevice=0).add(
        "TARGET_INFO_GPU", id=3, name="the one", cuDevice=0
    )
    built.add("TARGET_INFO_CUDA_DEVICE", gpuId=3, cudaId=0, pid=700)
    assert read(built.write(tmp_path / "t.sqlite")).devices[0].name == "the one"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda b: b.call("cudaLaunchKernel", 0, 5, 1), "1 CUDA calls and no device row"),
        (lambda b: b.nvtx("step", 0, 5), "1 NVTX ranges and no CUDA rows"),
        (lambda b: b.add("TARGET_INFO_GPU", id=0, name="x"), "no CUDA rows at all"),
    ],
)
def test_what_is_missing_has_a_sentence_of_its_own(tmp_path, make, said):
    built = NsysBuilder()
    make(built)
    built.add("DIAGNOSTIC_EVENT", severity=2, text="Installed CUDA driver is not supported. See /home/me/log")
    built.add("DIAGNOSTIC_EVENT", severity=1, text="CUDA injection initialized")
    remarks = [sentence_of(r) for r in read(built.write(tmp_path / "t.sqlite")).meta.remarks]
    assert said in remarks[0]
    assert remarks[1:] == ["the profiler reported: Installed CUDA driver is not supported. See log"]


# -- hostile and damaged databases -------------------------------------------------------------------


def changed(tmp_path: Path, *statements: str) -> Path:
    path = (
        NsysBuilder()
        .call("cudaLaunchKernel", 0, 5, 1)
        .kernel("k", 10, 30, 1)
        .nvtx("step", 0, 100)
        .write(tmp_path / "t.sqlite")
    )
    with sqlite3.connect(path) as db:
        for statement in statements:
            db.execute(statement)
    db.close()
    return path


def test_a_view_in_the_place_of_a_table_is_not_read(tmp_path):
    path = changed(
        tmp_path,
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL RENAME TO other",
        "CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL AS SELECT * FROM other",
    )
    trace = read(path)
    assert not len(trace.activities)
    assert trace.meta.salvage.notes == [FileNote(FileFault.VIEWS, number=1, names=("CUPTI_ACTIVITY_KIND_KERNEL",))]


def test_a_database_that_lacks_its_last_pages_is_incomplete(tmp_path):
    built = NsysBuilder()
    for i in range(400):
        built.call("cudaLaunchKernel", 1000 * i, 1000 * i + 9, i + 1).kernel(
            "k(int)", 1000 * i + 20, 1000 * i + 400, i + 1
        )
    path = built.write(tmp_path / "t.sqlite")
    whole = path.read_bytes()
    assert not read(path).meta.salvage.touched
    path.write_bytes(whole[:-1])
    cut = read(path)
    assert len(cut.activities) == 400
    assert cut.meta.salvage.incomplete and cut.meta.salvage.first_offset == len(whole) - 1


def test_generated_columns_and_triggers_do_nothing(tmp_path):
    path = changed(
        tmp_path,
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN gridX",
        "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL ADD COLUMN gridX INTEGER GENERATED ALWAYS AS (length(zeroblob(1000000000))) VIRTUAL",
        "CREATE TRIGGER t AFTER INSERT ON StringIds BEGIN DELETE FROM StringIds; END",
    )
    trace = read(path)
    assert trace.configs[trace.activities.config[0]].grid is None


def test_texts_and_nothing_in_the_place_of_numbers_shift_no_other_row(tmp_path):
    path = changed(
        tmp_path,
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, correlationId, demangledName) VALUES ('1,2', '', NULL, 'x')",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end, correlationId, demangledName) VALUES (50, 60, 9, 99)",
        "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL (start, end) VALUES (9223372036854775807, -9223372036854775807)",
    )
    trace = read(path)
    rows = [
        (trace.names[n], s, e)
        for n, s, e in zip(
            trace.activities.name.tolist(),
            trace.activities.start_ns.tolist(),
            trace.activities.end_ns.tolist(),
            strict=True,
        )
    ]
    assert sorted(rows) == [("k", 10, 30), ("string 99", 50, 60)]
    assert sum(trace.meta.salvage.excluded.values()) == 2


def test_a_text_that_holds_the_separator_is_read_row_by_row(tmp_path):
    path = changed(
        tmp_path,
        "INSERT INTO NVTX_EVENTS (start, end, eventType, globalTid, text) VALUES (1, 2, 59, 0, 'a' || char(30) || 'b')",
    )
    trace = read(path)
    assert sorted(trace.names[i] for i in trace.ranges.name.tolist()) == ["a\x1eb", "step"]


def test_blocks_of_rows_join_without_a_seam(tmp_path, monkeypatch):
    built = NsysBuilder()
    for i in range(23):
        built.call("cudaLaunchKernel", 100 * i, 100 * i + 5, i + 1).kernel("k", 100 * i + 10, 100 * i + 30, i + 1)
    path = built.write(tmp_path / "t.sqlite")
    whole = read(path)
    monkeypatch.setattr(database, "_ROWS", 5)
    parts = read(path)
    assert np.array_equal(whole.activities.start_ns, parts.activities.start_ns)
    assert np.array_equal(whole.activities.call, parts.activities.call) and len(parts.activities) == 23


def test_names_of_any_length_stay_bounded(tmp_path):
    path = changed(tmp_path, "UPDATE StringIds SET value = replace(hex(zeroblob(500000)), '0', 'x')")
    assert max(map(len, read(path).names)) == 4096


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def zero_header(path: Path) -> None:
    path.write_bytes(bytes(100) + path.read_bytes()[100:])


def scramble(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    raw[4096:] = bytes(b ^ 0xA5 for b in raw[4096:])
    path.write_bytes(bytes(raw))


@pytest.mark.parametrize("damage", [cut, zero_header, scramble])
def test_a_damaged_database_is_one_clear_line(tmp_path, damage):
    path = changed(
        tmp_path,
        "INSERT INTO StringIds SELECT 1000 + value, hex(randomblob(400)) FROM (WITH RECURSIVE c(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c LIMIT 200) SELECT value FROM c)",
    )
    damage(path)
    with pytest.raises(TraceFormatError) as error:
        read(path)
    assert "\n" not in str(error.value) and "t.sqlite" in str(error.value)


def test_a_table_without_times_a_foreign_database_and_too_many_rows(tmp_path):
    path = changed(tmp_path, "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN start")
    with pytest.raises(TraceFormatError, match="no columns start and end"):
        read(path)
    foreign = tmp_path / "foreign.sqlite"
    with sqlite3.connect(foreign) as db:
        db.execute("CREATE TABLE people (name TEXT)")
    db.close()
    with pytest.raises(TraceFormatError, match="another program"):
        read(foreign)
    with pytest.raises(TraceFormatError, match="rows to keep"):
        read(
            NsysBuilder().kernel("k", 1, 2, 1).kernel("k", 3, 4, 2).write(tmp_path / "m.sqlite"), ReadLimits(max_rows=1)
        )


def test_a_link_to_the_file_reads_the_file_and_no_journal_is_replayed(tmp_path):
    path = changed(tmp_path, "SELECT 1")
    Path(f"{path}-journal").write_bytes(b"x" * 512)
    Path(f"{path}-wal").write_bytes(b"x" * 512)
    link = tmp_path / "link.sqlite"
    link.symlink_to(path)
    assert len(read(link).activities) == 1
    assert {p.name for p in tmp_path.iterdir()} == {"t.sqlite", "t.sqlite-journal", "t.sqlite-wal", "link.sqlite"}


def test_rows_without_a_process_link_by_their_id(tmp_path):
    built = NsysBuilder().call("cudaLaunchKernel", 0, 5, 1)
    built.add(
        "CUPTI_ACTIVITY_KIND_KERNEL",
        start=10,
        end=30,
        deviceId=0,
        streamId=7,
        correlationId=1,
        shortName=built.text("k"),
    )
    built.add("TARGET_INFO_CUDA_GPU", id=0, name="an old name")
    trace = read(built.write(tmp_path / "t.sqlite"))
    assert trace.activities.call[0] == 0 and trace.devices[0].name == "an old name"


def test_a_database_left_in_wal_mode_is_read(tmp_path):
    path = changed(tmp_path, "PRAGMA journal_mode = WAL")
    assert len(read(path).activities) == 1
