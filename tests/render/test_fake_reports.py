"""Bounds and readability that hold for every report, shown on made-up ones that no trace would give."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from tests.render.fakes import finding, hostile, kernel, make, op, report
from traceanalyzer.render import blocks
from traceanalyzer.render import format as show
from traceanalyzer.render.base import render
from traceanalyzer.render.console import render_console
from traceanalyzer.render.csv import render_csv
from traceanalyzer.render.escape import terminal, visible
from traceanalyzer.render.formats import CHECK
from traceanalyzer.render.json_v1 import dump, render_json
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.page.document import render_html
from traceanalyzer.render.screen import render_screen
from traceanalyzer.report import model
from traceanalyzer.report.model import Abstention

# each grows most under one of the escapes: "@" eightfold in Markdown, the last code point tenfold everywhere
TEXTS = {
    "mentions": "@" * 10_000, "last code point": "\U0010ffff" * 10_000, "wide letters": "漢字" * 5_000, "marks": "|\\`<$:" * 1_700,
    "escapes": "\x1b[31m\u202e\x7f\x00\n\t" * 1_250, "surrogates": "\ud800" * 40, "commits": "deadbeef " * 1_111, "fillers": "\u3164\u115f" * 50,
    "leading blanks": "    x", "markup": "[bold red]x[/] [link=http://x]y[/link] {{ 7*7 }} {% raw %}" * 50,
    "html": "</details></summary><script>alert(1)</script><img src=x onerror=y>" * 150, "nothing": "",
}  # fmt: skip
FOR_PEOPLE = {
    "console": render_console, "markdown": render_markdown, "html": render_html, "csv": render_csv,
    "check text": lambda r: render(CHECK, "text", [r]), "check github": lambda r: render(CHECK, "github", [r]), "screen": render_screen,
}  # fmt: skip


@pytest.fixture(scope="module", params=sorted(TEXTS))
def evil(request):
    return hostile(TEXTS[request.param], rows=40, kernels=500 if request.param in ("mentions", "marks") else 30)


@pytest.fixture(scope="module", params=sorted(TEXTS))
def few(request):
    # every cell of a CSV holds its text in full, so a few rows are enough
    return hostile(TEXTS[request.param], rows=3, kernels=2)


@pytest.mark.parametrize("width", [100, 40])
def test_no_line_is_wider_than_the_screen_whatever_the_text(evil, width):
    for show_all in (render_console, render_screen):
        assert max(cell_len(line) for line in show_all(evil, width=width).splitlines()) <= width


def test_a_long_name_does_not_flood_the_screen(evil):
    assert len(render_console(evil).splitlines()) < 8_000


def test_markdown_stays_under_60_lines_and_65000_characters_whatever_the_trace(evil):
    for top in (1, 10, 500):
        text = render_markdown(evil, top=top)
        assert len(text.splitlines()) <= 60 and len(text) <= 65_000


def test_markdown_tables_keep_their_cells_and_nothing_in_them_acts(evil):
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).enable("table").parse(render_markdown(evil))
    rows = [[]]
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type in ("td_open", "th_open"):
            rows[-1].append(token)
        elif token.type == "table_close":
            assert len({len(row) for row in rows if row}) == 1
            rows = [[]]
    inline = [c for t in tokens for c in t.children or []]
    assert not {c.type for c in inline} & {"link_open", "image"}
    html = "".join(t.content for t in [*tokens, *inline] if t.type in ("html_block", "html_inline"))
    # the hidden marker comes first, one comment that nothing in the trace's name ends
    html, markers = re.subn(r"\A<!-- traceanalyzer:report( (?!.*--.* -->)[\w.~%-]+)? -->\n", "", html)
    assert markers == 1
    assert set(re.findall(r"<[^>]*>", html)) <= {
        "<details>",
        "</details>",
        "<summary>",
        "</summary>",
        "<sub>",
        "</sub>",
        "<br>",
    }


@pytest.mark.parametrize("output", sorted(FOR_PEOPLE))
def test_outputs_hold_printable_characters_only_and_can_be_encoded(few, output):
    text = FOR_PEOPLE[output](few)
    assert {c for c in text if not c.isprintable()} <= {"\n"}
    text.encode("utf-8")


def test_html_holds_no_tag_of_a_trace(evil):
    assert not re.search(r"<(script|img|/details)", render_html(evil))


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\\\ud800", "\\\\ud800", "\U0001f600", "\ud83d", "\x7f", "\n"])
def test_json_holds_no_half_of_a_surrogate_pair(text):
    back = json.loads(render_json(report(kernels=[kernel(text)])))["kernels"][0]["name"]
    back.encode("utf-8")
    assert back == re.sub("[\ud800-\udfff]", "\ufffd", text)


@given(
    st.text(alphabet=st.sampled_from(["\\", "u", "d", "8", "0", "c", "\ud800", "\udc00", '"', "\n", "é", "\U0001f600"]))
)
def test_json_changes_nothing_but_lone_surrogates(text):
    expected = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    back = json.loads(dump([text]))[0]
    back.encode("utf-8")
    assert back.replace("\ufffd", "") == expected.replace("\ufffd", "")


@given(st.text(max_size=60), st.integers(10, 60))
def test_escaped_text_keeps_its_limit(text, limit):
    assert len(terminal(text, limit)) <= limit and visible(text).isprintable()


@pytest.mark.parametrize("char", "\u200b\u202e\u2066\u00ad\u3164\u115f\u2800\ufeff\x1b\x9b\x7f\u2028\u0301")
def test_characters_that_show_nothing_or_act_are_spelled_out(char):
    assert re.fullmatch(r"a\\[xuU][0-9a-f]+b", terminal(f"a{char}b"))


def test_rich_markup_in_a_name_is_printed_and_not_interpreted():
    text = render_console(report(kernels=[kernel("[bold]k[/] [link=http://x]")]), color=True)
    assert "[bold]k[/] [link=http://x]" in text and "\x1b]8" not in text


HOUR = 3_607_654_321.0


def long_trace():
    return report(
        kernels=[kernel("some_kernel", p50_us=HOUR, p50_ci95_us=(HOUR, HOUR), dispatch_p50_us=HOUR, event_reading_us=HOUR, count=12_345_678)],
        streams=[
            make(
                model.StreamRow, stream=7, activities=123_456_789, gap_total_us=HOUR, gap_p50_us=HOUR, host_wait_us=HOUR, sync_wait_us=HOUR,
                launch_wait_us=HOUR, starved=12_345_678, queue_depth_p50=1023.5, queue_depth_max=1024, clocks_agree=True,
            )
        ],
        idle=[
            make(
                model.IdleRow, idle_us=HOUR, idle_share=0.5, long_pauses=123_456, long_us=HOUR, short_gaps=12_345_678, short_us=HOUR,
                late_launches=123_456, late_us=HOUR, host_us=HOUR, sync_us=HOUR, launch_us=HOUR,
            )
        ],
    )  # fmt: skip


@pytest.mark.parametrize("width", [100, 72, 40])
def test_no_number_is_cut_short_however_long_the_trace(width):
    made = long_trace()
    words = render_console(made, width=width).split()
    for block in (blocks.kernels(made, 9), blocks.streams(made, 9), blocks.idle(made)):
        cells = [cell for row in block.rows for n, cell in enumerate(row) if n not in block.names]
        for number in (part for cell in cells for part in cell.split()):
            if len(number) < width // 2:
                assert number in words


def test_the_first_line_is_the_verdict():
    assert render_console(report()).splitlines()[0] == "Suspect: launches come too late"


def test_a_kernel_whose_name_begins_with_blanks_is_not_taken_for_a_variant():
    assert "`evil`" in render_markdown(report(kernels=[kernel("   evil")]))
    assert "`(no name)`" in render_markdown(report(kernels=[kernel("  ")]))


def test_a_reason_that_silences_many_rules_is_said_once():
    made = report(abstentions=[Abstention(f"TA{n}", "no operation was found") for n in (203, 205, 301)])
    for text in (render_console(made), render_markdown(made), render_html(made)):
        assert text.count("no operation was found") == 1 and "TA203, TA205, TA301" in text


def test_rows_that_are_not_shown_are_counted():
    made = report(
        kernels=[kernel(f"k{n}") for n in range(54)], copies=[kernel(f"c{n}") for n in range(9)], ops=[op(f"o{n}") for n in range(9)],
        streams=[make(model.StreamRow)] * 30, threads=[make(model.ThreadRow)] * 30, devices=[make(model.DeviceRow)] * 30,
        findings=[finding(f"TA{n}") for n in range(70)],
    )  # fmt: skip
    text = render_console(made, top=20)
    for said in (
        "34 more kernels", "4 more kinds of copy", "1 more operation not", "10 more streams", "10 more threads", "10 more devices", "10 more findings",
    ):  # fmt: skip
        assert said in text
    assert "44 more kernels" in render_markdown(made) and "more: TA" in render_markdown(made)


def test_damage_is_said_loudly_with_its_counts():
    trace = make(
        model.TraceSummary,
        name="cut.json",
        incomplete=True,
        salvaged=True,
        excluded={"negative duration": 3},
        repaired={"bad escape": 2},
    )
    for text in (render_console(report(trace=trace)), render_markdown(report(trace=trace))):
        assert (
            "INCOMPLETE" in text and "3 x negative duration" in text and "2 x bad escape" in text and "None" not in text
        )


def test_a_simulated_trace_is_labelled():
    made = report(trace=make(model.TraceSummary, name="x", simulated=True))
    assert all("SIMULATED" in render(made) for render in (render_console, render_markdown, render_html))


@pytest.mark.parametrize("value", [None, float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("shown", [show.us, show.duration, show.percent, show.ratio, show.count])
def test_a_value_that_does_not_exist_is_not_a_number(shown, value):
    assert shown(value) == "n/a"


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (show.us(0.064), "0.064"), (show.us(12.896), "12.90"), (show.us(1_078_288.4), "1,078,288"), (show.duration(9.8), "9.8 us"),
        (show.duration(1_210_000), "1.21 s"), (show.duration(6e7), "60 s"), (show.duration(0.064), "64 ns"), (show.duration(999.4), "999 us"), (show.duration(999.6), "1 ms"),
        (show.duration(0), "0 us"), (show.duration(99.96), "100 us"), (show.duration(999_600), "1 s"), (show.duration(7.2e9), "7,200 s"), (show.percent(0.004), "0.4 %"), (show.percent(0.00001), "<0.1 %"),
        (show.ratio(4.2), "4.20x"), (show.count(1234567), "1,234,567"), (show.interval((12.8, 12.9)), "12.80-12.90"), (show.interval(None), "n/a"),
        (show.queue("cpu-bound", "PROVEN"), "cpu-bound P"), (show.queue("unknown", None), "n/a"), (show.plural(2, "launch"), "2 launches"),
    ],
)  # fmt: skip
def test_numbers_read_as_people_write_them(shown, expected):
    assert shown == expected


def test_the_numbers_of_a_finding_never_turn_to_powers_of_ten():
    assert (
        blocks.numbers(finding(numbers={"span_us": 1_078_288.5, "x": 0.25, "n": None})) == "span_us 1,078,288.5, x 0.25"
    )


@pytest.mark.parametrize("start", [*"=+-@\t\r\n", " =", "\t\t@", "\uff1d", "\xa0\uff0b", "\ufeff=", "\u200b ="])
def test_csv_text_is_no_formula_and_stands_on_one_line(start):
    text = render_csv(report(kernels=[kernel(f'{start}HYPERLINK("x"),"\n')]))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(text.splitlines()) == 2 and rows[0]["name"].startswith("'") and rows[0]["p50_us"] == "10.0"


def test_csv_numbers_below_zero_stay_numbers():
    assert next(csv.DictReader(io.StringIO(render_csv(report(kernels=[kernel("k", min_us=-1.5)])))))["min_us"] == "-1.5"


def test_importing_the_renderers_loads_neither_rich_nor_jinja2_nor_pandas():
    code = (
        "import sys; from traceanalyzer.render import checks, console, csv, formats, json_v1, markdown, screen, summary; "
        "from traceanalyzer.render.page import document; "
        "print([m for m in ('rich', 'jinja2', 'pandas', 'numpy') if m in sys.modules])"
    )
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


@pytest.mark.parametrize("render", [render_console, render_markdown, render_csv, render_json, render_html])
def test_the_same_report_gives_the_same_text(render):
    made = hostile("name", rows=3, kernels=5)
    assert render(made) == render(made)
