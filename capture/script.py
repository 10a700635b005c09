"""An unmodified script under torch.profiler, bounded by time and by optimizer steps."""

from __future__ import annotations

import importlib.util
import runpy
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from traceanalyzer._version import __version__
from traceanalyzer.capture import conditions
from traceanalyzer.capture.frameworks import open_device
from traceanalyzer.capture.frameworks.pytorch import TorchCpu, export_trace
from traceanalyzer.capture.said import said
from traceanalyzer.errors import CaptureUnavailable, OptionError
from traceanalyzer.trace.sidecar import SCHEMA, Sidecar, encode_sidecar, sidecar_path

if TYPE_CHECKING:
    from traceanalyzer.capture.job import Job


class _Enough(BaseException):
    """The bound was reached. A BaseException, so that ``except Exception`` in the script does not hold it up."""


def run_script(job: Job, say: Callable[[str], None]) -> None:
    """Run ``job.script`` under the profiler and write the trace with its sidecar.

    Recording begins ``after_s`` seconds after the script does and ends with the script, after ``most_s`` seconds or
    ``most_steps`` optimizer steps, whichever comes first; the script is then ended too. Its exit by ``sys.exit`` is an
    end like any other. Raises CaptureUnavailable where the script fails: what was recorded until then is written.
    """
    script = job.script if job.module else Path(job.script).name
    if not job.module and not Path(job.script).is_file():
        raise OptionError("no_such_file", f"there is no script '{script}'", hint="give its path after --")
    if job.module and not _has_module(job.script):
        raise OptionError("no_such_module", f"there is no module '{script}'", hint="run it where python -m finds it")
    device = open_device("pytorch", job.device)
    assert isinstance(device, TorchCpu)
    clocks = conditions.ClockReader(device)
    samples = clocks.sample("before")
    recorder = _Recorder(device, job)
    out = Path(job.out)
    trace = out / job.trace_name
    try:
        out.mkdir(parents=True, exist_ok=True)
        # those of an earlier capture would be taken for this one's
        trace.unlink(missing_ok=True)
        sidecar_path(trace).unlink(missing_ok=True)
    except OSError as error:
        raise OptionError(
            "cannot_write", f"'{out.name}': {error.strerror}", hint="give another folder with -o"
        ) from None
    say("running the script")
    failure: CaptureUnavailable | None = None
    why = "the script's end"
    try:
        recorder.run(job.script, job.module, job.arguments)
    except _Enough as bound:
        why = str(bound)
    except SystemExit as error:
        if error.code not in (None, 0):
            failure = CaptureUnavailable(
                "script_failed", f"'{script}' exited with {str(error.code)[:120]}", hint="make it run alone first"
            )
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = said(error, 200)
        failure = CaptureUnavailable(
            "script_failed", f"'{script}' raised {type(error).__name__}: {text}", hint="make it run alone first"
        )
    say("writing the trace")
    out.mkdir(parents=True, exist_ok=True)  # the script may have removed it
    recorded = recorder.stop(trace)
    commit, changed = conditions.git_state()
    sidecar = Sidecar(
        schema=SCHEMA,
        tool=f"traceanalyzer {__version__}",
        trace=trace.name if recorded else None,
        framework=device.framework,
        device=device.facts(),
        versions=conditions.versions(device) | ({"driver": clocks.driver} if clocks.driver else {}),
        environment=conditions.environment(),
        clocks=[*samples, *clocks.sample("after")],
        clocks_missing=clocks.missing,
        operations=[],
        git_commit=commit,
        git_changed=changed,
        notes=[f"recorded {script} from {job.after_s:g} s after its start until {why}"],
        host=conditions.host() if job.with_host else {},
    )
    sidecar_path(trace).write_bytes(encode_sidecar(sidecar))
    if failure is not None:
        raise failure
    if not recorded:
        raise CaptureUnavailable(
            "nothing_recorded",
            f"'{script}' ended before recording began ({job.after_s:g} s)",
            hint="give a smaller --after",
        )


def _has_module(name: str) -> bool:
    """Return whether ``python -m NAME`` would find something, from the working directory as well."""
    sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        return False
    finally:
        sys.path.pop(0)


class _Recorder:
    """Starts and stops the profiler around a script, in the script's own thread: the profiler belongs to a thread."""

    def __init__(self, device: TorchCpu, job: Job) -> None:
        from torch.profiler import profile

        self._device, self._job = device, job
        self._profiler = profile(activities=device._activities(), **device._extra())
        self._running = False
        self._steps = 0
        self._hook: Any = None

    def run(self, script: str, module: bool, arguments: list[str]) -> None:
        before = sys.argv, list(sys.path)
        sys.argv = [script, *arguments]
        sys.path.insert(0, str(Path.cwd() if module else Path(script).resolve().parent))
        signal.signal(signal.SIGALRM, self._alarm)
        if self._job.after_s > 0:
            signal.setitimer(signal.ITIMER_REAL, self._job.after_s)
        else:
            self._start()
        try:
            if module:
                runpy.run_module(script, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script, run_name="__main__")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            sys.argv, sys.path[:] = before[0], before[1]

    def _start(self) -> None:
        if self._job.most_steps:
            from torch.optim.optimizer import register_optimizer_step_post_hook

            self._hook = register_optimizer_step_post_hook(self._step)
        self._profiler.start()
        self._running = True
        signal.setitimer(signal.ITIMER_REAL, self._job.most_s)

    def _alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._running:
            raise _Enough(f"the bound of {self._job.most_s:g} s")
        self._start()

    def _step(self, *_: Any) -> None:
        self._steps += 1
        if self._steps >= self._job.most_steps:
            raise _Enough(f"the bound of {self._job.most_steps} optimizer steps")

    def stop(self, trace: Path) -> bool:
        """End the recording and write it; returns whether there was one."""
        if self._hook is not None:
            self._hook.remove()
        if not self._running:
            return False
        self._device.synchronize()
        self._profiler.stop()
        export_trace(self._profiler, trace)
        return True
