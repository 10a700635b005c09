"""Questions the numbers of a bench raise, the cold column, and clocks that were held down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.bench.fake_runner import Runner, Speed
from traceanalyzer.capture.bench import BenchAsked, bench
from traceanalyzer.render.base import render
from traceanalyzer.render.formats import BENCH
from traceanalyzer.report.bench.questions import questions
from traceanalyzer.report.bench.rows import COLD
from traceanalyzer.trace.sidecar import ClockSample, DeviceFacts

GPU = DeviceFacts("cuda", "a GPU", "9.0", l2_bytes=50_000_000, peak_gbytes_per_s=3352.3)


def table(speeds=None, **asked):
    chosen = speeds or {"triton": Speed(5, 100), "mmcv": Speed(5, 200)}
    return bench(
        BenchAsked("msda", iterations=12, against=("mmcv",), directions=("forward",), **asked), run=Runner(chosen)
    )


@pytest.fixture(scope="module")
def rows():
    return table().rows


def timed(row, dtype, us, spread=0.0, moved=8_000_000, share=None):
    ci = (us * (1 - spread), us * (1 + spread))
    return replace(
        row, dtype=dtype, bytes_moved=moved, device=replace(row.device, p50_us=us, ci95_us=ci), share_of_peak_bandwidth=share
    )  # fmt: skip


def asked(*rows, device=GPU):
    return [(q.kind, q.row, round(q.expected, 2), round(q.found, 2)) for q in questions(rows, device)]


def test_half_the_bytes_in_half_the_time_is_no_question(rows):
    row = rows[0]
    assert asked(timed(row, "fp32", 100), timed(row, "fp16", 50, moved=4_000_000)) == []
    assert asked(timed(row, "fp32", 100), timed(row, "fp16", 60, moved=4_000_000)) == []


def test_half_the_bytes_in_the_same_time_is_asked_about(rows):
    row = rows[0]
    found = asked(timed(row, "fp32", 100), timed(row, "fp16", 95, moved=4_000_000))
    assert found == [("bytes_not_time", "forward fp16 triton", 0.5, 0.95)]


def test_half_the_bytes_in_a_quarter_of_the_time_is_asked_about_too(rows):
    row = rows[0]
    found = asked(timed(row, "fp32", 100), timed(row, "fp16", 25, moved=4_000_000))
    assert found == [("more_than_bytes", "forward fp16 triton", 0.5, 0.25)]


def test_an_interval_that_reaches_what_is_expected_asks_nothing(rows):
    row = rows[0]
    assert asked(timed(row, "fp32", 100, 0.2), timed(row, "fp16", 70, 0.2, moved=4_000_000)) == []


def test_rows_of_other_implementations_wrong_ones_and_equal_bytes_are_not_compared(rows):
    row = rows[0]
    other = replace(timed(row, "fp16", 95, moved=4_000_000), implementation="mmcv")
    wrong = replace(timed(row, "fp16", 95, moved=4_000_000), result=replace(row.result, passed=False))
    same = timed(row, "fp16", 10)
    assert asked(timed(row, "fp32", 100), other, same) == [] and asked(timed(row, "fp32", 100), wrong) == []


def test_a_rate_above_the_peak_is_explained_by_l2_only_where_the_bytes_fit(rows):
    row = rows[0]
    assert asked(timed(row, "fp32", 1, share=1.6)) == [("from_cache", "forward fp32 triton", 1.0, 1.6)]
    assert asked(timed(row, "fp32", 1, moved=80_000_000, share=1.6)) == [
        ("above_peak", "forward fp32 triton", 1.0, 1.6)
    ]
    assert asked(timed(row, "fp32", 1, moved=80_000_000, share=0.99)) == []
    no_l2 = replace(GPU, l2_bytes=None)
    assert asked(timed(row, "fp32", 1, share=1.6), device=no_l2) == [("above_peak", "forward fp32 triton", 1.0, 1.6)]


def test_questions_are_lines_of_the_table():
    made = table(
        {
            ("triton", "fp32", "forward"): Speed(5, 100),
            ("triton", "fp16", "forward"): Speed(5, 97),
            "mmcv": Speed(5, 200),
        }
    )
    # the simulated operator moves the same bytes in every dtype: halve one
    halved = [replace(r, bytes_moved=4_000_000) if r.dtype == "fp16" else r for r in made.rows]
    text = render(BENCH, "text", replace(made, questions=questions(halved, made.device)))
    assert (
        "question: forward fp16 triton moves 0.50x the bytes of forward fp32 triton and takes 0.97x its time"
        in " ".join(text.split())
    )


def test_the_cold_time_is_beside_the_warm_one_where_the_clear_hides_the_host():
    made = table()
    row = made.rows[0]
    assert row.cold.protocol == COLD and row.cold.p50_us == pytest.approx(row.device.p50_us, rel=0.2)
    assert "95% CI | cold L2 |" in render(BENCH, "markdown", made)


def test_a_clear_that_is_over_before_the_host_gives_no_cold_time():
    made = table({"triton": Speed(4_000, 10), "mmcv": Speed(5, 200)})
    row = next(r for r in made.rows if r.implementation == "triton")
    assert row.cold.p50_us is None and "its events read the host" in row.cold.reason
    assert "cold L2 n/a: triton: clearing takes" in " ".join(render(BENCH, "text", made).split())


def test_every_clock_sample_that_was_held_down_is_named():
    made = table()
    samples = [
        ClockSample("during", 1980, 1980),
        ClockSample("during", 1410, 1980, throttle_reasons=["software power cap"]),
        ClockSample("during", 1200, 1980, throttle_reasons=["hardware thermal slowdown", "software power cap"]),
    ]
    text = render(BENCH, "text", replace(made, rows=[replace(made.rows[0], clock_samples=samples), *made.rows[1:]]))
    assert (
        "clock held down: forward fp32 triton: 2 of 3 samples (1410 of 1980 MHz: software power cap; "
        "1200 of 1980 MHz: hardware thermal slowdown, software power cap)"
    ) in " ".join(text.split())
