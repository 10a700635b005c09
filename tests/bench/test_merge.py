"""Saved tables of several machines as one, in the layout of the seed: GPUs by rows, forward and backward by dtype."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt

from tests.bench.fake_runner import Runner, Speed
from traceanalyzer.capture.bench import BenchAsked, bench
from traceanalyzer.capture.survey import Absence
from traceanalyzer.cli import cli
from traceanalyzer.errors import OptionError
from traceanalyzer.render.base import RenderSettings, render
from traceanalyzer.render.formats import BENCH, MERGED
from traceanalyzer.report.bench.merge import merged
from traceanalyzer.report.bench.saved import read_table
from traceanalyzer.trace.sidecar import ClockSample, DeviceFacts

SEED = {
    "NVIDIA L40S": ("8.9", [(15, 21), (9, 28.5), (325, 263.25), (73, 211.7), (254, None)]),
    "NVIDIA A100": ("8.0", [(35, 48.3), (18, 54.72), (316, 255.96), (132, 514.8), (411, None)]),
    "NVIDIA H100": ("9.0", [(12, 26.04), (8, 34.4), (92, 122.36), (56, 252), (56, None)]),
}
"""Kernel times of Triton and of mmcv, in the seed's columns: fwd fp32, fwd fp16, bwd fp32, bwd fp16, bwd bf16."""
CASES = [("fp32", "forward"), ("fp16", "forward"), ("fp32", "backward"), ("fp16", "backward"), ("bf16", "backward")]
NO_BF16 = Absence("mmcv", "bf16", "no_bf16", "mmcv has no bf16 kernel")


def machine(name, **asked):
    capability, times = SEED[name]
    speeds = {}
    for (dtype, direction), (ours, theirs) in zip(CASES, times, strict=True):
        speeds["triton", dtype, direction] = Speed(40, ours)
        speeds["mmcv", dtype, direction] = Speed(20, theirs or 1)
    speeds |= {"triton": Speed(40, 20), "mmcv": Speed(20, 20)}
    runner = Runner(speeds, [NO_BF16], dtypes=("fp32", "fp16", "bf16"))
    table = bench(BenchAsked("msda", iterations=8, against=("mmcv",), **asked), run=runner)
    kept = [r for r in table.rows if (r.dtype, r.direction) != ("bf16", "forward")]
    return replace(table, rows=kept, device=DeviceFacts("cuda", name, capability))


@pytest.fixture(scope="module")
def tables():
    return [(name.split()[1].lower(), machine(name)) for name in SEED]


def test_the_seeds_table_in_its_own_layout(tables):
    text = render(MERGED, "text", merged(tables), RenderSettings(width=120))
    assert text.splitlines()[0] == "msda decoder: triton, device time per call, speed-up over mmcv"
    titles = next(line for line in text.splitlines() if "fwd fp32" in line)
    assert titles.split() == ["GPU", "fwd", "fp32", "fwd", "fp16", "bwd", "fp32", "bwd", "fp16", "bwd", "bf16"]

    def row(start):
        line = next(line for line in text.splitlines() if line.startswith(start))
        return re.findall(r"[\d.]+ us!?, \S+", line)

    assert row("NVIDIA L40S (SM 8.9)") == [
        "15 us, 1.40x",
        "9 us, 3.17x",
        "325 us, 0.81x",
        "73 us, 2.90x",
        "254 us, n/a",
    ]
    assert row("NVIDIA A100 (SM 8.0)") == [
        "35 us, 1.38x",
        "18 us, 3.04x",
        "316 us, 0.81x",
        "132 us, 3.90x",
        "411 us, n/a",
    ]
    assert row("NVIDIA H100 (SM 9.0)") == ["12 us, 2.17x", "8 us, 4.30x", "92 us, 1.33x", "56 us, 4.50x", "56 us, n/a"]


def test_losses_and_what_is_not_there_are_said_below(tables):
    text = " ".join(render(MERGED, "text", merged(tables), RenderSettings(width=120)).split())
    assert (
        "losses of triton: NVIDIA L40S (SM 8.9) bwd fp32 0.81x over mmcv; NVIDIA A100 (SM 8.0) bwd fp32 0.81x over mmcv"
        in text
    )
    assert "over mmcv: mmcv has no device time: mmcv has no bf16 kernel" in text


def test_a_cpu_bound_queue_is_no_doubt_on_kernel_time_and_its_cost_is_said(tables):
    text = " ".join(render(MERGED, "text", merged(tables), RenderSettings(width=120)).split())
    assert "!" not in text
    assert (
        "CPU-bound queue: a call in a loop costs its dispatch, not the kernel's time above: NVIDIA L40S (SM 8.9) fwd fp32 (4"
        in text
    )


def test_times_that_something_speaks_against_are_marked_and_it_is_said(tables):
    name, table = tables[0]
    held = [ClockSample("during", 1200, 1980, throttle_reasons=["software power cap"])]
    rows = [
        replace(table.rows[0], agrees=False),
        *(replace(r, clock_samples=held) if r.dtype == "fp16" else r for r in table.rows[1:]),
    ]
    text = " ".join(
        render(MERGED, "text", merged([(name, replace(table, rows=rows))]), RenderSettings(width=120)).split()
    )
    assert "15 us!, 1.40x" in text and "9 us!, 3.17x" in text and "325 us, 0.81x" in text
    assert "!: self-time and unrolled graph disagree: NVIDIA L40S (SM 8.9) fwd fp32" in text
    assert "!: the clock was held down: NVIDIA L40S (SM 8.9) fwd fp16, NVIDIA L40S (SM 8.9) bwd fp16" in text


def test_a_time_that_is_nowhere_and_a_result_that_is_wrong(tables):
    (name, table), other = tables[0], tables[1]
    wrong = replace(table.rows[0].result, passed=False)
    rows = [replace(table.rows[0], result=wrong), *(r for r in table.rows[1:] if r.direction == "forward")]
    found = merged([(name, replace(table, rows=rows)), other])
    text = render(MERGED, "text", found, RenderSettings(width=120))
    assert "~~15 us" in text and "WRONG RESULT: NVIDIA L40S (SM 8.9): fwd fp32" in text
    assert "not measured there" in text
    assert [c.reading.p50_us for c in found.machines[0].cells][2:] == [None, None, None]


def test_two_machines_of_one_kind_are_told_apart(tables):
    found = merged([("first", tables[0][1]), ("second", tables[0][1])])
    assert [m.label for m in found.machines] == ["first: NVIDIA L40S (SM 8.9)", "second: NVIDIA L40S (SM 8.9)"]
    same = merged([("out", tables[0][1]), ("out", tables[0][1])])
    assert [m.label for m in same.machines] == ["1: out: NVIDIA L40S (SM 8.9)", "2: out: NVIDIA L40S (SM 8.9)"]


def test_versions_that_differ_are_said(tables):
    other = replace(tables[1][1], versions={**tables[1][1].versions, "triton": "3.6.0"})
    found = merged([("a", replace(tables[0][1], versions={**tables[0][1].versions, "triton": "3.9.0"})), ("b", other)])
    assert found.versions_differ["triton"] == ["3.9.0", "3.6.0"]
    assert "triton differs: 3.9.0 (NVIDIA L40S (SM 8.9)), 3.6.0 (NVIDIA A100 (SM 8.0))" in render(
        MERGED, "markdown", found
    )


@pytest.mark.parametrize(
    "change", [{"operator": "softmax"}, {"preset": "encoder"}, {"sizes": {"batch": "9"}}, {"implementation": "mmcv"}]
)
def test_tables_that_measure_different_things_are_refused(tables, change):
    with pytest.raises(OptionError) as caught:
        merged([tables[0], ("other", replace(tables[1][1], **change))])
    assert caught.value.kind == "not_alike" and "other" in str(caught.value)


def test_end_to_end_time_is_never_put_into_the_device_column(tables):
    cpu = replace(
        tables[0][1],
        column="end-to-end",
        device=DeviceFacts("cpu", "cpu"),
        rows=[
            replace(r, device=replace(r.device, p50_us=None, reason="a CPU has no device clock"))
            for r in tables[0][1].rows
        ],
    )
    found = merged([("cpu", cpu), tables[1]])
    assert found.column == "device" and {c.reading.p50_us for c in found.machines[0].cells} == {None}
    assert all(s.ratio is None for c in found.machines[0].cells for s in c.speed_ups)
    assert merged([("cpu", cpu)]).column == "end-to-end"


def test_a_saved_table_is_read_as_it_was_written(tables, tmp_path):
    for name, table in tables:
        (tmp_path / name).mkdir()
        (tmp_path / name / "bench.json").write_text(render(BENCH, "json", table))
        assert read_table(tmp_path / name).rows == table.rows
    done = CliRunner().invoke(cli, ["bench", "--merge", *(str(tmp_path / n) for n, _ in tables), "--format", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["schema"] == "traceanalyzer.bench-merge/1"
    assert [m["source"] for m in found["machines"]] == ["l40s", "a100", "h100"]
    assert found["machines"][2]["cells"][3]["speed_ups"][0]["ratio"] == pytest.approx(4.5, rel=1e-3)


@pytest.mark.parametrize(
    ("content", "says"),
    [(b"", "no table of bench"), (b'{"schema": "traceanalyzer.report/1"}', "traceanalyzer.report/1"), (b"[1,", "no table of bench"),
     (b'{"schema": "traceanalyzer.bench/1", "rows": 3}', "no table of bench")],
)  # fmt: skip
def test_what_is_no_saved_table_is_one_line(tmp_path, content, says):
    (tmp_path / "x.json").write_bytes(content)
    done = CliRunner().invoke(cli, ["bench", "--merge", str(tmp_path / "x.json")])
    assert done.exit_code == 2 and says in done.output and len(done.output.splitlines()) == 1


def test_several_functions_are_told_about_merge():
    done = CliRunner().invoke(cli, ["bench", "a.json", "b.json"])
    assert done.exit_code == 2 and "--merge" in done.output


@pytest.mark.parametrize("merge", [False, True])
def test_csv_holds_every_row_and_no_formula(tables, merge):
    table = replace(tables[0][1], operator="=cmd()")
    product, data = (MERGED, merged([("=x", table)])) if merge else (BENCH, table)
    rows = list(csv.DictReader(io.StringIO(render(product, "csv", data))))
    assert len(rows) == (5 if merge else 10)
    assert {len(r) for r in rows} == {len(rows[0])} and None not in rows[0]
    assert not any(str(v).startswith("=") for r in rows for v in r.values())
    if merge:
        assert (rows[0]["p50_us"], rows[0]["speed_up"], rows[0]["against"]) == ("15.0", "1.4", "mmcv")
        assert rows[4]["speed_up"] == "" and "no bf16" in rows[4]["speed_up_reason"]
    else:
        assert float(rows[0]["device_p50_us"]) == 15 and float(rows[0]["speed_up_over_mmcv"]) == pytest.approx(1.4)


@pytest.mark.parametrize("merge", [False, True])
def test_the_page_has_the_cells_runs_nothing_of_the_file_and_fetches_nothing(tables, merge):
    table = replace(tables[0][1], operator="<script>alert(1)</script>", summary="</style><img src=x onerror=y>")
    product, data = (MERGED, merged([("a", table)])) if merge else (BENCH, table)
    page = render(product, "html", data)
    assert "Content-Security-Policy" in page and "default-src 'none'" in html.unescape(page)
    assert "<script>alert" not in page and "<img" not in page and "http-equiv" in page
    assert ("15 us, 1.40x" if merge else "15.00") in page
    assert "src=" not in page.split("<main>")[1].split("</main>")[0]


def test_markdown_is_a_table_with_the_same_cells(tables):
    made = MarkdownIt().enable("table").render(render(MERGED, "markdown", merged(tables)))
    assert made.count("<tr>") == 4 and "4.50x" in made and "0.81x" in made
