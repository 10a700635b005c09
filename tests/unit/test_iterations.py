"""What repeats, what a range name means, and which rank rows are of: all of it told from small sequences."""

from __future__ import annotations

import time

import numpy as np
import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.analysis.patterns import find_patterns, occurrences
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.analysis.ranges import without_counters
from traceanalyzer.errors import OptionError
from traceanalyzer.options import AnalysisOptions, Selection

RNG = np.random.default_rng(11)
LAYER = RNG.integers(0, 20, 49)
FORWARD = np.concatenate([[100, 101], np.tile(LAYER, 24), [102, 103, 104]])


def found(tokens):
    return [(p.period, len(p.starts)) for p in find_patterns(np.asarray(tokens, dtype=np.int64))]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([1, 2, 3] * 10, [(3, 10)]),
        ([1] * 30 + [2] * 30, [(1, 30), (1, 30)]),
        ([1, 2] * 30 + [3, 4, 5] * 30, [(3, 30), (2, 30)]),
        (np.tile(RNG.integers(0, 300, 1033), 5), [(1033, 5)]),
        (np.tile(RNG.integers(0, 6, 1464), 6), [(1464, 6)]),
        (FORWARD, [(49, 24)]),
        (np.tile(FORWARD, 4), [(len(FORWARD), 4)]),
        (RNG.integers(0, 30, 3000), []),
        (np.arange(500), []),
        ([7, 8], []),
    ],
    ids=["short", "blocks", "two lengths", "model", "few names", "layers", "layers in steps", "chance", "once", "tiny"],
)
def test_patterns_are_found_at_every_size(tokens, expected):
    assert found(tokens) == expected


def test_irregular_heads_gaps_and_tails_are_left_out():
    head, tail = RNG.integers(0, 30, 700), RNG.integers(0, 30, 300)
    tokens = np.concatenate([head, np.tile(FORWARD, 3), [5, 6], np.tile(FORWARD, 2), tail])
    (pattern,) = find_patterns(tokens)
    assert (pattern.period, len(pattern.starts)) == (len(FORWARD), 5)
    for start in pattern.starts.tolist():
        assert (tokens[start : start + pattern.period] == pattern.tokens).all()


def test_renaming_launches_changes_nothing():
    tokens = np.concatenate([RNG.integers(0, 30, 100), np.tile(FORWARD, 3)])
    names = RNG.permutation(int(tokens.max()) + 1)
    assert [p.starts.tolist() for p in find_patterns(tokens)] == [
        p.starts.tolist() for p in find_patterns(names[tokens])
    ]


@pytest.mark.parametrize(
    "base", [RNG.integers(0, 30, 1000), np.tile(FORWARD, 4), np.arange(1000) % 7, np.zeros(1000, int)]
)
def test_finding_takes_no_more_than_the_length_twice_over(base):
    def cost(n):
        tokens = np.resize(base, n).astype(np.int64)
        return min(_time(tokens) for _ in range(3))

    assert cost(160_000) < 10 * cost(40_000) + 0.2


def _time(tokens):
    begun = time.process_time()
    find_patterns(tokens)
    return time.process_time() - begun


def test_occurrences_do_not_overlap_and_equal_the_pattern():
    tokens = np.array([1, 1, 1, 1, 1, 2, 1, 1], dtype=np.int64)
    assert occurrences(tokens, np.array([1, 1], dtype=np.int64)).tolist() == [0, 2, 6]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([f"step#{i}" for i in range(4)], {"step"}),
        (["step[DECODE bs=64]", "step[DECODE bs=1]"] * 3, {"step[DECODE bs=64]", "step[DECODE bs=1]"}),
        ([f"layer_{i}" for _ in range(3) for i in range(3)], {"layer_0", "layer_1", "layer_2"}),
        (["matmul 256", "matmul 512", "matmul 1024"], {"matmul 256", "matmul 512", "matmul 1024"}),
        (["pass (B)", "pass (F)"] * 2, {"pass (B)", "pass (F)"}),
        ([f"iter {i} train" for i in (0, 10, 20)], {"iter train"}),
        ([f"epoch {e} iter {i}" for e in range(3) for i in range(5)], {"epoch iter"}),
        ([f"run_{i}_bs{b}" for i in range(3) for b in (1, 64)], {"run_bs1", "run_bs64"}),
        (
            [f"step[EXTEND bs=1 toks={t}]" for t in (512, 17, 900)],
            {f"step[EXTEND bs=1 toks={t}]" for t in (512, 17, 900)},
        ),
        ([f"call({i})" for i in range(3)], {"call"}),
        (["0", "1", "2"], {"0", "1", "2"}),
        (["9" * 5000, "8" * 5000], {"9" * 5000, "8" * 5000}),
    ],
)
def test_only_step_counters_are_cut_out_of_range_names(names, expected):
    assert set(without_counters([(names.index(n), n, 0) for n in names]).values()) == expected


def steps(category="user_annotation", n=4):
    built = trace()
    for i in range(n):
        built.host(category, f"ProfilerStep#{i + 7}", 100 * i, 90).call(100 * i + 5, 100 * i + 12, 9)
    return built


@pytest.mark.parametrize("category", ["user_annotation", "Operator", "cpu_op"])
def test_profiler_steps_of_every_generation_are_steps(tmp_path, category):
    path = steps(category).write(tmp_path / "t.json")
    op = analyse(ta.read(path)).operations[0]
    assert (op.iterations.method, len(op.iterations.rows)) == ("ProfilerStep", 4)
    for name, launches in (("ProfilerStep", 4), ("ProfilerStep#9", 1)):
        assert ta.analyze(path, range=name).to_dict()["trace"]["launches"] == launches


def test_a_range_may_be_asked_for_without_its_counter(tmp_path):
    built = trace()
    for i in range(3):
        built.range(f"train#{i}", 100 * i, 90).call(100 * i + 5, 100 * i + 12, 9)
    path = built.write(tmp_path / "t.json")
    assert ta.analyze(path, range="train").to_dict()["trace"]["launches"] == 3
    with pytest.raises(OptionError, match="no range called 'trains'"):
        ta.analyze(path, range="trains")


def merged(pids, n=5):
    """Two ranks in one file: kernels of 10 and 30 us every 50 and 70 us."""
    built = trace()
    for rank, (host, device) in enumerate(pids):
        for i in range(n):
            at = 1000 + (50 + 20 * rank) * i
            built.launch(at, corr=1000 * rank + i + 1, pid=host, tid=host)
            built.kernel(at + 5, 10 + 20 * rank, corr=1000 * rank + i + 1, device=rank)
            built.events[-1]["pid"] = device
    return built


@pytest.mark.parametrize(
    "pids",
    [[("[TP00] 17", "[TP00] 0"), ("[TP01] 17", "[TP01] 0")], [(5001, 0), (100005001, 100000001)]],
    ids=["text before the id", "offset on the id"],
)
def test_ranks_of_a_merged_file_have_operations_of_their_own(tmp_path, pids):
    path = merged(pids).write(tmp_path / "t.json")
    analysis = analyse(ta.read(path))
    assert analysis.origin.ranks == [0, 1]
    assert {o.iterations.name: (np.median(o.self_ns), np.median(o.period_ns)) for o in analysis.operations} == {
        "k (rank 0)": (10_000, 50_000),
        "k (rank 1)": (30_000, 70_000),
    }
    (one,) = analyse(ta.read(path), AnalysisOptions(Selection(rank=1))).operations
    assert (one.iterations.name, np.median(one.self_ns)) == ("k", 30_000)
    with pytest.raises(OptionError, match="no rank 2"):
        ta.analyze(path, rank=2)


def test_a_file_that_does_not_say_its_ranks_refuses_one(tmp_path):
    with pytest.raises(OptionError, match="the trace has no rank 0"):
        ta.analyze(trace().loop(5, 50, 5, 10).write(tmp_path / "t.json"), rank=0)


def test_one_process_on_two_devices_has_an_operation_for_each(tmp_path):
    built = trace()
    for i in range(5):
        built.range(f"step#{i}", 100 * i, 90)
        for device, dur in ((0, 9), (1, 30)):
            built.launch(100 * i + 5 + 3 * device).kernel(100 * i + 12, dur, device=device)
    ops = analyse(ta.read(built.write(tmp_path / "t.json"))).operations
    assert {o.iterations.name: np.median(o.self_ns) for o in ops} == {
        "step (device 0)": 9_000,
        "step (device 1)": 30_000,
    }


def test_kernels_that_look_alike_are_told_apart(tmp_path):
    names = ["k", "k\u200b", "k ", "k #2", "/home/a/k", "/home/b/k", "void k(int)", "void k(float)"]
    built = trace()
    for i, name in enumerate(names):
        built.call(100 * i, 100 * i + 5, 20 + i, name=name)
    kernels = ta.analyze(built.write(tmp_path / "t.json")).to_dict()["kernels"]
    shown = ["".join(c for c in k["short_name"] if c.isprintable()).strip() for k in kernels]
    assert len(set(shown)) == len(names) == len({k["name"] for k in kernels})
