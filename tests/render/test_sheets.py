"""Pages of ranks, a bench, a history and a fleet: one shell, one policy, small, and harmless whatever the names."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

import pytest

from tests.bench.fake_runner import Runner
from tests.bench.test_bench_renderers import SPEEDS
from tests.fleet.jobs import write_job
from traceanalyzer.api import ranks
from traceanalyzer.capture.bench import BenchAsked, bench
from traceanalyzer.doctor.example import captured
from traceanalyzer.render.base import RenderSettings, render
from traceanalyzer.render.formats import BENCH, FLEET_QUERY, RANKS
from traceanalyzer.render.ledger import BUSY
from traceanalyzer.render.page.assets import page_assets
from traceanalyzer.render.page.capture import capture_page
from traceanalyzer.render.page.history import history_page
from traceanalyzer.render.page.sheet import Bar, BarPiece, Bars, Sheet, SheetPart, sheet_page
from traceanalyzer.render.ranks import ledgers
from traceanalyzer.report.fleet import QueryResult
from traceanalyzer.report.history.store import Entry
from traceanalyzer.report.history.trends import trends
from traceanalyzer.trace.sidecar import ClockSample, Correctness, ProtocolResult

HOSTILE = "<script>alert(1)</script>\"' onload=x \u202e\x1b[31m"


def recording(i: int, period_us: float, unit: str = "step", device: str = "A100") -> Entry:
    return Entry(
        f"2026-01-{1 + i % 28:02}T10:00", f"{i:012x}", f"run{i}.json.gz", device, unit, "annotation", 30, period_us, 0.97 * period_us, 1.04 * period_us,
        0.4 * period_us, None, None, "ok", {},
    )  # fmt: skip


def query(rows: int, name: str = "kernel", columns: int = 1) -> str:
    names = ["name", *(f"time_{n}_us" for n in range(columns))]
    found = QueryResult(names, [[f"{name} {i}", *([i * 1.5] * columns)] for i in range(rows)], False)
    return render(FLEET_QUERY, "html", found, RenderSettings(top=rows))


@pytest.fixture(scope="module")
def late(tmp_path_factory) -> str:
    return render(RANKS, "html", ranks(write_job(tmp_path_factory.mktemp("t") / "job7", 4, late_rank=2), hta=False))


def test_a_page_of_ranks_marks_the_late_rank_in_words_and_has_a_place_for_each(late):
    assert "<title>job7: Rank 2 is late" in late
    for rank in range(4):
        assert late.count(f'id="rank-{rank}"') == 1 and f'href="#rank-{rank}"' in late
    bars = re.findall(r'<svg class="bar thin".*?aria-label="(.*?)"', late)
    assert [b.split(",")[0] for b in bars] == ["rank 0", "rank 1", "rank 2 (late)", "rank 3"]
    assert 'id="verdict"' in late and 'id="ledger"' in late and ">Late rank<" in late


def test_bars_of_ranks_are_on_one_axis(late):
    ends = []
    for bar in re.findall(r'<svg class="bar thin".*?</svg>', late, re.S):
        places = [(float(x), float(w)) for x, w in re.findall(r' x="([\d.]+)" width="([\d.]+)"', bar)]
        assert all(abs(a + w - b) < 0.05 for (a, w), (b, _) in pairwise(places))
        ends.append(sum(places[-1]))
    assert max(ends) == pytest.approx(1000, abs=0.1)


@pytest.mark.parametrize("make", [lambda: query(3, HOSTILE), lambda: history_page(trends([recording(i, 40.0, HOSTILE, HOSTILE) for i in range(8)]), HOSTILE)])  # fmt: skip
def test_names_of_others_are_harmless_and_nothing_may_be_fetched(make):
    page = make()
    assert "<script>alert" not in page and "\u202e" not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page and "onload=x" not in re.sub(r">[^<]*<|\"[^\"]*\"", "", page)
    assert f'content="{page_assets().policy}"' in page.replace("&#39;", "'") and "http" not in re.sub(r"http-equiv|https?://[\w./-]*w3.org\S*", "", page)  # fmt: skip


def test_ten_thousand_rows_are_below_a_megabyte_and_the_rest_is_counted():
    page = query(10_000)
    assert len(page.encode()) < 1_000_000 and "9,500 more rows" in page
    entries = [recording(i, 40.0 + 20 * (i > 4000), f"unit {i % 50}") for i in range(10_000)]
    page = history_page(trends(entries), "h.sqlite")
    assert len(page.encode()) < 1_000_000 and "older recordings are in the chart alone" in page
    bars = Bars("", [Bar(f"rank {i}", "", [BarPiece("compute", 0, 1000, "x" * 40)] * 8, mark="late" if i == 900 else "") for i in range(1000)], [], [])  # fmt: skip
    page = sheet_page(Sheet("f", "h", [SheetPart("ledger", "Ledger", bars)]))
    assert len(page.encode()) < 1_000_000 and "840 more bars" in page and ">rank 900" in page


def test_a_change_of_level_is_drawn_where_it_is_and_told_in_words():
    page = history_page(trends([recording(i, 40.0 + i % 2 / 10 + 20 * (i >= 6)) for i in range(12)]), "h.sqlite")
    [x] = re.findall(r'<line class="change" x1="([\d.]+)%"', page)
    assert float(x) == pytest.approx(50, abs=0.1)
    assert ">Level changed<" in page and "(1.499)" in page


def test_an_empty_history_says_so():
    page = history_page([], "h.sqlite")
    assert "The history holds no unit with a period." in page and "<section" not in page


def test_a_capture_without_a_trace_has_a_page_and_a_wrong_result_is_in_its_title():
    wrong = Correctness(False, "3 of 4 values differ", "torch", 1.0, 1.0, 0.01, 0.01)
    protocols = [
        ProtocolResult("profiler_self_time", "device", {}, 20, 10.0, (9.5, 10.5), 0.1, [10.0] * 20),
        ProtocolResult("event_pair", "neither", {}, 20, 40.0, (39.0, 41.0), 0.2, [40.0] * 20),
    ]
    side = captured(clocks=[ClockSample("during", 1410, 1980, throttle_reasons=["sw_power_cap"])])
    side = replace(side, operations=[replace(side.operations[0], name=HOSTILE, protocols=protocols, correctness=wrong)])
    page = capture_page(side, "trace.sidecar.json")
    assert "<title>trace.sidecar.json: " in page and ">Wrong result<" in page and "<script>alert" not in page
    assert "4.00x self-time" in page and page.count('<li class="wrong">') == 2 and "sw_power_cap" in page


def test_a_bench_draws_intervals_and_its_headline_names_the_wrong_result_and_the_loss():
    page = render(BENCH, "html", bench(BenchAsked("msda", iterations=20, dtypes=("fp16", "fp32")), run=Runner(SPEEDS)))
    assert "<title>msda decoder: " in page and "the result of forward fp16 compiled is wrong" in page
    assert "losses of triton: backward fp32 0.81x" in page and page.count('<li class="wrong">') == 1
    assert page.count("<caption") == page.count("<table")


def test_a_rank_whose_clocks_disagree_has_no_zero_for_causes_that_are_not_known(tmp_path):
    found = ranks(write_job(tmp_path / "job", 3), hta=False)
    idle = {k: v for k, v in found.ranks[1].ledger.items() if k in BUSY} | {"idle": found.ranks[1].idle_us}
    causes = {k: v for k, v in found.ranks[0].ledger.items() if k in BUSY} | {"host_op": found.ranks[0].idle_us}
    rows = [replace(r, ledger=idle if r.rank == 1 else causes) for r in found.ranks]
    block = ledgers(replace(found, ranks=rows), 10)
    assert block is not None
    cells = {row[0][0]: dict(zip(block.columns, row, strict=True)) for row in block.rows}
    assert cells["1"].get("host operator", "n/a") == "n/a" and cells["0"].get("idle", "n/a") == "n/a"
    page = render(RANKS, "html", replace(found, ranks=rows))
    assert "0 % to" not in re.search(r'<ul class="legend">.*?</ul>', page, re.S)[0]
