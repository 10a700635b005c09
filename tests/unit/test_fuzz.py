"""Sixty mutated traces through every renderer; benchmarks/fuzz.py does thousands. And the checks themselves can fail."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
import fuzz  # noqa: E402

SEEDS = [
    ROOT / "samples" / "cpu_bound_loop.json",
    ROOT / "samples" / "graph_replay.json",
    ROOT / "samples" / "sync_in_loop.json",
]


def test_mutated_traces_show_no_fault():
    assert dict(fuzz.run(SEEDS, 60, 7, 20.0, None)) == {}


def test_the_same_seed_makes_the_same_input_and_another_seed_another():
    seed = fuzz.Seed.of(SEEDS[0])
    first, again, other = (seed.mutated(random.Random(n)) for n in ("a", "a", "b"))
    assert first == again != other


@pytest.mark.parametrize(
    ("text", "said"),
    [('{"p50_us": -1}', "negative time: .p50_us"), ('{"idle_share": 1.5}', "share out of 0 to 1"), ('{"x": NaN}', "NaN in JSON"), ('{"skew_us": -1, "busy": 1.0}', "")],
)  # fmt: skip
def test_a_wrong_number_in_json_is_found(text, said):
    assert said in " ".join(fuzz._in_json(text)) and bool(said) == bool(fuzz._in_json(text))


@pytest.mark.parametrize(
    ("line", "wrong"),
    [("busy 225 % of it", True), ("takes -3.2 us", True), ("100 % of 3 us, +225 %", False), ("3-4 us", False)],
)
def test_a_wrong_number_in_text_is_found(line, wrong):
    assert bool(fuzz._in_text("text", line)) is wrong


def test_a_hang_and_a_crash_are_found(tmp_path, monkeypatch):
    path = tmp_path / "t.json"
    path.write_text(json.dumps(fuzz.Seed.of(SEEDS[0]).content))

    def forever(*_):
        while True:
            pass

    monkeypatch.setattr(fuzz, "_faults", forever)
    assert fuzz.faults(path, limit=0.05) == ["hang: over 0.05 s"]
    monkeypatch.setattr(fuzz, "_faults", lambda *_: 1 / 0)
    assert fuzz.faults(path)[0].startswith("crash: ZeroDivisionError")
