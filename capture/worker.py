"""The process a capture runs in: ``python -m traceanalyzer.capture.worker JOB.json``.

Foreign code may end its process, hang, print or crash; so it runs here, and the command that started this process
stays whole (``capture/supervise.py``). What this process has to say it writes into the job's status file, never to
standard output, which belongs to the report.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from traceanalyzer.capture.job import Job, Status
from traceanalyzer.errors import CaptureUnavailable, ExitCode, TraceAnalyzerError


def main(path: str) -> int:
    """Run the job of a file; returns the exit code, which the status file repeats with its reason."""
    job = msgspec.json.decode(Path(path).read_bytes(), type=Job)
    status = Path(job.status)

    def say(value: Status) -> None:
        partial = status.with_name(status.name + ".part")
        partial.write_bytes(msgspec.json.encode(value))
        partial.replace(status)

    # Kineto writes a line to standard error for each start and stop
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    say(Status("starting"))
    try:
        # the function's own output must not mix with the report
        with contextlib.redirect_stdout(sys.stderr):
            if job.launcher is not None:
                from traceanalyzer.capture.ranked import launch

                launch(job, lambda stage: say(Status(stage)))
            elif job.script:
                from traceanalyzer.capture.script import run_script

                run_script(job, lambda stage: say(Status(stage)))
            elif job.survey:
                from traceanalyzer.capture.survey import write_survey

                say(Status("asking what can run here"))
                write_survey(job)
            else:
                _function(job, say)
    except TraceAnalyzerError as error:
        say(Status("failed", kind=error.kind, message=str(error), hint=error.hint, exit_code=int(error.exit_code)))
        return int(error.exit_code)
    except KeyboardInterrupt:
        say(Status("failed", kind="interrupted", message="interrupted", exit_code=int(ExitCode.CAPTURE_UNAVAILABLE)))
        return int(ExitCode.CAPTURE_UNAVAILABLE)
    say(Status("done", done=True))
    return 0


def _function(job: Job, say: Callable[[Status], None]) -> None:
    from traceanalyzer.capture.api import Begun, CaptureOptions, begin_call, together
    from traceanalyzer.capture.asked import Asked
    from traceanalyzer.capture.target import load
    from traceanalyzer.commands.progress import step_progress

    with step_progress(job.progress) as show:

        def observe(what: str, step: int, steps: int) -> None:
            say(Status(what))
            show(what, step, steps)

        def begun(one: Job) -> Begun:
            say(Status("importing the function"))
            asked = Asked(
                one.target, one.inputs, one.reference, one.preset, one.dtype, one.implementation, one.seed, one.tolerance,
                one.direction, one.axes,
            )  # fmt: skip
            target = load(asked, one.device)
            options = CaptureOptions(
                tuple(one.protocols), one.warm_up, one.iterations, target.reference, target.tolerance, target.name, one.budget_s,
                one.device, one.framework, one.seed, target.bytes_moved, target.flops, one.with_host, target.inputs, observe,
            )  # fmt: skip
            return begin_call(target.fn, target.args, target.kwargs, out=one.out, options=options)

        if not job.others:
            begun(job).finish()
            return
        running: list[tuple[Job, Begun]] = []
        for one in (job, *job.others):
            try:
                running.append((one, begun(one)))
            except TraceAnalyzerError as error:
                write_failure(Path(one.out), error)
        together([b for _, b in running])
        for one, state in running:
            if state.failure is not None:
                write_failure(Path(one.out), state.failure)


FAILURE_NAME = "failure.json"


def write_failure(folder: Path, error: TraceAnalyzerError) -> None:
    """Leave what ended one of several functions early where its trace would be."""
    folder.mkdir(parents=True, exist_ok=True)
    status = Status("failed", kind=error.kind, message=str(error), hint=error.hint, exit_code=int(error.exit_code))
    (folder / FAILURE_NAME).write_bytes(msgspec.json.encode(status))


def read_failure(folder: Path) -> TraceAnalyzerError | None:
    """Return what ended a function early, None where nothing did."""
    try:
        found = msgspec.json.decode((folder / FAILURE_NAME).read_bytes(), type=Status)
    except (OSError, msgspec.DecodeError):
        return None
    error = CaptureUnavailable(found.kind, found.message, hint=found.hint)
    error.exit_code = ExitCode(found.exit_code)
    return error


if __name__ == "__main__":
    code = 1
    try:
        code = main(sys.argv[1])
    finally:
        # threads that the function left behind must not keep the process
        sys.stderr.flush()
        os._exit(code)
