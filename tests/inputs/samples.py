"""Where the shared samples of other profilers lie, and a file of events made in a test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
INPUTS = ROOT.parent / "shared" / "inputs"
needs_samples = pytest.mark.skipif(not INPUTS.exists(), reason="the shared samples are not here")


def write_events(path: Path, *events: dict[str, Any]) -> Path:
    path.write_text(json.dumps({"traceEvents": list(events)}))
    return path


def process(pid: Any, name: str, label: str | None = None) -> list[dict[str, Any]]:
    found = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}]
    return found + ([{"ph": "M", "name": "process_labels", "pid": pid, "args": {"labels": label}}] if label else [])


def lane(pid: Any, tid: Any, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": name}}


def row(pid: Any, tid: Any, name: str, ts: Any, dur: Any, cat: str | None = None, **args: Any) -> dict[str, Any]:
    found = {"ph": "X", "pid": pid, "tid": tid, "name": name, "ts": ts, "dur": dur, "args": args}
    return found | ({"cat": cat} if cat else {})


def arrow(ph: str, category: str, number: Any, pid: Any, tid: Any, ts: Any) -> dict[str, Any]:
    return {"ph": ph, "cat": category, "name": "dep", "id": number, "pid": pid, "tid": tid, "ts": ts}
