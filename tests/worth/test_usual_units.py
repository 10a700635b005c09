"""Worth is said of the usual units of a run, of those that hold a kernel, and only of what a unit has."""

from __future__ import annotations

import json

import numpy as np
import pytest

import traceanalyzer as ta
from traceanalyzer.analysis.pipeline import analyse
from traceanalyzer.analysis.worth.worth import _usual
from traceanalyzer.doctor.example import host_range, kernel, launch, memcpy
from traceanalyzer.options import AnalysisOptions


def worth_of(tmp_path, events):
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"traceEvents": list(events)}), encoding="utf-8")
    return analyse(ta.read(path), AnalysisOptions()).ledgers[0].worth


@pytest.mark.parametrize(
    ("periods", "kept"),
    [
        ([10] * 8, (0, 8)),
        ([10, 10, 10, 500, 10, 10, 10, 10], (4, 8)),
        ([10, 10, 10, 500, 10, 10, 10], (4, 7)),
        ([10, 500, 10, 10, 500, 10, 10], None),
        ([10, 10, 10, 50] * 4, (0, 16)),
        ([29] * 2 + [10] * 6, (0, 8)),
    ],
)
def test_up_to_two_long_units_are_left_out(periods, kept):
    found = _usual(np.array(periods))
    assert (None if found is None else (found.start, found.stop)) == kept


def loop_with_a_pause(n, pause):
    """Calls of two launches 20 us apart, two short kernels each; before call 20 of ``n`` the host pauses."""
    events, at = [], 0.0
    for i in range(n):
        at += pause if i == 20 else 0
        events.append(host_range("call", at, 40))
        events += [
            launch(at + 1, 2 * i + 1),
            kernel(at + 6, 4, 2 * i + 1, "a"),
            launch(at + 21, 2 * i + 2),
            kernel(at + 26, 4, 2 * i + 2, "b"),
        ]
        at += 40
    return events


def test_a_single_pause_does_not_change_what_a_call_takes(tmp_path):
    for pause in (0, 50_000):
        found = worth_of(tmp_path, loop_with_a_pause(60, pause))
        assert found.now_ns == pytest.approx(40_000, rel=0.01)
        assert found.of("launches_free").period_ns == pytest.approx(found.now_ns / 2, rel=0.2)


def test_a_unit_of_one_launch_has_nothing_to_free_between_launches(tmp_path):
    found = worth_of(tmp_path, [e for i in range(40) for e in (launch(40 * i, i + 1), kernel(40 * i + 6, 10, i + 1))])
    free = found.of("launches_free")
    assert free is not None and free.factor is None and "one launch" in free.reason


def test_units_of_copies_alone_are_not_judged(tmp_path):
    found = worth_of(tmp_path, [e for i in range(40) for e in memcpy(40 * i, 40 * i + 6, 10, i + 1, 3)])
    assert found.changes == [] and "no kernel" in found.reason


def test_a_line_of_the_users_own_code_is_a_site(tmp_path):
    def frame(name, at, length):
        return {
            "ph": "X",
            "cat": "python_function",
            "name": name,
            "ts": at,
            "dur": length,
            "pid": 1000,
            "tid": 1,
            "args": {},
        }

    events = []
    for i in range(20):
        at = 100 * i
        events += [
            launch(at + 1, 2 * i + 1),
            kernel(at + 6, 10, 2 * i + 1, "a"),
            launch(at + 81, 2 * i + 2),
            kernel(at + 86, 10, 2 * i + 2, "b"),
        ]
        # between the two launches the host is in one function of the user's
        events.append(frame("/home/me/train.py(76): augment", at + 10, 70))
    pids = (
        {e["pid"] for e in events if e["cat"] == "cuda_runtime"},
        {e["tid"] for e in events if e["cat"] == "cuda_runtime"},
    )
    for e in events:
        if e["cat"] == "python_function":
            e["pid"], e["tid"] = next(iter(pids[0])), next(iter(pids[1]))
    found = worth_of(tmp_path, events)
    site = found.of("no_site:train.py:76")
    assert site is not None and site.period_ns == pytest.approx(found.now_ns - 70_000, rel=0.02)
