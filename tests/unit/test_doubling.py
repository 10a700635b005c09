"""Twice the input takes about twice the time, whatever is in it: damage, many lanes, names, ranges, processes."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import traceanalyzer as ta
from traceanalyzer.errors import TraceFormatError
from traceanalyzer.options import AnalysisOptions, ReadLimits

MOST = 3.2
"""Largest ratio of times for twice the input; a square gives four."""


def call(i: int, **other: Any) -> dict[str, Any]:
    args = {"correlation": i + 1}
    where = {"pid": 100, "tid": 1, "ts": 1000 + 20 * i, "dur": 2}
    return {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", **where, "args": args} | other


def kernel(i: int, stream: int = 7, device: int = 0, **other: Any) -> dict[str, Any]:
    args = {"device": device, "stream": stream, "correlation": i + 1}
    where = {"pid": device, "tid": stream, "ts": 1005 + 20 * i, "dur": 9}
    return {"ph": "X", "cat": "kernel", "name": "k", **where, "args": args} | other


def span(i: int, name: str, **other: Any) -> dict[str, Any]:
    where = {"pid": 100, "tid": 1, "ts": 999 + 20 * i, "dur": 18}
    return {"ph": "X", "cat": "user_annotation", "name": name, **where} | other


def events(of: Callable[[int], list[dict[str, Any]]]) -> Callable[[int], str]:
    return lambda n: json.dumps([e for i in range(n) for e in of(i)])


SOUND = json.dumps([e for i in range(20) for e in (call(i), kernel(i))])[:-1]


def damage(piece: str, end: str = "]}") -> Callable[[int], str]:
    return lambda n: '{"traceEvents":' + SOUND + "," + piece * n + end


KINDS: dict[str, tuple[int, Callable[[int], str]]] = {
    "empty lists": (10_000, damage("[],", "[]]}")),
    "bad objects": (8_000, damage('{"ph":x"X"},', "{}]}")),
    "unclosed objects": (8_000, damage(',{"name":{')),
    "event starts": (8_000, damage(',{"ph":')),
    "control bytes": (4_000, damage('{"ph":"X","name":"\x01"},', "{}]}")),
    "unclosed escaped quotes": (8_000, damage(',{"ph":"X","name":"\\"\\"\\"\\"')),
    "one string of escaped quotes": (200_000, damage('\\"', "")),
    "a footer of escaped quotes": (60_000, lambda n: '{"traceEvents":' + SOUND + '], "x": "' + '\\"' * n),
    "a header of escaped quotes": (60_000, lambda n: '{"x": "' + '\\"' * n + ', "traceEvents":' + SOUND + "]}"),
    "brackets": (200_000, damage("[", "")),
    "scalars": (40_000, damage("1,", "1]}")),
    "annotated calls": (1_500, events(lambda i: [span(i, "call"), call(i), kernel(i)])),
    "lanes": (1_500, events(lambda i: [call(i), kernel(i, stream=i)])),
    "threads": (1_500, events(lambda i: [call(i, tid=i), kernel(i)])),
    "devices": (700, events(lambda i: [call(i), kernel(i, device=i)])),
    "processes": (700, events(lambda i: [call(i, pid=i), kernel(i)])),
    "range names": (1_500, events(lambda i: [span(i, f"range number {i}"), call(i), kernel(i)])),
    "ranges in ranges": (2_000, events(lambda i: [span(0, "r", ts=i, dur=400_000 - 2 * i), call(i), kernel(i)])),
    "kernel names": (1_500, events(lambda i: [call(i), kernel(i, name=f"k<{i}, {'float, ' * 20}>")])),
    "one id": (4_000, events(lambda i: [call(0, ts=20 * i), kernel(0, ts=20 * i + 5)])),
    "one id in many processes": (2_000, events(lambda i: [call(0, pid=i, ts=20 * i), kernel(0, ts=20 * i + 5)])),
    "lane names": (1_500, events(lambda i: [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "/device:GPU:0"}},
        {"ph": "M", "name": "thread_name", "pid": 1, "tid": i, "args": {"name": f"lane {i}"}},
        {"ph": "X", "name": "k", "pid": 1, "tid": i, "ts": 10 * i, "dur": 5},
    ])),
}  # fmt: skip


def seconds(write: Any, text: str) -> float:
    path = write(text)
    begin = time.process_time()
    with suppress(TraceFormatError):  # a header that is nothing but damage is refused
        ta.analyze(path)
    return time.process_time() - begin


@pytest.mark.parametrize("kind", KINDS)
def test_twice_the_input_takes_about_twice_the_time(write, kind):
    size, make = KINDS[kind]
    small, large = make(size), make(2 * size)
    seconds(write, small)  # what is loaded and compiled once
    ratios = []
    for _ in range(4):  # other programs run on this machine, too
        ratios.append(max(seconds(write, large), 0.02) / max(seconds(write, small), 0.02))
        if ratios[-1] < MOST:
            return
    raise AssertionError(f"{kind}: {ratios}")


MOST_TIME = 15
"""Largest ratio of time to that of a sound trace of as many bytes: ten on an idle machine, where this one is not."""


@pytest.mark.parametrize("kind", KINDS)
def test_no_input_takes_much_longer_than_a_sound_one(write, kind):
    size, make = KINDS[kind]
    text = make(size)
    sound = sound_text(len(text))
    seconds(write, make(max(1, size // 40)))  # what is loaded and compiled once
    ratios = []
    for _ in range(4):  # other programs run on this machine, too
        ratios.append(seconds(write, text) / max(seconds(write, sound), 0.01))
        if ratios[-1] < MOST_TIME:
            return
    raise AssertionError(f"{kind}: {ratios}")


def peak_bytes(path: Any) -> int:
    """Return the most memory that a report takes; with small pieces, or the first of them would be all that counts."""
    options = AnalysisOptions(limits=ReadLimits(chunk_bytes=1 << 16, jobs=1))
    tracemalloc.start()
    with suppress(TraceFormatError):
        ta.analyze(path, options=options)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def sound_text(size: int) -> str:
    """Return a trace of about as many bytes in which nothing is wrong or odd."""
    return json.dumps([e for i in range(max(1, size // 290)) for e in (call(i), kernel(i))])


MOST_MEMORY = 4
"""Largest ratio of memory to that of a sound trace of as many bytes."""


@pytest.mark.parametrize("kind", KINDS)
def test_no_input_takes_four_times_the_memory_of_a_sound_one(write, kind):
    size, make = KINDS[kind]
    # no more than 256 devices are told apart: what they take does not grow with the file
    text = make(2 * size if kind in ("devices", "processes") else size // 12)
    path, sound = write(text), write(sound_text(len(text)), "sound.json")
    peak_bytes(write(make(max(1, size // 80)), "little.json"))  # what is loaded and compiled once
    assert peak_bytes(path) < MOST_MEMORY * peak_bytes(sound)


@pytest.mark.parametrize("place", ["name", "argument", "header", "footer"])
def test_a_long_string_takes_less_than_four_times_what_a_sound_trace_takes(write, place):
    size = 1_000_000
    long = "s" * size
    rows = [e for i in range(20) for e in (call(i), kernel(i, name=long if place == "name" and i == 3 else "k"))]
    if place == "argument":
        rows[5]["args"]["x"] = long
    document: dict[str, Any] = {"traceEvents": rows}
    if place in ("header", "footer"):
        document = {"x": long} | document if place == "header" else document | {"x": long}
    path, sound = write(document), write(sound_text(size), "sound.json")
    assert ta.analyze(path).to_dict()["trace"]["kernels"] == 20
    assert peak_bytes(path) < min(4 * peak_bytes(sound), 6 * size)
