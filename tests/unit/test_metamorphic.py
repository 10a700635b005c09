"""The same rows written another way are the same report: in any order, shifted in time, as begin and end events."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import traceanalyzer as ta
from tests.conftest import SHARED, shared_files
from traceanalyzer.trace.kineto.decimal_times import to_ns

CASES = ("sync_in_loop", "cpu_bound_loop", "two_streams")


def events_of(text: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    document = json.loads(text, parse_float=str)
    return (document, document["traceEvents"]) if isinstance(document, dict) else ({}, document)


def example(seed: int) -> list[dict[str, Any]]:
    """Return rows of two streams, two threads and whole microseconds, many of which begin together."""
    rng = random.Random(seed)
    events: list[dict[str, Any]] = []
    at = 1000
    for i in range(1, 41):
        at += rng.choice((10, 20, 40))
        tid = 1 + i % 2
        where = {"pid": 50, "tid": tid}
        events.append({"ph": "X", "cat": "user_annotation", "name": "step", **where, "ts": at, "dur": 9})
        events.append({"ph": "X", "cat": "cpu_op", "name": f"aten::op{i % 3}", **where, "ts": at, "dur": 8})
        args = {"correlation": i, "External id": i}
        events.append(
            {
                "ph": "X",
                "cat": "cuda_runtime",
                "name": "cudaLaunchKernel",
                **where,
                "ts": at + 1,
                "dur": 4,
                "args": args,
            }
        )
        stream = 7 + tid
        events.append({"ph": "X", "cat": "kernel", "name": f"k{i % 3}", "pid": 0, "tid": stream, "ts": at + 6, "dur": rng.choice((3, 5)),
                       "args": {"device": 0, "stream": stream, "correlation": i, "grid": [1 + i % 2, 1, 1], "block": [32, 1, 1]}})  # fmt: skip
    for at, length in ((1000, 30), (1040, 3), (1100, 3), (1060, 3), (1040, 3)):
        events.append({"ph": "X", "cat": "overhead", "name": f"Buffer Flush {length}", "pid": -1, "tid": 0, "ts": at, "dur": length})  # fmt: skip
    return events


def report(write, events: list[dict[str, Any]], head: dict[str, Any] | None = None) -> dict[str, Any]:
    text = json.dumps((head or {}) | {"traceEvents": events})
    found = ta.analyze(write(text)).to_dict()
    found["trace"].pop("events")
    found["trace"].pop("skipped", None)
    return found


def as_halves(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for event in events:
        if event.get("ph") != "X" or not event.get("cat") or event.get("dur") is None:
            made.append(event)
            continue
        end = to_ns(str(event["ts"]).encode()) + to_ns(str(event["dur"]).encode())
        begin = {k: v for k, v in event.items() if k != "dur"} | {"ph": "B"}
        whole = all("." not in str(event[k]) for k in ("ts", "dur"))
        made += [begin, begin | {"ph": "E", "ts": end // 1000 if whole else f"{end // 1000}.{end % 1000:03d}"}]
    return made


def sources() -> list[Any]:
    real = [p for p in shared_files("traces/*.json.gz") if p.stat().st_size < 60_000]
    return [*range(3), *real[:4]]


def rows_of(source: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    if isinstance(source, int):
        return {}, example(source)
    import gzip

    head, events = events_of(gzip.decompress(source.read_bytes()))
    return {k: v for k, v in head.items() if k == "deviceProperties"}, events


@pytest.mark.parametrize("source", sources(), ids=lambda s: str(getattr(s, "name", s)))
@pytest.mark.parametrize("seed", [1, 2])
def test_events_in_any_order_are_the_same_report(write, source, seed):
    head, events = rows_of(source)
    expected = report(write, events, head)
    shuffled = random.Random(seed).sample(events, len(events))
    assert report(write, shuffled, head) == expected
    by_time = sorted(events, key=lambda e: (float(e.get("ts", 0)), json.dumps(e)))
    assert report(write, by_time, head) == expected


@pytest.mark.parametrize("source", sources(), ids=lambda s: str(getattr(s, "name", s)))
def test_rows_as_begin_and_end_events_are_the_same_report(write, source):
    head, events = rows_of(source)
    expected = report(write, events, head)
    halves = as_halves(events)
    assert report(write, halves, head) == expected
    assert report(write, random.Random(3).sample(halves, len(halves)), head) == expected


@pytest.mark.parametrize("seed", range(3))
def test_later_by_a_day_is_the_same_report(write, seed):
    events = example(seed)
    shifted = [e | {"ts": e["ts"] + 86_400_000_000} for e in events]
    expected, found = report(write, events), report(write, shifted)
    assert found["trace"].pop("start_ns") - expected["trace"].pop("start_ns") == 86_400_000_000_000
    assert found == expected


def test_a_launch_is_linked_within_its_process_only(write):
    path = SHARED / "faults" / "merged_ranks_partial.json"
    if not path.is_file():
        pytest.skip("the shared folder is not here")
    found = ta.analyze(path).to_dict()
    assert found["coverage"]["unlinked"] == 10 and found["coverage"]["linked"] == 30 and len(found["devices"]) == 2


def test_rows_that_are_there_twice_count_once(write):
    events = example(0)
    expected = report(write, events)
    doubled = report(
        write, [e for event in events for e in (event, event) if event["cat"] != "cpu_op" or e is event][:]
    )
    assert doubled["trace"]["kernels"] == expected["trace"]["kernels"] == 40
    assert doubled["kernels"] == expected["kernels"] and doubled["devices"] == expected["devices"]
    assert any(reason.endswith(":twice") and count == 40 for reason, count in doubled["trace"]["repaired"].items())
