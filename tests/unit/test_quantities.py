"""Times, shares and numbers of options: one reader, and nothing gets through that no run can have."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import trace
from traceanalyzer.cli import cli
from traceanalyzer.errors import OptionError
from traceanalyzer.options import AnalysisOptions, Claim
from traceanalyzer.quantities import MOST_NS, QuantityError, duration_ns, number, percent

NO_NUMBERS = [
    "nan",
    "inf",
    "-inf",
    "-1",
    "1e306",
    "1e400",
    "",
    " ",
    "1_0",
    "0x10",
    "\u0661",
    "1" * 5000,
    "1e99999",
    "5 5",
    "--5",
]


def run(*args: str):
    return CliRunner().invoke(cli, list(args), prog_name="traceanalyze")


@pytest.mark.parametrize(
    ("text", "ns"),
    [("9.8us", 9800), ("40 ns", 40), ("1.5ms", 1.5e6), ("2s", 2e9), ("1e3us", 1e6), (".5us", 500), ("5.us", 5000), ("3\u00b5s", 3000), ("3\u03bcs", 3000), ("0us", 0)],
)  # fmt: skip
def test_a_time_with_its_unit(text, ns):
    assert duration_ns(text) == pytest.approx(ns)


def test_a_bare_number_has_the_unit_that_is_documented_or_none():
    assert duration_ns("40", "us") == 40_000 and duration_ns("40", "s") == 40e9
    with pytest.raises(QuantityError, match="unit"):
        duration_ns("40")


@pytest.mark.parametrize("text", [*NO_NUMBERS, "1e300s", "10us:nope", "us", "5 minutes", "5%"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(QuantityError):
        duration_ns(text, "us")


@pytest.mark.parametrize("text", [t for t in NO_NUMBERS if t != "1e306"])
def test_what_is_no_number_and_no_share_is_refused(text):
    for reader in (number, percent):
        with pytest.raises(QuantityError):
            reader(text)


def test_shares():
    assert (
        percent("5") == percent("5 %") == 5 and number("5%") == 0.05 and number("0.05") == 0.05 and number("1e9") == 1e9
    )


@given(st.text(max_size=20))
def test_any_text_is_a_time_within_bounds_or_refused(text):
    try:
        assert 0 <= duration_ns(text, "us") <= MOST_NS
    except QuantityError as error:
        assert "\n" not in str(error)


@pytest.fixture
def loop(tmp_path) -> str:
    return str(trace().loop(12, 40, 5, 10).write(tmp_path / "loop.json"))


@pytest.mark.parametrize("bad", ["nan", "inf", "-1", "1e306", "ten"])
@pytest.mark.parametrize(
    "words",
    [
        ["report", "TRACE", "--clear-us"], ["compare", "TRACE", "TRACE", "--clear-us"], ["compare", "TRACE", "TRACE", "--fail-on-regression"],
        ["ranks", "DIR", "--late-over"], ["predict", "--dispatch", "40", "--kernel", "10", "--sync"], ["predict", "--kernel", "10", "--dispatch"],
        ["predict", "--dispatch", "10", "--kernel"], ["capture", "softmax", "--budget"], ["capture", "softmax", "--after"], ["capture", "softmax", "--timeout"],
        ["bench", "softmax", "--limit"], ["report", "TRACE", "--claim"], ["check", "TRACE", "--claim"],
    ],
    ids="-".join,
)  # fmt: skip
def test_every_option_refuses_what_is_no_time_or_share(loop, bad, words):
    done = run(*(w.replace("TRACE", loop).replace("DIR", loop) for w in words), bad)
    assert done.exit_code == 2 and "Traceback" not in done.stderr and not done.stdout


@pytest.mark.parametrize("bad", ["nan", "inf", "-1", "x", "1e400"])
def test_thresholds_too(loop, bad):
    for name in ("starved_fraction", "long_pause_us"):
        done = run("report", loop, "--threshold", f"{name}={bad}")
        assert done.exit_code == 2 and "bad_threshold" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("text", "us"), [("40", 40), ("40us", 40), ("0.04ms", 40), ("40000 ns", 40)])
def test_predict_takes_units(text, us):
    done = run("predict", "--dispatch", text, "--kernel", "10us", "--sync", "6us", "--format", "json")
    assert json.loads(done.stdout)["dispatch_us"] == [us]


def test_units_in_thresholds_and_the_cache_clear(loop):
    a, b = (
        run("report", loop, "--clear-us", t, "--threshold", f"long_pause_us={t}", "--format", "json").stdout
        for t in ("90", "90us")
    )
    assert a == b and a


@pytest.mark.parametrize(
    "options", [{"clear_us": float("nan")}, {"clear_us": -1.0}, {"clear_us": 1e306}, {"claims": (Claim(float("nan")),)}]
)
def test_the_python_interface_refuses_them_too(options):
    with pytest.raises(OptionError):
        AnalysisOptions(**options)


def test_a_claim_of_an_operation_that_is_not_there_is_answered(loop):
    done = run("report", loop, "--claim", "10us:nope")
    assert "--claim 10us:nope: no operation has this name" in done.stderr and done.exit_code == 0
