"""Which work of one side is which of the other."""

from __future__ import annotations

import numpy as np

from traceanalyzer.analysis.compare.matching import (
    match_kernels,
    match_operations,
    without_arguments,
    without_numbers,
    without_suffix,
)
from traceanalyzer.analysis.compare.sides import ComparedWork
from traceanalyzer.analysis.compare.statistics import Times


def work(
    name: str, config: str = "grid 8x1x1", count: int = 10, at: float = 0.0, total: float = 100.0, **more
) -> ComparedWork:
    values = np.full(count, 10_000, dtype=np.int64)
    return ComparedWork(name, name, Times(count, 10_000.0, values), config=config, first_us=at, total_us=total, **more)


def pairs(base, head):
    found = match_kernels(base, head)
    return {
        (base[p.base].name if p.base is not None else None, head[p.head].name if p.head is not None else None)
        for p in found
    }


def test_names_lose_what_compilers_append():
    assert (
        without_suffix("triton_poi_fused_add_0") == without_suffix("triton_poi_fused_add_13") == "triton_poi_fused_add"
    )
    assert without_suffix("kernel_0d1d2de3de") == "kernel"
    assert without_suffix("k2") == "k2" and without_suffix("_0") == "_0"
    assert without_arguments("void foo<float, bar<2> >(float*, int)") == "foo"
    assert without_arguments("f<g<h>>::run<1>(int)") == "f::run"
    assert without_numbers("gemm_128x64_nn") == without_numbers("gemm_256x32_nn")


def test_the_same_name_and_configuration_come_first():
    base = [work("k", "grid 8"), work("k", "grid 16")]
    head = [work("k", "grid 16"), work("k", "grid 8")]
    assert [(p.base, p.head, p.how) for p in match_kernels(base, head)] == [(0, 1, "name"), (1, 0, "name")]


def test_one_name_in_another_configuration_is_paired_and_says_so():
    [pair] = match_kernels([work("k", "grid 8")], [work("k", "grid 16")])
    assert "another configuration" in pair.how


def test_a_renumbered_kernel_is_found_only_where_it_is_unambiguous():
    assert pairs([work("triton_poi_fused_add_0")], [work("triton_poi_fused_add_1")]) == {
        ("triton_poi_fused_add_0", "triton_poi_fused_add_1")
    }
    # two candidates of one grid: nobody can say which
    found = pairs([work("t_0", at=1)], [work("t_1", at=1), work("t_2", at=2)])
    assert found == {("t_0", None), (None, "t_1"), (None, "t_2")}
    # the exact name takes its own, which leaves the other alone
    assert pairs([work("t_0"), work("t_3")], [work("t_0"), work("t_4")]) == {("t_0", "t_0"), ("t_3", "t_4")}
    # the grid tells them apart
    base, head = [work("t_0", "a"), work("t_1", "b")], [work("t_7", "b"), work("t_8", "a")]
    assert pairs(base, head) == {("t_0", "t_8"), ("t_1", "t_7")}


def test_template_arguments_are_looked_past():
    assert pairs([work("void f<float, 4>(int)")], [work("void f<float, 8>(int)")]) == {
        ("void f<float, 4>(int)", "void f<float, 8>(int)")
    }


def test_a_renamed_kernel_is_found_by_grid_between_its_neighbours():
    base = [work("a", at=1), work("old", "grid 99", at=2), work("b", at=3)]
    head = [work("a", at=11), work("new", "grid 99", at=12), work("b", at=13)]
    assert ("old", "new") in pairs(base, head)
    elsewhere = [work("new", "grid 99", at=10), work("a", at=11), work("b", at=13)]
    assert ("old", None) in pairs(base, elsewhere)


def test_sides_of_different_work_are_not_paired_by_grid_or_place():
    base = [work("a", at=1, total=1), work("old", "grid 99", at=2, total=1000)]
    head = [work("a", at=1, total=1), work("new", "grid 99", at=2, total=1000)]
    assert ("old", "new") not in pairs(base, head)


def test_nothing_is_lost_and_nothing_is_used_twice():
    rng = np.random.default_rng(1)
    for _ in range(200):
        sides = [
            [work(f"k{rng.integers(4)}_{rng.integers(3)}", f"g{rng.integers(2)}", int(rng.integers(1, 3)), float(i)) for i in range(rng.integers(0, 7))]
            for _ in range(2)
        ]  # fmt: skip
        found = match_kernels(*sides)
        assert sorted(p.base for p in found if p.base is not None) == list(range(len(sides[0])))
        assert sorted(p.head for p in found if p.head is not None) == list(range(len(sides[1])))


def test_two_operations_are_never_paired_because_nothing_else_is_left():
    apart = match_operations([work("mmcv", kernels_per_call=1)], [work("triton", kernels_per_call=1)])
    assert {(p.base, p.head) for p in apart} == {(0, None), (None, 0)}
    units = match_operations([work("mmcv"), work("other")], [work("triton")], [("mmcv", "triton")])
    assert [(p.base, p.head) for p in units] == [(0, 0), (1, None)]


def test_names_of_a_hundred_thousand_characters_cost_little():
    import time

    begun = time.perf_counter()
    pairs(
        [work("<" * 100_000 + "_1"), work("_" + "1" * 100_000 + "!")],
        [work("<" * 100_000 + "_2"), work("_1" * 50_000 + "x")],
    )
    assert time.perf_counter() - begun < 2
