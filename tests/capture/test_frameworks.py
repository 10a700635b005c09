"""Barriers and adapters on real frameworks: PyTorch and JAX on the CPU; TensorFlow where it is installed."""

import importlib.util
import json
import subprocess
import sys

import pytest

from traceanalyzer.capture import capture, timed
from traceanalyzer.capture.device import Capability
from traceanalyzer.capture.frameworks import framework_of, open_device
from traceanalyzer.errors import CaptureUnavailable, OptionError

NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
NEEDS_JAX = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="jax is not installed")
NEEDS_TF = pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="tensorflow is not installed")
WALL = {"wall_nosync", "wall_sync_each", "wall_sync_once"}


def test_timed_takes_plain_python_for_done_when_it_returns():
    found = timed(sorted, [3, 1, 2])
    assert found.result == [1, 2, 3] and found.framework == "" and found.elapsed_ns > 0
    assert found.elapsed_us == found.elapsed_ns / 1000


def test_timed_lets_an_exception_through():
    with pytest.raises(ZeroDivisionError):
        timed(lambda: 1 // 0)


@NEEDS_TORCH
def test_timed_finds_torch_from_the_outputs():
    import torch

    found = timed(lambda: {"out": [torch.ones(3)]})
    assert found.framework == "pytorch" and "torch on the CPU" in found.barrier


@NEEDS_JAX
def test_timed_waits_for_the_outputs_of_jax(monkeypatch):
    import jax
    import jax.numpy as jnp

    waited = []
    real = jax.block_until_ready
    monkeypatch.setattr(jax, "block_until_ready", lambda x: waited.append(x) or real(x))
    found = timed(jax.jit(lambda a: (a @ a, None)), jnp.ones((64, 64)))
    assert found.framework == "jax" and any(len(x) == 1 for x in waited)


@NEEDS_JAX
def test_the_wait_for_jax_is_inside_the_time():
    """Dispatch of a large product returns at once; the time must hold the product itself."""
    import jax
    import jax.numpy as jnp

    fn, x = jax.jit(lambda a: a @ a @ a @ a), jnp.ones((1500, 1500))
    timed(fn, x)
    start = timed(fn, x)
    assert start.elapsed_ns > 1_000_000


@NEEDS_TF
def test_timed_waits_for_tensorflows_devices():
    import tensorflow as tf

    found = timed(lambda: tf.ones((8, 8)) @ tf.ones((8, 8)))
    assert found.framework == "tensorflow" and "sync_devices" in found.barrier


def test_the_framework_of_a_tree_is_found_without_importing_any():
    code = (
        "import sys\nfrom traceanalyzer.capture.frameworks import framework_of\n"
        "assert framework_of([1, {'a': (2.0, None)}]) == ''\nassert not {'torch', 'jax', 'tensorflow'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_tree_that_holds_itself_ends():
    loop = []
    loop.append(loop)
    assert framework_of(loop) == ""


@NEEDS_TORCH
def test_the_cpu_says_why_it_has_no_events():
    device = open_device("pytorch", "cpu")
    assert device.facts().kind == "cpu" and not device.lacks(Capability.PROFILER)
    assert all(device.lacks(c) for c in Capability if c is not Capability.PROFILER)


@NEEDS_TORCH
def test_a_device_that_is_not_there_is_one_line():
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has one")
    with pytest.raises(CaptureUnavailable) as caught:
        open_device("pytorch", "cuda")
    assert caught.value.exit_code == 4 and "--device cpu" in caught.value.one_line()


def test_an_unknown_framework_is_refused():
    with pytest.raises(OptionError, match="numpy"):
        open_device("numpy")


def labelled(folder):
    return json.loads((folder / "trace.sidecar.json").read_text(encoding="utf-8"))


@NEEDS_TORCH
def test_a_real_torch_workload_is_captured_on_the_cpu_and_labelled_so(tmp_path):
    import torch

    x = torch.randn(128, 128)
    result = capture(
        lambda a: (a @ a).softmax(-1), x, out=tmp_path, iters=20, reference=lambda a: (a @ a).softmax(-1), name="step_2"
    )
    found = {p.protocol: p for p in result.operation.protocols}
    assert {k for k, p in found.items() if p.p50_us is not None} == WALL
    assert all(p.reason for k, p in found.items() if k not in WALL)
    assert result.operation.correctness.passed is True and result.operation.inputs == {"arg 0": "float32[128, 128]"}
    assert result.operation.inflation.profiled_us > 0
    report = result.report().data
    assert report.verdict.status == "cannot-judge" and "ran on the CPU" in report.verdict.headline
    written = labelled(tmp_path)
    assert written["device"]["kind"] == "cpu" and written["host"] == {} and written["trace"] == "trace.json.gz"
    assert written["versions"]["torch"] == torch.__version__
    assert "Measured: step_2" in str(result)


@NEEDS_TORCH
def test_neither_sidecar_nor_trace_names_the_host_the_user_or_a_folder(tmp_path):
    import getpass
    import gzip
    import platform

    import torch

    capture(torch.nn.functional.relu, torch.ones(8), out=tmp_path / "here", iters=5)
    text = (tmp_path / "here" / "trace.sidecar.json").read_text(encoding="utf-8")
    with gzip.open(tmp_path / "here" / "trace.json.gz", "rt", encoding="utf-8") as file:
        text += file.read()
    assert str(tmp_path) not in text and "/tmp/" not in text
    assert f'"{platform.node()}' not in text and f"/{getpass.getuser()}/" not in text
    assert '"traceName": "trace.json.gz"' in text


@NEEDS_JAX
def test_a_real_jax_workload_is_captured_on_the_cpu(tmp_path):
    import jax
    import jax.numpy as jnp
    import numpy as np

    x = jnp.ones((64, 64))
    result = capture(
        jax.jit(lambda a: a @ a), x, out=tmp_path, iters=10, reference=lambda a: np.asarray(a) @ np.asarray(a)
    )
    assert result.sidecar.framework == "jax" and result.sidecar.device.kind == "cpu"
    assert {p.protocol for p in result.operation.protocols if p.p50_us is not None} == WALL
    assert result.operation.correctness.passed is True
    data = result.report().data
    assert data.verdict.status == "cannot-judge"
    said = " ".join(f.message for f in data.findings)
    # JAX works behind the call on a CPU too: wall_nosync reads its dispatch, and no sentence may deny that
    assert "when it returns" not in said and "no part of the call" not in said


@NEEDS_JAX
def test_work_behind_the_call_of_jax_on_a_cpu_is_not_taken_for_load_of_the_machine(tmp_path):
    import jax
    import jax.numpy as jnp

    work, x = jax.jit(lambda a: a @ a @ a), jnp.ones((700, 700))
    result = capture(lambda: work(x), out=tmp_path, iters=10, name="op")
    readings = {p.protocol: p.p50_us for p in result.operation.protocols}
    assert readings["wall_sync_each"] > 2 * readings["wall_nosync"]  # the premise: it returns before it is done
    assert [f.code for f in result.report().data.findings if f.code == "TA711"] == []
