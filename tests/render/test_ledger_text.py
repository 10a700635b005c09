"""The time ledger as people see it: bars that add up, marks that mean one class, causes with cost, share and time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.conftest import shared_files
from tests.render.fakes import cause, ledger, make, report
from traceanalyzer.analysis.ledger import BUSY, LedgerClass
from traceanalyzer.analysis.recurrence import When
from traceanalyzer.analysis.worth.changes import CHANGES
from traceanalyzer.render import ledger as text
from traceanalyzer.render import worth
from traceanalyzer.render.console import render_console
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.screen import render_screen
from traceanalyzer.render.summary import render_summary
from traceanalyzer.report import model
from traceanalyzer.report.model import WorthRow

CASES = shared_files("verdicts/*.json.gz")[:12]


def test_every_class_has_a_name_and_a_mark_of_its_own():
    assert set(text.WORDS) == {c.label for c in LedgerClass} and set(text.BUSY) == {c.label for c in BUSY}
    marks = [mark for mark, _ in text.WORDS.values()]
    assert len(set(marks)) == len(marks) and text.OTHER not in marks and all(len(m) == 1 for m in marks)
    assert len({word for _, word in text.WORDS.values()}) == len(text.WORDS)


@given(
    st.dictionaries(st.sampled_from([c.label for c in LedgerClass]), st.floats(0.001, 1e9), min_size=1),
    st.integers(10, 120),
)
def test_a_bar_has_its_width_and_each_class_its_share_of_it(classes, width):
    row = ledger(classes=classes, span_us=sum(classes.values()))
    bar = text.bar(row, width)
    assert len(bar) == width
    for cls, us in classes.items():
        mark = text.WORDS[cls][0]
        if mark in bar:
            assert abs(bar.count(mark) - us / row.span_us * width) < 1


def test_the_screen_shows_bar_legend_and_causes():
    shown = render_screen(report(ledger=[ledger()]), width=80)
    assert "Where the time of device 0 went (1 ms, 50 % busy)" in shown
    assert "#" * 38 + "o" * 30 in shown and "o host operator 40 %" in shown
    assert "of the idle time: the host launched late 80 %" in shown
    row = next(line for line in shown.splitlines() if line.startswith("host operator"))
    assert row.split() == ["host", "operator", "aten::add", "400", "us", "40", "%", "every", "step", "1.234", "ms"]


def test_several_devices_share_a_legend_and_the_rest_is_counted():
    shown = render_screen(report(ledger=[ledger(device=n, span_us=1000.0) for n in range(9)]), width=80)
    assert "Where the time of 9 devices went" in shown and "5 more devices" in shown
    assert shown.count("50 % busy") == text.BARS and shown.count("o host operator") == 1


def test_the_legend_of_several_devices_has_the_order_of_their_bars():
    shown = render_screen(report(ledger=[ledger(device=n, span_us=1000.0) for n in range(3)]), width=80)
    line = next(line for line in shown.splitlines() if "# compute" in line)
    assert line.split() == ["#", "compute,", "o", "host", "operator,", "l", "launch", "latency,", ".", "other"]


def test_compute_is_no_cause_and_what_is_small_takes_no_line():
    row = ledger(items=[cause("compute", us=500.0, share=0.5), cause("synchronise", us=4.0, share=0.004)])
    shown = render_screen(report(ledger=[row]))
    assert "Largest causes" not in shown and "Where the time" in shown


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"when": "kth_step", "every": 4}, "every 4th step"), ({"when": "kth_step", "every": 2}, "every 2nd step"),
        ({"when": "kth_step", "every": 11}, "every 11th step"), ({"when": "kth_step", "every": 23}, "every 23rd step"),
        ({"when": "periodic", "period_us": 177_000.0}, "each 177 ms"), ({"when": "start"}, "at the start"),
    ],
)  # fmt: skip
def test_when_in_words(given, expected):
    assert text.when(cause(**given)) == expected


def test_every_answer_has_words():
    for answer in When:
        assert "_" not in text.when(cause(when=str(answer), every=3, period_us=5.0))


def test_markdown_has_the_causes_as_a_table_and_the_summary_one_line():
    made = report(ledger=[ledger()])
    assert "| `aten::add` | host operator | 400 us | 40 % | every step |" in render_markdown(made)
    line = next(x for x in render_summary(made).splitlines() if x.startswith("Time of"))
    assert line.endswith("largest cause: host operator aten::add, 400 us (40 %), every step")
    # a point in the trace differs in every run
    assert "1.234 ms" not in render_summary(made)


def test_where_clocks_disagree_no_cause_is_shown():
    made = report(ledger=[ledger()], clock=make(model.Clock, state="disagree"))
    for shown in (
        render_screen(made),
        render_console(made, sections=("ledger",)),
        render_markdown(made),
        render_summary(made),
    ):
        assert "clocks disagree: why the device idled is not known" in shown.replace("\n", " ").replace("   ", " ")
        assert "aten::add" not in shown and "host operator" not in shown and "launched late" not in shown
    assert "Where the time of device 0 went (1 ms, 50 % busy)" in render_screen(
        made
    ) and ". idle 50 %" in render_screen(made)


def test_host_time_outside_of_the_span_is_said_where_it_is_much():
    assert "not counted: the host ran for 300 us before the first" in render_screen(
        report(ledger=[ledger(before_first_us=300.0)])
    )
    assert "not counted" not in render_screen(report(ledger=[ledger(before_first_us=30.0, after_last_us=None)]))


@pytest.mark.parametrize("path", CASES, ids=[p.name for p in CASES])
def test_causes_of_real_traces_keep_their_cost(path):
    data = ta.analyze(path).data
    for row in text.spans(data):
        assert sum(row.classes.values()) == pytest.approx(row.span_us, abs=0.01)
        for item in row.items:
            assert item.when in set(When) and (item.when != "kth_step") == (item.every < 2)


def change(name: str, then: float, now: float = 1000.0, behind: str | None = None) -> WorthRow:
    return WorthRow(name, then, now, now / then, behind)


def test_the_screen_says_what_a_change_is_worth_and_what_a_faster_kernel_is_not():
    row = ledger(
        worth=[
            change("launches_free", 600.0), change("no_synchronise", 995.0, behind="no_copy_calls"), change("no_data_loading", 500.0),
            change("largest_kernel_halved", 999.0), change("everything_free", 400.0), WorthRow("no_compile", reason="no compiler is at work"),
        ]
    )  # fmt: skip
    said = " ".join(render_screen(report(ledger=[row])).split())
    assert (
        "worth, of 1 ms per call: no data loading 500 us (2.00x), launches free 600 us (1.67x), largest kernel 2x faster 999 us (1.00x), "
        "no host time 400 us (2.50x)"
    ) in said.replace(" all host", " all host")
    assert "no synchronise" not in said
    whole = " ".join(render_console(report(ledger=[row]), sections=("ledger",)).split())
    assert "1.01x no waiting copies" in whole and "not judged: no compilation: no compiler is at work" in whole
    assert "no data loading would make 1 ms per call 500 us (2.00x)" in render_summary(report(ledger=[row]))


def test_a_floor_that_is_no_lower_takes_no_words_and_a_common_reason_is_given_once():
    row = ledger(
        worth=[change("launches_free", 400.0), change("largest_kernel_halved", 999.0), change("everything_free", 400.0)]
    )
    assert "no host time" not in render_screen(report(ledger=[row]))
    silent = ledger(worth=[WorthRow(c, reason="a third of the rows have no launch") for c in CHANGES])
    assert render_screen(report(ledger=[silent])).count("a third of the rows have no launch") == 1
    assert "worth" not in render_screen(
        report(ledger=[ledger(worth=[WorthRow("no_compile", reason="a"), WorthRow("no_allocation", reason="b")])])
    )


def test_every_change_has_words():
    assert set(worth.WORDS) == set(CHANGES)
    assert worth.word("no_site:aten::item") == "without aten::item"
