"""Verdicts on labelled traces: the headline says what is right, and no rule warns that must not."""

from __future__ import annotations

import json
import re

import pytest

import traceanalyzer as ta
from tests.conftest import shared_files

LABELS = [
    pytest.param(path.parent, label, id=label["id"])
    for path in (*shared_files("verdicts/labels.json"), *shared_files("verdicts/real/labels.json"))
    for label in json.loads(path.read_text(encoding="utf-8"))
    if len(label["files"]) == 1 and not label.get("args")
]
pytestmark = pytest.mark.skipif(not LABELS, reason="the labelled traces are not on this machine")


@pytest.mark.parametrize(("folder", "label"), LABELS)
def test_the_verdict_is_what_the_label_says(folder, label):
    report = ta.analyze(folder / label["files"][0]).to_dict()
    verdict, findings = report["verdict"], report["findings"]
    assert verdict["status"] in label.get("status", [verdict["status"]]), verdict["headline"]
    text = "\n".join(
        [
            verdict["headline"],
            *(f["message"] + json.dumps(f["numbers"]) for f in findings),
            json.dumps(report["ledger"]),
        ]
    )
    for key, said, wanted in (
        ("headline_has", verdict["headline"], True), ("headline_not", verdict["headline"], False), ("text_has", text, True), ("text_not", text, False),
    ):  # fmt: skip
        if key in label:
            assert bool(re.search(label[key], said, re.I)) is wanted, f"{key} {label[key]!r}: {verdict['headline']}"
    warned = {f["rule"] for f in findings if f["severity"] != "note"}
    assert not warned & set(label.get("no_warning", ())) and warned >= set(label.get("warning", ()))
    assert not {f["rule"] for f in findings} & set(label.get("no_finding", ()))
    assert not ok_without_reason(report)


WORKS = ("compute", "communication", "copy", "fill")


def ok_without_reason(report):
    """Whether a report says OK of a device that is busy for less than 90 % of its span without an operation that is sound."""
    spans = [entry for entry in report["ledger"] if entry["window"] == "span"]
    busy = [sum(us for cls, us in entry["classes"].items() if cls in WORKS) for entry in spans]
    working = [us / entry["span_us"] for us, entry in zip(busy, spans, strict=True) if 5 * us >= sum(busy)]
    ok = report["verdict"]["status"] == "ok" and working
    return ok and min(working) < 0.9 and "is sound" not in report["verdict"]["headline"]
