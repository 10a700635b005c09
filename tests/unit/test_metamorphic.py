"""What must not change the report: the order of events, the origin of time, names, the unit of time, who launches."""

from __future__ import annotations

import copy
import json
import random

import pytest

import traceanalyzer as ta
from tests.builders import trace

PARTS = ("kernels", "copies", "ops", "steps", "devices", "streams", "ledger")
NAMES = (
    "name",
    "short_name",
    "how",
    "headline",
    "message",
    "before",
    "after",
    "within",
    "window",
    "cause_name",
    "thread",
)


def training(n=7):
    """Steps with a copy of the inputs, a forward, a backward on another thread, an optimizer and a synchronise."""
    built = trace()
    for i in range(n):
        at = 10_000 + 1000 * i + (130 if i == 3 else 0)
        built.range(f"ProfilerStep#{i}", at, 980 if i != 2 else 1110)
        built.memcpy(at + 20, at + 40, 30)
        for j in range(6):
            built.call(
                at + 60 + 40 * j, at + 70 + 40 * j, 12 + j % 3, name=f"forward_{j % 3}", grid=(64 * (1 + j % 2), 1, 1)
            )
        for j in range(6):
            built.launch(at + 320 + 40 * j, tid=77).kernel(at + 330 + 40 * j, 18 + j % 2, name=f"backward_{j % 2}")
        for j in range(3):
            built.call(at + 580 + 20 * j, at + 590 + 25 * j, 24, name="update")
        built.sync(at + 650, 60)
    return built.document()


def report(document, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    values = ta.analyze(path).to_dict()
    return {part: values[part] for part in PARTS}


def without(values, drop):
    if isinstance(values, dict):
        return {k: without(v, drop) for k, v in values.items() if k not in drop}
    if isinstance(values, list | tuple):
        return [without(v, drop) for v in values]
    return values


def timed(document):
    return [e for e in document["traceEvents"] if "ts" in e]


def same(a, b, drop=()):
    a, b = (json.loads(json.dumps(without(x, drop))) for x in (a, b))
    assert a == b


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_events_says_nothing(tmp_path, seed):
    document = training()
    before = report(document, tmp_path)
    random.Random(seed).shuffle(document["traceEvents"])
    same(before, report(document, tmp_path))


@pytest.mark.parametrize("by", [1, 10**9, -9_000])
def test_the_origin_of_time_says_nothing(tmp_path, by):
    document = training()
    before = report(document, tmp_path)
    for event in timed(document):
        event["ts"] = float(event["ts"]) + by
    same(before, report(document, tmp_path))


def test_names_of_kernels_say_nothing(tmp_path):
    document = training()
    before = report(document, tmp_path)
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event["name"] = "renamed_" + event["name"]
    same(before, report(document, tmp_path), drop=NAMES)


def test_twice_the_time_is_twice_every_time(tmp_path):
    document = training()
    before = report(document, tmp_path)
    for event in timed(document):
        event["ts"], event["dur"] = float(event["ts"]) * 2, float(event.get("dur", 0)) * 2
    after = report(document, tmp_path)
    for part, keys in (
        ("kernels", ("p50_us", "total_us", "exclusive_p50_us", "dispatch_p50_us", "event_reading_us")),
        ("ops", ("self_time_p50_us", "period_p50_us", "dispatch_p50_us", "span_p50_us", "busy_p50_us")),
        ("steps", ("p50_us", "max_us", "busy_p50_us")),
        ("devices", ("span_us", "busy_us")),
    ):
        for old, new in zip(before[part], after[part], strict=True):
            assert {k: old[k] and pytest.approx(2 * old[k]) for k in keys} == {k: new[k] for k in keys}, (
                part,
                old["name"],
            )


def test_who_launches_says_nothing(tmp_path):
    """All launches on the main thread, or every second one on another: calls, dispatch and readings are the same."""
    one, two = training(), training()
    launches = [[e for e in d["traceEvents"] if e.get("name") == "cudaLaunchKernel"] for d in (one, two)]
    main = launches[0][0]["tid"]
    for event in launches[0]:
        event["tid"] = main
    for i, event in enumerate(launches[1]):
        event["tid"] = (main, 78)[i % 2]
    first, second = report(one, tmp_path), report(two, tmp_path)
    same(first["ops"], second["ops"])
    same(first["steps"], second["steps"])
    assert [k["dispatch_p50_us"] for k in first["kernels"]] == [k["dispatch_p50_us"] for k in second["kernels"]]


def test_a_second_rank_in_the_file_changes_no_number_of_the_first(tmp_path):
    alone = training()
    events = copy.deepcopy(alone["traceEvents"])
    other = copy.deepcopy(alone["traceEvents"])
    for event in other:
        event["pid"] = event["pid"] + 100_000_000
        if "ts" in event:
            event["ts"] = float(event["ts"]) + 3
        if event.get("cat") == "kernel":
            event["dur"] = float(event["dur"]) * 1.5
    merged = {**alone, "traceEvents": events + other}
    before, after = report(alone, tmp_path), report(merged, tmp_path)
    for part, wanted in (
        ("kernels", "p50_us"),
        ("ops", "period_p50_us"),
        ("ops", "self_time_p50_us"),
        ("steps", "p50_us"),
    ):
        first = [row[wanted] for row in after[part] if row.get("rank") == 0]
        assert first == [row[wanted] for row in before[part]], part
    path = tmp_path / "merged.json"
    path.write_text(json.dumps(merged), encoding="utf-8")
    chosen = ta.analyze(path, rank=0).to_dict()
    same(before["kernels"], chosen["kernels"], drop=("owner", "rank"))
    same(before["ops"], chosen["ops"], drop=("owner", "rank", "launches_left_out"))
