"""What people and programs get: bounds, formats and stability of each output."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import jsonschema
import pytest

import traceanalyzer as ta
from tests.conftest import report_on, shared_files
from traceanalyzer.render.console import render_console
from traceanalyzer.render.csv import render_csv
from traceanalyzer.render.json_v1 import render_json
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.marker import marker
from traceanalyzer.render.page.document import render_html
from traceanalyzer.report.frames import json_schema
from traceanalyzer.report.model import Abstention, FindingRow, ReportData

REAL = shared_files("traces/*.json.gz")
EVIL = "</details><script>alert(1)</script>| `x` @octocat #1 \x1b[31m\n\u202e=HYPERLINK(1) " * 120


def call(at, corr):
    return {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": at,
        "dur": 2,
        "args": {"correlation": corr},
    }


def kernel(at, dur, corr, name, grid=1):
    args = {"device": 0, "stream": 7, "correlation": corr, "grid": [grid, 1, 1], "block": [32, 1, 1]}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at, "dur": dur, "args": args}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> ReportData:
    events = []
    for i in range(500):
        name = f"{EVIL}{i % 250}"
        events += [call(40 * i + 100, i + 1), kernel(40 * i + 106, 10, i + 1, name, i % 3 + 1)]
    path = tmp_path_factory.mktemp("hostile") / "evil | `name`.json"
    path.write_text(
        json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": EVIL}]}), encoding="utf-8"
    )
    data = report_on(path).data
    finding = data.findings[0]
    many = [replace(finding, message=EVIL + EVIL, subject=EVIL, remedy=[EVIL]) for _ in range(40)]
    return replace(data, findings=many, abstentions=[Abstention("TA999", EVIL) for _ in range(40)])


@pytest.fixture(scope="module", params=[p.name for p in REAL] or ["none"])
def real(request) -> ReportData:
    if not REAL:
        pytest.skip("the shared traces are not on this machine")
    return ta.analyze(next(p for p in REAL if p.name == request.param)).data


@pytest.fixture(scope="module", params=["hostile", *(p.name for p in REAL)])
def every(request, hostile) -> ReportData:
    """The hostile trace, then each real one."""
    return hostile if request.param == "hostile" else report_on(next(p for p in REAL if p.name == request.param)).data


def test_no_line_is_wider_than_100_columns(every):
    assert max(map(len, render_console(every, top=50).splitlines())) <= 100


@pytest.mark.parametrize("color", [True, False])
def test_no_control_byte_of_a_trace_reaches_the_terminal(hostile, color):
    text = render_console(hostile, color=color)
    assert "\x1b[31m" not in text.replace("\x1b[1;31m", "") and "\u202e" not in text
    assert color or "\x1b" not in text


def test_the_verdict_is_the_first_line(real):
    first = render_console(real).splitlines()[0]
    assert first.startswith(("OK:", "Suspect:", "Cannot judge:"))


def test_markdown_keeps_its_bounds_whatever_the_trace(every):
    for top in (1, 10, 500):
        text = render_markdown(every, top=top)
        assert len(text.splitlines()) <= 60 and len(text) <= 65_000


def test_markdown_of_a_hostile_trace_holds_no_live_html(hostile):
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).enable("table").parse(render_markdown(hostile))
    html = [t.content.strip() for t in tokens if t.type == "html_block"]
    inline = [c for t in tokens for c in t.children or []]
    html += [c.content for c in inline if c.type == "html_inline"]
    tags = {tag for text in html for tag in re.findall(r"<[^>]*>", text)}
    # the marker stands in the first line
    assert render_markdown(hostile).splitlines()[0] == marker(hostile.trace.name)
    tags.discard(marker(hostile.trace.name))
    assert tags <= {"<details>", "</details>", "<summary>", "</summary>", "<sub>", "</sub>", "<br>"}
    assert not [c for c in inline if c.type in ("link_open", "image")]


def test_markdown_is_stable(real):
    assert render_markdown(real) == render_markdown(real)


def assert_standard(report: ReportData) -> None:
    text = render_json(report)
    assert text.isascii() and text.endswith("}\n") and "NaN" not in text
    jsonschema.Draft202012Validator(json_schema()).validate(json.loads(text))


def test_json_is_standard_and_validates(real):
    assert_standard(real)


def test_json_of_hostile_names_is_standard_and_validates(hostile):
    assert_standard(hostile)


def test_json_has_every_field_of_the_binding_document(real):
    document = json.loads(render_json(real))
    assert document["schema"] == "traceanalyzer.report/1"
    wanted = {
        "trace": "name format events device_activities kernels launches linked streams span_us kernel_total_us kernel_p50_us devices salvaged excluded",
        "devices": "device span_us busy_us idle_us busy_fraction self_time_us",
        "streams": "device stream activities busy_us gaps gap_total_us gap_p50_us gap_max_us kernel_gaps kernel_gap_total_us kernel_gap_p50_us "
        "kernel_gap_max_us starved host_wait_us launch_wait_us sync_wait_us",
        "threads": "thread launches dispatch_total_us dispatch_p50_us dispatch_p90_us steady_dispatch_p50_us kernel_launches "
        "kernel_dispatch_total_us kernel_dispatch_p50_us",
        "kernels": "name short_name count total_us mean_us min_us p50_us p90_us max_us mad_us p50_ci95_us share linked starved "
        "launch_latency_p50_us dispatch_p50_us event_reading_us inflation queue grade variants",
        "ops": "name method iterations launches_per_iteration self_time_p50_us span_p50_us period_p50_us dispatch_p50_us readings queue grade",
        "findings": "rule severity grade subject message numbers evidence remedy",
        "abstentions": "rule reason",
    }
    for block, names in wanted.items():
        rows = document[block] if isinstance(document[block], list) else [document[block]]
        for row in rows:
            assert set(names.split()) <= set(row), block
    totals = [k["total_us"] for k in document["kernels"]]
    assert totals == sorted(totals, reverse=True)


def test_csv_reads_back_and_runs_no_formula(every):
    rows = list(csv.DictReader(io.StringIO(render_csv(every))))
    assert sum(r["table"] == "kernel" for r in rows) == len(every.kernels)
    assert not [
        v for r in rows for k, v in r.items() if k in ("name", "short_name") and v.startswith(("=", "+", "-", "@"))
    ]


def test_html_without_figures_has_no_script(real):
    text = render_html(real)
    assert "<script" not in text and len(text) < 2_000_000


def test_html_of_a_hostile_trace_runs_none_of_its_script(hostile):
    text = render_html(hostile)
    assert "<script>alert" not in text and len(text) < 2_000_000


def test_a_report_without_anything_still_renders(tmp_path):
    path = tmp_path / "t.json"
    path.write_text("[]")
    data = report_on(path).data
    for text in (render_console(data), render_markdown(data), render_csv(data), render_html(data), render_json(data)):
        assert text.strip()
    assert "0.000" not in render_console(data)


def test_findings_say_number_threshold_and_next_step(real):
    for finding in real.findings:
        assert isinstance(finding, FindingRow) and finding.message and finding.remedy
        assert any(k.startswith("threshold") for k in finding.numbers) or finding.rule in ("TA101", "TA102")
