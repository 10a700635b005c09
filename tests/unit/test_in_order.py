"""A row that outlasts its successors on an in-order stream is left out and counted; dependent launch is not."""

from __future__ import annotations

import json

import pytest

import traceanalyzer as ta
from tests.builders import trace

REASON = "kernel:outlasts"


def loop(n=40, overlap=0):
    built = trace()
    for i in range(n):
        built.call(1000 + 100 * i, 1010 + 100 * i - overlap, 50 + overlap)
    return built


def data_of(built, tmp_path):
    return ta.analyze(built.write(tmp_path / "t.json")).to_dict()


def times_in(values):
    if isinstance(values, dict):
        for key, value in values.items():
            if isinstance(value, int | float) and key.endswith(("_us", "_ns")) and key not in ("at_us", "over_p50_us"):
                yield key, value
            else:
                yield from times_in(value)
    elif isinstance(values, list):
        for value in values:
            yield from times_in(value)


@pytest.mark.parametrize("length", [10**6, 400])
def test_a_row_that_outlasts_its_successors_is_left_out(tmp_path, length):
    built = loop()
    row = next(e for e in built.events if e["cat"] == "kernel" and e["args"]["correlation"] == 110)
    good, row["dur"] = row["dur"], length
    data = data_of(built, tmp_path)
    assert data["trace"]["excluded"] == {REASON: 1} and data["trace"]["kernels"] == 39
    assert data["kernels"][0]["max_us"] == float(str(good))
    assert data["devices"][0]["span_us"] < 5000
    assert "TA104" in {f["rule"] for f in data["findings"]}
    assert not [t for t in times_in(data) if t[1] < 0]


def test_dependent_launch_stays(tmp_path):
    built = trace()
    for i in range(40):
        built.call(1000 + 100 * i, 1010 + 100 * i, 50, name="first").call(
            1005 + 100 * i, 1040 + 100 * i, 15, name="second"
        )
    data = data_of(built, tmp_path)
    assert data["trace"]["excluded"] == {} and data["trace"]["kernels"] == 80
    second = next(k for k in data["kernels"] if k["name"] == "second")
    assert (second["p50_us"], second["exclusive_p50_us"]) == (15, 0)
    assert (second["event_reading_us"], second["event_reading_absent"]) == (None, "overlaps-predecessor")


def test_branches_of_a_graph_share_a_stream(tmp_path):
    built = loop()
    built.launch(9000, api="cudaGraphLaunch").kernel(9010, 500, name="long")
    for i in range(4):
        built.kernel(9020 + 20 * i, 5, name="short")
    assert data_of(built, tmp_path)["trace"]["excluded"] == {}


def test_a_stream_that_keeps_no_order_says_nothing(tmp_path):
    built = loop()
    for i in range(0, 40, 4):
        built.call(1001 + 100 * i, 1012 + 100 * i, 250, name="beside")
    assert data_of(built, tmp_path)["trace"]["excluded"] == {}


def test_no_number_of_the_report_is_below_zero_where_rows_overlap(tmp_path):
    built = loop(overlap=70)
    data = data_of(built, tmp_path)
    assert not [t for t in times_in(json.loads(json.dumps(data))) if t[1] < 0]
