"""The traces of one job: exact shares per rank, who is late, and nothing lost in silence."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import trace
from traceanalyzer.analysis.breakdown import breakdowns, is_communication
from traceanalyzer.analysis.ranks import RankTimes, stragglers
from traceanalyzer.api import ranks
from traceanalyzer.cli import cli
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.trace.reader import read

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def job(compute=100, wait=100, rank=0, world=2):
    """Compute on stream 7, then an all-reduce on stream 20 whose last 20 us overlap with the next compute."""
    builder = trace()
    builder.fields["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
    at = 1000
    for _ in range(10):
        builder.call(at - 50, at, compute, name="gemm")
        builder.call(at - 20, at + compute, wait, name=NCCL, stream=20)
        at += compute + wait - 20
    return builder


def run(folder, *options):
    return CliRunner().invoke(cli, ["ranks", str(folder), *options])


def test_compute_communication_and_their_overlap_are_exact(tmp_path):
    job().write(tmp_path / "t.json")
    (found,) = breakdowns(read(tmp_path / "t.json"))
    assert (found.compute_ns, found.communication_ns) == (1_000_000, 1_000_000)
    assert found.exposed_communication_ns == 1_000_000 - 9 * 20_000
    assert found.overlap_share == pytest.approx(0.18)
    assert found.busy_ns == found.compute_ns + found.exposed_communication_ns and found.idle_ns == 0


rows = st.lists(
    st.tuples(st.integers(0, 500), st.integers(0, 60), st.sampled_from(["k", NCCL, "copy"])),
    min_size=1, max_size=25,
)  # fmt: skip


@given(rows)
def test_the_parts_of_busy_add_up_whatever_overlaps(tmp_path_factory, made):
    builder = trace()
    covered = {"k": set(), NCCL: set(), "copy": set()}
    for stream, (start, length, name) in enumerate(
        made, 7
    ):  # one each: on one stream such overlaps are impossible rows
        kind = "memcpy" if name == "copy" else "kernel"
        builder.launch(900).kernel(1000 + start, length, name=name, stream=stream, kind=kind)
        covered[name] |= set(range(start, start + length))
    path = builder.write(tmp_path_factory.mktemp("t") / "t.json")
    (found,) = breakdowns(read(path))
    # the oracle paints every microsecond
    every = covered["k"] | covered[NCCL] | covered["copy"]
    assert found.busy_ns == 1000 * len(every)
    assert found.compute_ns == 1000 * len(covered["k"]) and found.communication_ns == 1000 * len(covered[NCCL])
    assert found.exposed_communication_ns == 1000 * len(covered[NCCL] - covered["k"])
    assert found.exposed_copy_ns == 1000 * len(covered["copy"] - covered["k"] - covered[NCCL])
    assert found.busy_ns == found.compute_ns + found.exposed_communication_ns + found.exposed_copy_ns


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (NCCL, True), ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", True), ("void ncclKernel_Broadcast()", True),
        ("rcclGenericKernel", True), ("my_ncclDevKernel_wrapper", True), ("triton_poi_fused_add_0", False),
        ("Memcpy DtoD", False), ("accnccly_gemm", False), ("multimem_all_reduce_kernel", False),
    ],
)  # fmt: skip
def test_kernels_of_collective_libraries_are_told_by_name(name, expected):
    assert is_communication(name) is expected


def test_the_rank_the_others_wait_for_is_named_with_its_part(tmp_path):
    for rank in range(4):
        late = rank == 2
        job(compute=160 if late else 100, wait=40 if late else 100, rank=rank, world=4).write(tmp_path / f"{rank}.json")
    found = ranks(tmp_path, hta=False)
    assert [bool(r.straggler) for r in found.ranks] == [False, False, True, False]
    assert "mostly compute" in found.ranks[2].straggler and "the others wait for it" in found.ranks[2].straggler
    assert found.headline.startswith("rank 2 is late")


def test_a_rank_that_is_late_because_of_its_host_is_late_by_idle_time():
    even = RankTimes(1000, 500, 100, 400)
    assert "mostly idle time" in stragglers([even, even, RankTimes(1000, 500, 400, 100)])[2]


@pytest.mark.parametrize("over", [1.0, 1.04, 1.049])
def test_noise_between_ranks_makes_no_straggler(over):
    even = RankTimes(100_000, 60_000, 0, 40_000)
    assert stragglers([even, even, RankTimes(100_000, int(60_000 * over), 0, 100_000 - int(60_000 * over))]) == [""] * 3


def test_one_rank_alone_is_never_late_and_that_is_said(tmp_path):
    job(world=1).write(tmp_path / "t.json")
    found = ranks(tmp_path, hta=False)
    assert not found.ranks[0].straggler and "one rank alone" in found.notes[0]


def test_missing_and_broken_ranks_are_listed(tmp_path):
    job(rank=0, world=4).write(tmp_path / "a.json")
    job(rank=2, world=4).write(tmp_path / "b.json")
    (tmp_path / "rank_3.json").write_text('{"no": "trace"}')
    (tmp_path / "run.sidecar.json").write_text("{}")
    (tmp_path / "notes.txt").write_text("x")
    found = ranks(tmp_path, hta=False)
    assert [r.rank for r in found.ranks] == [0, 2] and found.missing == [1] and found.world_size == 4
    assert [(x.file, x.rank) for x in found.lost] == [("rank_3.json", 3)] and "not_a_trace" in found.lost[0].reason
    for output_format in ("text", "markdown"):
        text = " ".join(run(tmp_path, "--no-hta", "--format", output_format).output.replace("\\", "").split())
        assert "1 rank of 4 without a trace: 1" in text and "lost: rank 3, rank_3.json: not_a_trace" in text


def test_the_rank_of_distributed_info_wins_over_the_name(tmp_path):
    job(rank=5, world=8).write(tmp_path / "rank-1.json")
    builder = job()
    del builder.fields["distributedInfo"]
    builder.write(tmp_path / "Worker7.pt.trace.json")
    builder.write(tmp_path / "nothing.json")
    found = {r.file: (r.rank, r.rank_from) for r in ranks(tmp_path, hta=False).ranks}
    assert found == {
        "rank-1.json": (5, "distributedInfo"), "Worker7.pt.trace.json": (7, "file name"), "nothing.json": (None, ""),
    }  # fmt: skip


@pytest.mark.parametrize("value", ['"x"', "-1", "1e99", "true", "[1]", "null", '{"a": 1}'])
def test_a_rank_that_cannot_be_one_is_none(tmp_path, value):
    text = job().write(tmp_path / "t.json").read_text()
    (tmp_path / "t.json").write_text(
        text.replace('"rank": 0', f'"rank": {value}').replace('"world_size": 2', f'"world_size": {value}')
    )
    assert ranks(tmp_path, hta=False).ranks[0].rank is None


def test_two_files_of_one_rank_are_both_kept_and_spoken_of(tmp_path):
    job(rank=0, world=1).write(tmp_path / "a.json")
    job(rank=0, world=1, compute=110).write(tmp_path / "b.json")
    found = ranks(tmp_path, hta=False)
    assert len(found.ranks) == 2 and "rank 0 is in 2 files with different numbers" in found.notes


def test_of_copies_of_one_rank_one_counts_and_it_is_said(tmp_path):
    for name, rank in (("a", 0), ("b", 1), ("b (1)", 1)):
        job(rank=rank).write(tmp_path / f"{name}.json")
    found = ranks(tmp_path, hta=False)
    assert [r.file for r in found.ranks] == ["a.json", "b (1).json"] and not found.missing
    assert found.notes == ["b.json is a copy of b (1).json: left out"]
    assert found.communication.reason == "" and found.communication.collectives == 10  # a copy is no second rank 1


def test_the_first_line_says_what_was_counted(tmp_path):
    for rank in range(2):
        job(rank=rank, world=4).write(tmp_path / f"{rank}.json")
    assert "2 ranks of 4 in 2 traces" in run(tmp_path, "--no-hta").output


def test_no_trace_outlives_its_turn_so_that_memory_is_that_of_one(tmp_path, monkeypatch):
    import gc
    import tracemalloc
    import weakref

    from traceanalyzer.fleet import one_rank as module

    for rank in range(12):
        job(rank=rank, world=12).write(tmp_path / f"{rank:02}.json")
    alive, peaks, known = [], [], module.read

    def reads(*args):
        assert not [r for r in alive if r() is not None], "a trace of before is still there"
        if alive:
            peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.reset_peak()
        trace = known(*args)
        alive.append(weakref.ref(trace))
        return trace

    monkeypatch.setattr(module, "read", reads)
    gc.disable()  # as the command does: what only a collection frees stays
    tracemalloc.start()
    try:
        ranks(tmp_path, hta=False)
    finally:
        tracemalloc.stop()
        gc.enable()
    assert len(alive) == 12
    # from the second on, so that what is loaded once does not count; each rank may keep its rows
    kept = 20_000
    assert peaks[-1] - peaks[1] < (len(peaks) - 2) * kept


def test_ranks_in_worker_processes_are_the_same_and_a_killed_one_is_lost(tmp_path):
    for rank in range(3):
        job(rank=rank, world=4, compute=100 + rank).write(tmp_path / f"{rank}.json")
    (tmp_path / "rank3.json").write_text("{")
    alone, several = ranks(tmp_path, hta=False), ranks(tmp_path, hta=False, jobs=2)
    assert alone == several and [x.rank for x in several.lost] == [3]


@pytest.mark.parametrize("what", ["missing", "file", "empty", "broken"])
def test_a_folder_without_ranks_is_one_line(tmp_path, what):
    folder = tmp_path / "f"
    if what == "file":
        folder.write_text("x")
    elif what != "missing":
        folder.mkdir()
        if what == "broken":
            (folder / "a.json").write_text("{")
    result = run(folder)
    assert result.exit_code == 2 and result.output.count("\n") == 1 and "; " in result.output
    with pytest.raises(TraceFormatError):
        ranks(folder)


def test_hostile_file_names_and_limits(tmp_path):
    job(rank=0).write(tmp_path / "a\x1b[31m|<b>\n.json")
    assert "\x1b" not in run(tmp_path, "--no-hta").output
    markdown = run(tmp_path, "--no-hta", "--format", "markdown").output
    assert "\x1b" not in markdown and "\n.json" not in markdown and "`a\\x1b[31m\\|<b>\\x0a.json`" in markdown
    assert json.loads(run(tmp_path, "--no-hta", "--format", "json").output)["ranks"][0]["file"].startswith("a\x1b")
    assert "too_large" in run(tmp_path, "--max-bytes", "100").output


def test_json_has_every_row_and_no_nan(tmp_path):
    for rank in range(3):
        job(rank=rank, world=3).write(tmp_path / f"{rank}.json")
    found = json.loads(run(tmp_path, "--no-hta", "--format", "json", "--top", "1").output)
    assert found["schema"] == "traceanalyzer.ranks/1" and len(found["ranks"]) == 3
    assert "2 more rows" in run(tmp_path, "--no-hta", "--top", "1").output


def test_htas_numbers_stand_beside_where_it_is_installed(tmp_path):
    pytest.importorskip("hta")
    for rank in range(2):
        job(rank=rank).write(tmp_path / f"{rank}.json")
    found = ranks(tmp_path)
    for row in found.ranks:
        assert row.hta is not None and not row.hta.error
        # whole microseconds in the file: no rounding of theirs in between
        assert row.hta.span_us == row.span_us and row.hta.compute_us == row.compute_us
        assert row.hta.overlap_percent == pytest.approx(100 * row.overlap_share)
    assert "Beside HolisticTraceAnalysis" in run(tmp_path).output


def test_without_hta_our_part_stands_and_the_way_to_get_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setattr("traceanalyzer.peers.hta.installed_version", lambda: "")
    job().write(tmp_path / "a.json")
    output = " ".join(run(tmp_path).output.split())
    assert "What each rank's device did" in output and "pip install '.[hta]'" in output


def test_traces_that_nothing_ties_to_ranks_make_nobody_late(tmp_path):
    for number in range(4):
        built = job(compute=160 if number == 2 else 100, wait=40 if number == 2 else 100, world=4)
        built.fields.pop("distributedInfo")
        built.write(tmp_path / f"{'abcd'[number]}.json")
    found = ranks(tmp_path, hta=False)
    assert not any(r.straggler for r in found.ranks) and any("who is late was not judged" in n for n in found.notes)
