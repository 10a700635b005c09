"""Every command on files of other profilers."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from tests.inputs.nsys_builder import PROCESS, NsysBuilder
from tests.inputs.samples import INPUTS, needs_samples
from traceanalyzer.cli import cli

SAMPLES = (
    sorted(p for folder in ("nsys", "jax", "rocm", "ascend") for p in (INPUTS / folder).glob("*"))
    if INPUTS.exists()
    else []
)
CHROME = {"a10g.trace.json.gz", "matmul_rpd.json", "trace_view.json.gz"}


def invoke(*arguments: object) -> str:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "internal_error" not in result.output
    return result.output


@needs_samples
@pytest.mark.parametrize("path", SAMPLES, ids=[p.name for p in SAMPLES])
def test_report_page_and_json_of_every_sample(path):
    assert path.name in invoke("report", path)
    assert "<html" in invoke("report", path, "--format", "html")
    found = json.loads(invoke("report", path, "--format", "json"))
    text = json.dumps(found)
    assert "NaN" not in text and "Infinity" not in text
    assert found["trace"]["flavour"] != "kineto"
    # a remedy names the profiler that made the file
    if found["trace"]["flavour"] != "ascend":
        assert "ProfilerActivity" not in text and "schedule(wait" not in text


@needs_samples
@pytest.mark.parametrize("path", SAMPLES, ids=[p.name for p in SAMPLES])
def test_annotate_copies_chrome_json_and_refuses_the_rest(path, tmp_path):
    copy = tmp_path / "copy.json"
    said = invoke("annotate", path, "-o", copy)
    if path.name in CHROME:
        assert copy.exists() and json.loads(copy.read_text())
    else:
        assert not copy.exists() and "Chrome JSON alone" in said and said.count("\n") == 1


@needs_samples
def test_flavours_of_one_run_are_compared():
    said = invoke("compare", INPUTS / "rocm" / "matmul.rpd", INPUTS / "rocm" / "matmul_rpd.json")
    assert "100 % of base's" in said and "another configuration" not in said


@needs_samples
def test_ranks_reads_a_folder_of_databases(tmp_path):
    for rank in (0, 1):
        (tmp_path / f"rank{rank}.sqlite").symlink_to(INPUTS / "nsys" / "torch_attention_2026.sqlite")
    found = json.loads(invoke("ranks", tmp_path, "--no-hta", "--format", "json"))
    assert [row["rank"] for row in found["ranks"]] == [0, 1]


@needs_samples
def test_absence_is_proven_by_nobody_who_did_not_look():
    found = json.loads(invoke("report", INPUTS / "rocm" / "rocprofv3_kernels_only.json.gz", "--format", "json"))
    silent = {a["rule"] for a in found["abstentions"]}
    assert {"TA106", "TA107", "TA301", "TA304", "TA305", "TA401", "TA402"} <= silent
    assert all(row["self_p50_us"] is not None for row in found["kernels"] if "self_p50_us" in row)


def test_a_run_of_whole_graphs_has_no_kernels_and_says_how_to_see_them(tmp_path):
    built = NsysBuilder()
    for i in range(4):
        built.call("cudaGraphLaunch_v10000", 1000 * i, 1000 * i + 5, i + 1)
        built.add(
            "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", start=1000 * i + 10, end=1000 * i + 900, deviceId=0, contextId=1, streamId=7,
            correlationId=i + 1, globalPid=PROCESS << 24, graphId=4,
        )  # fmt: skip
    path = built.write(tmp_path / "t.sqlite")
    found = json.loads(invoke("report", path, "--format", "json"))
    assert found["trace"]["kernels"] == 0 and found["trace"]["device_activities"] == 4 and not found["kernels"]
    assert any("--cuda-graph-trace=node" in note for note in found["trace"]["notes"])
    assert "<html" in invoke("report", path, "--format", "html")


def test_streams_of_two_contexts_are_told_apart_in_the_report(tmp_path):
    built = NsysBuilder()
    for i in range(8):
        built.call("cudaLaunchKernel", 1000 * i, 1000 * i + 5, i + 1)
        built.kernel("k", 1000 * i + 10, 1000 * i + 900, i + 1, contextId=1 + i % 2)
    found = json.loads(invoke("report", built.write(tmp_path / "t.sqlite"), "--format", "json"))
    assert [(s["stream"], s["owner"]) for s in found["streams"]] == [(7, "context 1"), (7, "context 2")]
