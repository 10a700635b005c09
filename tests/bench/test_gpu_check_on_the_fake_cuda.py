"""gpu-check through the real CUDA adapter and triton's real do_bench, on a torch.cuda that keeps a virtual clock."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

from tests.bench.fake_runner import Runner, Speed
from tests.bench.test_gpu_check import ALL_WELL, MUTATIONS, Clock, gpu_check
from tests.capture.fake_cuda import FakeCuda, install
from traceanalyzer.capture.api import run as capture_run
from traceanalyzer.capture.frameworks.pytorch import TorchCuda
from traceanalyzer.capture.session import Operation, Settings
from traceanalyzer.errors import CaptureUnavailable

STEP = next(s for s in gpu_check.STEPS if s.name == "empty")


class OnCuda(Runner):
    """Runs each job through the real adapter; the survey's answer is that of the simulated one."""

    def __init__(self, monkeypatch, dispatch_us, kernel_us, node_gap):
        super().__init__({"triton": Speed(dispatch_us, kernel_us)})
        self.monkeypatch, self.node_gap = monkeypatch, node_gap
        self.parts = [(int(dispatch_us * 1000), int(kernel_us * 1000))]

    def __call__(self, job, seconds):
        if job.survey:
            return super().__call__(job, seconds)
        with self.monkeypatch.context() as patch:
            cuda = install(patch, FakeCuda(node_gap=self.node_gap))
            operation = Operation("op", cuda.op(self.parts))
            try:
                settings = Settings(tuple(job.protocols), job.warm_up, job.iterations, job.budget_s)
                capture_run(TorchCuda(), operation, settings, Path(job.out))
            except CaptureUnavailable as error:
                return error
        return None


def faults(folder, monkeypatch, dispatch, kernel, gap=900):
    runner = OnCuda(monkeypatch, dispatch, kernel, gap)
    return gpu_check.check(folder, 360.0, run=runner, steps=(STEP,), tests=lambda *_: ALL_WELL, now=Clock())


@pytest.mark.parametrize("gap", [0, 300, 900, 1500, 2000])
@pytest.mark.parametrize("kernel", [0.5, 10, 60])
def test_a_device_that_obeys_the_model_passes_whatever_the_gap_between_its_nodes(tmp_path, monkeypatch, gap, kernel):
    found = faults(tmp_path, monkeypatch, 40, kernel, gap)
    assert found.wrong() == [] and len(found.ladder) == 10


@pytest.mark.parametrize(("key", "mutation", "speed"), MUTATIONS, ids=[m[0] for m in MUTATIONS])
def test_a_protocol_that_is_broken_on_purpose_is_found(tmp_path, monkeypatch, key, mutation, speed):
    from traceanalyzer.capture.protocols import TIMED
    from traceanalyzer.capture.protocols.profiler import Profiler

    protocol = Profiler if key == Profiler.key else next(p for p in TIMED if p.key == key)
    monkeypatch.setattr(protocol, "measure", mutation(protocol.measure))
    found = faults(tmp_path, monkeypatch, *speed).wrong()
    assert any(key in f or "unrolled graph" in f for f in found), found
