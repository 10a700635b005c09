"""Sidecars: what is read beside a trace, and what a damaged or hostile one can do (nothing)."""

import json
import re
from dataclasses import replace

import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.doctor.example import captured, host_range, loop
from traceanalyzer.render.console import render_console
from traceanalyzer.render.json_v1 import render_json
from traceanalyzer.render.markdown import render_markdown
from traceanalyzer.render.page.document import render_html
from traceanalyzer.render.summary import render_summary
from traceanalyzer.trace.sidecar import (
    MAX_BYTES,
    Correctness,
    DeviceFacts,
    ProtocolResult,
    decode_sidecar,
    encode_sidecar,
    sidecar_path,
)

EVIL = "<script>alert(1)</script> `x` | \x1b[31m\u202e @someone #1 --> \ud83d"


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "run.json"
    trace().loop(12, 40, 5, 10).write(path)
    return path


def beside(run, content):
    sidecar_path(run).write_bytes(content)
    return ta.analyze(run).data


@pytest.mark.parametrize("name", ["run.json", "run.json.gz", "run.gz", "run"])
def test_the_sidecar_has_the_name_of_its_trace(tmp_path, name):
    assert sidecar_path(tmp_path / name).name == "run.sidecar.json"


def test_a_sidecar_survives_writing_and_reading():
    before = captured(environment={"CUDA_LAUNCH_BLOCKING": "1"})
    assert decode_sidecar(encode_sidecar(before), "x") == (before, "")


def test_a_trace_without_a_sidecar_has_none(run):
    assert ta.analyze(run).data.capture is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "damaged"), (b"{", "damaged"), (b"[" * 100_000, "damaged"), (b"\xff\xfe{}", "damaged"), (b"{}", "damaged"),
        (b'{"schema": "traceanalyzer.sidecar/9"}', "traceanalyzer.sidecar/9"), (b'{"schema": 1}', "damaged"),
        (b'{"schema": "traceanalyzer.sidecar/1", "tool": 3}', "damaged"),
        (encode_sidecar(captured()).replace(b'"calls": 10', b'"calls": 1e999'), "damaged"),
        (encode_sidecar(captured()).replace(b'"slow_us": 0.0', b'"slow_us": 1e308'), "beyond"),
    ],
)  # fmt: skip
def test_a_damaged_sidecar_costs_a_note_and_never_the_report(run, content, says):
    data = beside(run, content)
    assert data.capture is None and data.verdict.status == "suspect"
    assert any(says in note for note in data.trace.notes)
    assert not data.trace.salvaged, "the trace itself is whole"


def test_a_huge_sidecar_is_not_read(run):
    with sidecar_path(run).open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert any("longer than" in note for note in ta.analyze(run).data.trace.notes)


def test_a_folder_in_the_sidecars_place_is_ignored(run):
    sidecar_path(run).mkdir()
    assert ta.analyze(run).data.capture is None


def test_a_hostile_sidecar_is_escaped_and_bounded_everywhere(run):
    evil = EVIL.replace("\ud83d", "")
    one = captured(environment={"XLA_FLAGS": evil}).operations[0]
    result = ProtocolResult(evil, evil, {evil: evil}, 1, 1.0, (1.0, 1.0), 0.0, [1.0])
    operation = replace(one, name=evil, protocols=[result] * 100, correctness=Correctness(False, evil * 100, evil))
    sidecar = replace(
        captured(environment={"XLA_FLAGS": evil}), device=DeviceFacts(evil, evil), operations=[operation] * 100, notes=[evil] * 500,
        versions={evil: evil},
    )  # fmt: skip
    data = beside(run, encode_sidecar(sidecar))
    assert len(data.capture.operations) == 100
    text, page, summary = render_console(data), render_markdown(data), render_summary(data)
    assert "\x1b" not in text + page + summary and "\u202e" not in text + page + summary
    assert len(page) <= 65_000 and len(page.splitlines()) <= 60 and len(summary) <= 16_000
    assert len(text.splitlines()) < 1200
    open_text = re.sub(r"(`+) .*? \1", "", page + summary)  # a code span shows what it holds
    assert "<script>" not in open_text + render_html(data)
    json.loads(render_json(data))


def test_measured_readings_belong_to_the_operation_of_their_name(run):
    data = beside(run, encode_sidecar(captured()))
    assert all(op.readings_measured == {} for op in data.ops)


def test_the_sidecar_of_another_trace_is_not_used(tmp_path):
    """A CPU capture's sidecar beside a GPU trace, one of other operations, one of another device."""
    on_cpu = replace(captured(), device=DeviceFacts("cpu", "cpu"))
    other_device = replace(captured(), device=DeviceFacts("cuda", "NVIDIA B200"))
    path = tmp_path / "run.json"
    named = trace().loop(12, 40, 5, 10)
    named.fields["deviceProperties"] = [{"id": 0, "name": "NVIDIA H100"}]
    for sidecar, says in ((on_cpu, "on the CPU"), (other_device, "another device")):
        named.write(path)
        data = beside(path, encode_sidecar(sidecar))
        assert data.capture is None and any(says in note for note in data.trace.notes)


def test_a_sidecar_of_other_operations_is_not_used(tmp_path):
    path = tmp_path / "run.json"
    events = [host_range("traceanalyzer.call:mine", 50.0 * i, 30) for i in range(12)] + list(loop(12, 50, 10))
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    data = beside(path, encode_sidecar(captured()))
    assert data.capture is None and any("none of its operations" in note for note in data.trace.notes)
    renamed = replace(captured().operations[0], name="mine")
    assert beside(path, encode_sidecar(replace(captured(), operations=[renamed]))).capture is not None
