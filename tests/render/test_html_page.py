"""The page as text: its policy fits its contents, nothing of a trace becomes markup, sizes are bounded."""

from __future__ import annotations

import base64
import configparser
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner

import traceanalyzer as ta
from tests.builders import trace
from tests.render.fakes import hostile, ledger, make, op, report
from tests.render.test_fake_reports import TEXTS
from traceanalyzer.cli import cli
from traceanalyzer.doctor.example import captured
from traceanalyzer.options import AnalysisOptions
from traceanalyzer.render.ledger import brief_ledger
from traceanalyzer.render.page import assets as page_assets_module
from traceanalyzer.render.page.assets import page_assets, page_data
from traceanalyzer.render.page.content import render_page
from traceanalyzer.report import model
from traceanalyzer.trace.sidecar import ClockSample, Correctness, ProtocolResult, encode_sidecar, sidecar_path

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "samples" / "cpu_bound_loop.json"
VOID = {"meta", "link", "br", "input"}


class Page(HTMLParser):
    """Collects elements, attributes and the contents of scripts and styles, and checks that elements nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: list[tuple[str, str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
            if tag in ("script", "style"):
                self.raw.append((tag, ""))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1] == tag, f"</{tag}> closes <{self.open[-1]}>"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            tag, text = self.raw[-1]
            self.raw[-1] = (tag, text + data)


@pytest.fixture(scope="module")
def sample() -> str:
    return render_page(ta.analyze(SAMPLE, options=AnalysisOptions(figures=True)).data)


def test_the_policy_names_exactly_the_scripts_and_styles_of_the_page(sample):
    page = Page(sample)
    policy = next(
        a["content"] for t, a in page.elements if t == "meta" and a.get("http-equiv") == "Content-Security-Policy"
    )
    scripts = [a for t, a in page.elements if t == "script"]
    assert [a.get("type") for a in scripts] == ["application/json", None]
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(x.encode()).digest()).decode()}'" for _, x in page.raw]
    style, _data, own = hashes
    assert policy == (
        f"default-src 'none'; script-src {own}; style-src {style}; img-src data:; base-uri 'none'; form-action 'none'"
    )


def test_nothing_in_the_page_is_fetched_or_needs_an_exception_from_the_policy(sample):
    for tag, attributes in Page(sample).elements:
        assert "style" not in attributes
        assert not [a for a in attributes if a.startswith("on")]
        assert "src" not in attributes
        if "href" in attributes:
            assert attributes["href"].startswith(("#", "data:,")), (tag, attributes)
    assert "eval(" not in sample
    assert "innerHTML" not in sample


def test_ids_are_unique_and_links_lead_somewhere(sample):
    elements = Page(sample).elements
    ids = [a["id"] for _, a in elements if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for t, a in elements if t == "a" and a["href"].startswith("#")}
    assert targets <= set(ids)
    assert {"rule-TA201", "kernel-1", "finding-1", "timeline"} <= targets


def test_the_page_needs_no_library_and_less_script_than_one():
    assert len(page_assets().script) < 60_000


@pytest.mark.parametrize("text", sorted(TEXTS))
def test_no_text_of_a_report_becomes_markup(text):
    page = Page(render_page(hostile(TEXTS[text], rows=30, kernels=100)))
    assert page.open == []
    assert [t for t, _ in page.elements if t in ("img", "iframe", "object", "embed", "base", "form")] == []
    assert sum(t == "script" for t, _ in page.elements) == 2


@pytest.mark.parametrize("text", sorted(TEXTS))
def test_the_page_is_plain_printable_text_whatever_the_names(text):
    found = render_page(hostile(TEXTS[text], rows=10, kernels=30))
    found.encode("utf-8")
    body = found[found.index("<body>") : found.index('<script type="application/json"')]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b-\u200f]", body.replace("\n", ""))


def test_the_size_is_bounded_whatever_the_number_and_length_of_names():
    assert len(render_page(hostile("@" * 10_000, rows=40, kernels=3000)).encode()) < 1_000_000
    assert len(render_page(hostile("kernel", rows=40, kernels=3000)).encode()) < 1_000_000


@pytest.mark.parametrize("value", ["</script>", "<!--", "<script", "]]>", "\u2028", "\ud800", "&amp;"])
def test_data_cannot_end_its_block(value):
    text = page_data({"a": [value]})
    assert not re.search(r"[<>&]|[^\x20-\x7e]", text)
    assert json.loads(text)["a"][0].replace("\ufffd", "\ud800") == value


def test_a_report_without_figures_is_a_page_of_tables():
    found = render_page(ta.analyze(SAMPLE).data)
    assert 'id="chart-timeline"' not in found
    assert 'id="kernel-table"' in found
    assert "data-view" not in found.split("<script")[0]


def test_the_empty_report_is_a_page():
    page = Page(render_page(report()))
    assert page.open == []


def chart_rows(page: str) -> dict[str, str]:
    """Return label and value of every row of the page's charts, the first of each label: the ladder comes before the capture."""
    found = re.findall(r'<span class="label">([^<]*)</span> <span class="value">([^<]*)</span>', page)
    return dict(reversed(found))


def test_a_reading_that_was_measured_stands_beside_the_closed_form():
    one = op("my_op", readings_measured={"event_pair": 44.25, "backlog": 9.5}, readings_predicted={})
    found = render_page(report(ops=[one]))
    assert '<th scope="col">measured</th>' in found
    assert "44.25" in found
    rows = chart_rows(found)
    assert rows["event pair per call"] == "measured 44.25 us, 13.00 us, replayed 26.00 us"
    assert rows["event pairs behind a blocker"] == "measured 9.500 us"


def bar_widths(page):
    return [float(w) for w in re.findall(r'<rect class="l-\w+" x="[\d.]+" width="([\d.]+)" height="24">', page)]


def test_the_ledger_bar_adds_up_to_the_span_busy_first_then_the_largest_cause():
    classes = {"compute": 250.0, "host_op": 150.0, "data_loading": 400.0, "copy": 100.0, "launch_call": 100.0}
    found = render_page(report(ledger=[ledger(classes=classes, span_us=1000.0, items=[])]))
    assert bar_widths(found) == [250.0, 100.0, 400.0, 150.0, 100.0]
    assert "data loading 40 % (400 us)" in found


def test_clocks_that_disagree_leave_the_cause_of_idle_time_open():
    classes = {"compute": 250.0, "host_op": 750.0}
    rows = [ledger(classes=classes, span_us=1000.0, items=[])]
    found = render_page(replace(report(ledger=rows), clock=make(model.Clock, state="disagree")))
    assert bar_widths(found) == [250.0, 750.0]
    assert "clocks disagree: why the device idled is not known" in found and "host operator 75 %" not in found


def test_the_title_says_the_file_and_the_verdict(sample):
    assert re.search(r"<title>cpu_bound_loop\.json: Suspect: CPU-bound queue\. .*</title>", sample)


def test_the_command_writes_the_page(tmp_path):
    target = tmp_path / "report.html"
    result = CliRunner().invoke(cli, ["report", str(SAMPLE), "--format", "html", "-o", str(target)])
    assert result.exit_code == 0, result.output
    text = target.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>\n")
    assert 'id="chart-timeline"' in text
    assert str(ROOT) not in text


def test_copy_markdown_is_the_block_that_the_command_writes(sample):
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', sample)[1])
    result = CliRunner().invoke(cli, ["report", str(SAMPLE), "--format", "markdown"])
    assert data["markdown"] == result.output


def test_two_runs_write_the_same_page(sample):
    assert render_page(ta.analyze(SAMPLE, options=AnalysisOptions(figures=True)).data) == sample


def test_every_script_on_disk_is_in_the_page_and_installed_with_the_package():
    folder = ROOT / "traceanalyzer" / "render" / "assets"
    assert sorted(p.name for p in folder.glob("page-*.js")) == sorted(page_assets_module._SCRIPTS)
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    assert "assets/*" in config["options.package_data"]["traceanalyzer.render"]
    assert "recursive-include traceanalyzer/render/assets *" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8")


def captured_page(tmp_path, **record) -> str:
    path = tmp_path / "run.json"
    built = trace()
    for i in range(30):
        built.range("traceanalyzer.call:op", 40 * i, 20).call(40 * i + 2, 40 * i + 10, 10, name="k")
    built.write(path)
    protocols = [
        ProtocolResult("event_pair", "neither", {}, 20, 41.5, (41.0, 42.0), 0.2, [41.5] * 20),
        ProtocolResult("backlog", "device", {}, 20, 10.25, (10.0, 10.5), 0.1, [10.25] * 20),
    ]
    side = captured(clocks=[ClockSample("before", 1980, 1980, 2619, 120.0, 700.0, 41)])
    side = replace(side, operations=[replace(side.operations[0], name="op", protocols=protocols, **record)])
    sidecar_path(path).write_bytes(encode_sidecar(side))
    return render_page(ta.analyze(path, options=AnalysisOptions(figures=True)).data)


def test_what_a_capture_measured_stands_beside_what_the_trace_predicts(tmp_path):
    found = captured_page(tmp_path)
    section = found[
        found.index('<section id="capture"') : found.index("</section>", found.index('<section id="capture"'))
    ]
    assert "41.50" in section
    assert "10.25" in section
    assert "result " in section
    assert "clocks before: SM 1,980 of 1,980 MHz" in section
    rows = chart_rows(found)
    assert rows["event pair per call"].startswith("measured 41.50 us")
    assert rows["event pairs behind a blocker"] == "measured 10.25 us"
    # the chart of what was measured: each protocol's interval, its ratio to self-time, and the clocks as a table
    assert "41.50 us (95 % 41.00-42.00 us), 4.15x self-time, n 20" in section
    assert "<caption>Clocks during the run</caption>" in section and 'class="own m-self"' in section


def test_times_of_a_wrong_result_are_struck_through_and_the_title_says_so(tmp_path):
    wrong = Correctness(False, "3 of 4 values differ", "torch", 1.0, 1.0, 0.01, 0.01)
    found = captured_page(tmp_path, correctness=wrong)
    assert found.count('<td class="struck">41.50 us</td>') == 2  # in the ladder and where it was measured
    assert "<td>41.50 us</td>" not in found
    assert "WRONG RESULT" in found
    assert re.search(r"<title>run\.json: Suspect: .*result of `op` is wrong", found)


@pytest.mark.parametrize("busy", [0.0049, 0.0996, 0.4949, 0.9949, 0.9951, 0.99949, 1.0])
def test_one_share_is_said_in_one_way_by_page_text_and_markdown(busy):
    classes = {"compute": 1000 * busy, **({"host_op": 1000 * (1 - busy)} if busy < 1 else {})}
    data = report(ledger=[ledger(classes=classes, span_us=1000.0, items=[])])
    title = re.search(r'<p class="bar-title">device 0: busy (.*?) of', render_page(data))
    text = brief_ledger(data, 100)[0].title
    assert title is not None
    assert f", {title[1]} busy)" in text
