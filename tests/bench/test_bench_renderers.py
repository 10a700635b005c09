"""What a person sees of a bench: text of 100 columns and Markdown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from markdown_it import MarkdownIt

from tests.bench.fake_runner import Runner, Speed
from tests.bench.test_bench_table import SEED
from traceanalyzer.capture.bench import BenchAsked, bench
from traceanalyzer.capture.survey import Absence
from traceanalyzer.render.bench.blocks import verdicts
from traceanalyzer.render.bench.markdown import render_bench_markdown
from traceanalyzer.render.bench.text import render_bench

SPEEDS = {
    **SEED,
    ("mmcv", "fp32", "backward"): Speed(20, 8.1),
    ("compiled", "fp16", "forward"): Speed(30, 50, result=1.5),
    ("reference", "fp16", "backward"): Speed(1, 1, fails=RuntimeError("CUDA out of memory")),
}


@pytest.fixture(scope="module")
def table():
    absent = [Absence("mmcv", "bf16", "no_bf16", "mmcv has no bf16 kernel")]
    return bench(BenchAsked("msda", iterations=20), run=Runner(SPEEDS, absent, dtypes=("fp32", "fp16", "bf16")))


def line_of(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def test_the_overview_is_the_seeds_table(table):
    text = render_bench(table)
    assert text.splitlines()[0] == "msda decoder on Simulated device (fake): triton"
    assert line_of(text, "triton, device p50").split()[3:] == ["10", "us"] * 6
    assert line_of(text, "  speed-up over mmcv").split()[3:] == ["2.20x", "2.20x", "n/a", "0.81x", "2.20x", "n/a"]


def test_text_fits_100_columns_and_repeats_no_row(table):
    text = render_bench(table)
    assert max(len(line) for line in text.splitlines()) <= 100
    assert "continued" not in text


def test_a_row_shows_both_columns_and_what_the_trace_says(table):
    text = render_bench(table)
    cells = line_of(text, "forward fp32 triton").split()
    assert cells == [
        "forward",
        "fp32",
        "triton",
        "10.00",
        "10.00-10.00",
        "10.00",
        "20x",
        "5.00x",
        "2.20x",
        "41.00",
    ]
    last = [line for line in text.splitlines() if line.startswith("forward fp32 triton")][1]
    assert last.rstrip().endswith("suspect, cpu-bound P")


def test_a_wrong_result_is_struck_through_in_its_row_and_in_the_speed_ups_over_it(table):
    text = render_bench(table)
    assert line_of(text, "forward fp16 compiled").split()[3:5] == ["~~50.00~~", "~~50.00-50.00~~"]
    assert "~~5.00x~~" in line_of(text, "forward fp16 triton") and "~~5.00x~~" not in line_of(
        text, "forward fp32 triton"
    )
    assert "WRONG RESULT: forward fp16 compiled" in text and "0.5 WRONG" in text


def test_losses_absences_and_failures_stand_below(table):
    text = " ".join(render_bench(table).split())
    assert "losses of triton: backward fp32 0.81x (0.81-0.81) over mmcv" in text
    assert "n/a: forward bf16 mmcv, backward bf16 mmcv: mmcv has no bf16 kernel" in text
    assert "n/a: backward fp16 reference: memory ran out in the first call" in text


def test_one_sentence_for_rows_of_one_verdict(table):
    text = " ".join(render_bench(table).split())
    assert text.count("is dispatched every 40 us") == 1 and "trace of triton: Suspect: CPU-bound queue." in text


def test_markdown_is_tables_with_the_same_cells(table):
    html = MarkdownIt("gfm-like", {"linkify": False}).render(render_bench_markdown(table))
    assert html.count("<table>") == 3
    assert '<td style="text-align:right"><s>50.00</s></td>' in html
    assert "<td>forward fp32 triton</td>" in html and "0.81x" in html
    assert "<details>" in html and html.count("<li>") > 4


def test_without_losses_it_says_none():
    plain = bench(BenchAsked("msda", iterations=20, dtypes=("fp32",)), run=Runner(SEED))
    assert "losses of triton: none" in render_bench(plain)


def test_what_is_undecided_has_a_question_mark():
    noisy = {n: Speed(s.dispatch, s.kernel) for n, s in SEED.items()}
    noisy["mmcv"] = Speed(40, 10.05)
    table = bench(BenchAsked("msda", iterations=3, dtypes=("fp32",), directions=("forward",)), run=Runner(noisy))
    text = render_bench(table)
    assert "1.00x?" in line_of(text, "forward fp32 triton") or "1.00x" in line_of(text, "forward fp32 triton")
    undecided = [s for r in table.rows for s in r.speed_ups if s.outcome == "undecided"]
    assert bool(undecided) == ("undecided, the 95 % interval" in text)
    assert undecided, "three readings have no interval, so nothing is decided"


def test_names_from_elsewhere_are_escaped():
    evil = bench(
        BenchAsked("msda", iterations=20, dtypes=("fp32",), directions=("forward",)),
        run=Runner({**SEED, "mmcv": Speed(1, 1, fails=RuntimeError("\x1b[31m<script>|@everyone"))}),
    )
    assert "\x1b" not in render_bench(evil)
    assert "<script>" not in render_bench_markdown(evil) and "\x1b" not in render_bench_markdown(evil)


def test_a_note_of_many_rows_is_one_line_and_names_them(table):
    noted = replace(
        table,
        rows=[
            replace(r, notes=["few calls", f"own {i}"] if i < 2 else ["few calls"]) for i, r in enumerate(table.rows)
        ],
    )
    lines = [line for line in verdicts(noted) if line.startswith("note: ")]
    assert len(lines) == 3 and sum("few calls" in line for line in lines) == 1
    assert [line.partition(": own")[0] for line in lines if "own" in line] == [
        f"note: {r.label}" for r in table.rows[:2]
    ]
