"""Runs bench's jobs on the simulated device in place of a process with a GPU: every row's dispatch and kernel are given."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from tests.capture.fake_device import FakeDevice
from traceanalyzer.capture.api import run
from traceanalyzer.capture.job import Job
from traceanalyzer.capture.session import Operation, Settings
from traceanalyzer.capture.survey import SURVEY_NAME, Absence, Survey
from traceanalyzer.capture.worker import write_failure
from traceanalyzer.errors import CaptureUnavailable, TraceAnalyzerError
from traceanalyzer.trace.sidecar import DeviceFacts

US = 1000


@dataclass
class Speed:
    """Dispatch and kernel in microseconds; ``result`` is what the call returns (the reference returns 1.0)."""

    dispatch: float
    kernel: float
    result: float = 1.0
    fails: BaseException | None = None
    device: dict[str, Any] = field(default_factory=dict)


@dataclass
class Runner:
    """``speeds`` by implementation, or by (implementation, dtype, direction) where that is given."""

    speeds: dict[Any, Speed]
    absent: list[Absence] = field(default_factory=list)
    names: tuple[str, ...] = ("triton", "reference", "compiled", "mmcv")
    dtypes: tuple[str, ...] = ("fp32", "fp16")
    directions: tuple[str, ...] = ("forward", "backward")
    jobs: list[Job] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def __call__(self, job: Job, seconds: float) -> TraceAnalyzerError | None:
        if job.survey:
            folder = Path(job.out)
            folder.mkdir(parents=True)
            found = Survey(
                job.survey, "a thing", DeviceFacts("fake", "Simulated device"), job.preset or "decoder", {"batch": "4"}, list(self.dtypes),
                list(self.directions), list(self.names), self.absent,
            )  # fmt: skip
            (folder / SURVEY_NAME).write_bytes(msgspec.json.encode(found))
            return None
        if job.others:
            # in turns is the session's own matter (tests/capture): here each has its result
            several = (replace(job, others=[]), *job.others)
            for one in several:
                failure = self(one, seconds / len(several))
                if failure is not None:
                    write_failure(Path(one.out), failure)
            return None
        self.jobs.append(job)
        self.times.append(seconds)
        speed = self.speeds.get((job.implementation, job.dtype, job.direction)) or self.speeds[job.implementation]
        if isinstance(speed.fails, KeyboardInterrupt):
            raise speed.fails
        device = FakeDevice(**speed.device)
        work = device.op([(int(speed.dispatch * US), int(speed.kernel * US))], result=speed.result)

        def call() -> Any:
            if speed.fails is not None:
                raise speed.fails
            return work()

        name = f"{job.target}_{job.implementation}_{job.preset}_{job.dtype}"
        operation = Operation(
            name + ("_backward" if job.direction == "backward" else ""), call, reference=lambda: 1.0, tolerance=(0.0, 0.01),
            bytes_moved=8_000_000, flops=16_000_000,
        )  # fmt: skip
        settings = Settings(tuple(job.protocols), job.warm_up, job.iterations, job.budget_s)
        try:
            run(device, operation, settings, Path(job.out))
        except CaptureUnavailable as error:
            return error
        return None
