"""The ledger against an independent script's classes, drained time and largest items on 65 public traces."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from traceanalyzer.analysis.ledger import DeviceLedger, LedgerMaker, items
from traceanalyzer.trace.reader import read

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
TRUTH = SHARED / "verdicts" / "ledger_truth.json"
WITHIN_US = 0.002


def places() -> dict[str, Path]:
    if not TRUTH.exists():
        return {}
    folders = [SHARED / "traces", SHARED / "verdicts", SHARED / "verdicts" / "real"]
    return {name: next(f / name for f in folders if (f / name).exists()) for name in json.loads(TRUTH.read_text())}


def span_ledgers(path: Path) -> dict[str, DeviceLedger]:
    trace = read(path)
    maker = LedgerMaker(trace)
    device = np.array([lane.device for lane in trace.lanes])[trace.activities.lane]
    return {str(d.number): maker.span(i, np.flatnonzero(device == i)) for i, d in enumerate(trace.devices)}


@pytest.mark.skipif(not TRUTH.exists(), reason="the shared traces are not beside this checkout")
@pytest.mark.parametrize("name", places())
def test_classes_drained_time_and_largest_items_are_those_of_the_truth(name):
    found = span_ledgers(places()[name])
    for want in json.loads(TRUTH.read_text())[name]:
        ledger = found[want["device"]]
        assert ledger.span_ns / 1000 == pytest.approx(want["span_us"], abs=WITHIN_US)
        assert ledger.limit_ns / 1000 == pytest.approx(want["launch_latency_limit_us"], abs=WITHIN_US)
        classes = {c.label: ns / 1000 for c, ns in ledger.classes_ns().items()}
        assert classes == pytest.approx(want["classes_us"], abs=WITHIN_US)
        drained = {d.label: ns / 1000 for d, ns in ledger.drained_ns().items()}
        assert drained == pytest.approx(want["drained_us"], abs=WITHIN_US)
        mine = [(i.cls.label, i.name, i.ns / 1000) for i in items(ledger)]
        for item in want["largest"]:
            same = [us for cls, label, us in mine if (cls, label) == (item["cls"], item["name"])]
            assert any(us == pytest.approx(item["us"], abs=WITHIN_US) for us in same), item


def test_the_truth_covers_what_the_ledger_must_tell_apart():
    if not TRUTH.exists():
        pytest.skip("the shared traces are not beside this checkout")
    classes = {c for found in json.loads(TRUTH.read_text()).values() for d in found for c in d["classes_us"]}
    assert len(classes) >= 20
