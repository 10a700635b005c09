"""The report step from its inputs to its outputs."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

from traceanalyzer.action.apart import WorkFailed, apart
from traceanalyzer.action.inputs import ActionInputs, Fault, read_inputs
from traceanalyzer.action.judge import Judged, TraceAnswer, base_report, judge
from traceanalyzer.action.outcome import COMMENT_BYTES, SUMMARY_BYTES, Outcome, assembled, graver
from traceanalyzer.action.runner import Level, annotate, set_output
from traceanalyzer.action.traces import traces_of
from traceanalyzer.errors import ExitCode, OptionError
from traceanalyzer.render.escape import terminal
from traceanalyzer.render.shell import shell_word
from traceanalyzer.report.public import Report

_PASSES = frozenset({"ok", "same", "faster"})


class ReportStep:
    """One run of the report step, in the workspace that is the current folder."""

    def __init__(self, inputs: ActionInputs, work: Path) -> None:
        self.inputs = inputs
        self.work = work
        self.outcome = Outcome()
        self._base: Report | WorkFailed | None = None

    def bad_input(self, fault: Fault) -> None:
        """Tell what is wrong on the page of the run, in the summary and in the comment."""
        annotate("error", fault.what, fault.message)
        self.outcome.bad_input(fault)

    def report_on(self, number: int, path: str) -> None:
        """Report on a trace and compare it with its base; ``number`` orders the pages."""
        name = shell_word(_name(path))
        base = self._base_of(path)
        answer = self._answer(path, base)
        if answer.report.fault:
            self.bad_input(Fault(name, answer.report.fault))
            return
        self._tell(name, answer.report)
        self.outcome.verdict = graver((self.outcome.verdict, answer.report.status))
        if self.inputs.base and base is None:
            annotate("notice", name, "the base has no trace of this name: not compared")
        # a reviewer asks first whether it got faster
        if answer.comparison is not None:
            self._compared(name, answer.comparison)
            self._page(number, f"{_name(path)}.compare", answer.comparison)
        self.outcome.blocks.append(answer.report.block)
        self._page(number, _name(path), answer.report)

    def _answer(self, path: str, base: str | None) -> TraceAnswer:
        known = self._base_report(base) if base is not None else None
        given = None if base is None or isinstance(known, WorkFailed) else (base, known)
        try:
            answer = apart(judge, path, given, self.inputs)
        except WorkFailed as failed:
            return TraceAnswer(Judged(fault=str(failed)))
        return TraceAnswer(answer.report, Judged(fault=str(known))) if isinstance(known, WorkFailed) else answer

    def _base_of(self, path: str) -> str | None:
        base = self.inputs.base
        if os.path.isdir(base):
            base = f"{base.rstrip('/') or ''}/{_name(path)}"
        if not base or not os.path.exists(base):
            return None
        return f"./{base}" if base.startswith("-") else base

    def _base_report(self, base: str) -> Report | WorkFailed | None:
        """Return the report of a base that every trace is compared with, made once; None for one that is a trace's own."""
        if os.path.isdir(self.inputs.base):
            return None
        if self._base is None:
            try:
                self._base = apart(base_report, base, self.inputs)
            except WorkFailed as failed:
                self._base = failed
        return self._base

    def _compared(self, name: str, found: Judged) -> None:
        title = f"{name} against its base"
        if found.fault:
            self.bad_input(Fault(title, found.fault))
            self.outcome.comparison = "bad-input"
            return
        self.outcome.comparison = graver((self.outcome.comparison or "faster", found.status))
        self._tell(title, found)
        self.outcome.blocks.append(found.block)

    def _tell(self, title: str, found: Judged) -> None:
        level: Level = "notice" if found.status in _PASSES else "warning"
        if found.failed:
            level = "error"
            self.outcome.gate_failed = True
        annotate(level, title, terminal(found.headline))

    def _page(self, number: int, name: str, found: Judged) -> None:
        # an artifact takes no quotes, colons, line ends and the like in names
        name = re.sub(rb"[^A-Za-z0-9._-]", b"_", os.fsencode(name))[:100].decode()
        if found.page_fault:
            annotate("warning", f"no HTML for {name}", found.page_fault)
        if found.page:
            folder = self.work / "html"
            folder.mkdir(exist_ok=True)
            (folder / f"{number:02}-{name}.html").write_text(found.page, encoding="utf-8", errors="backslashreplace")


def run_step(environ: Mapping[str, str]) -> int:
    """Run the report step in the environment that action.yml gives it; return its exit code.

    Goes to the workspace, writes the summary, the comment, the pages and the outputs whatever is wrong with inputs and traces.
    Raises OptionError where the runner's own variables are missing.
    """
    places = [
        environ.get(name, "") for name in ("GITHUB_WORKSPACE", "RUNNER_TEMP", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")
    ]
    if not all(places):
        raise OptionError(
            "bad_environment", "the variables of a GitHub runner are not set (GITHUB_WORKSPACE, RUNNER_TEMP, ...)",
            hint="action.yml runs this command; elsewhere use 'traceanalyze report'",
        )  # fmt: skip
    workspace, temp, summary, output = map(Path, places)
    os.chdir(workspace)
    inputs, faults = read_inputs(environ)
    step = ReportStep(inputs, Path(tempfile.mkdtemp(prefix="traceanalyzer.", dir=temp)))
    # a wrong setting is wrong for every trace: it is told once, and no trace is read
    traces, missing = ([], []) if faults else traces_of(inputs.traces)
    if not inputs.traces and not faults:
        missing = [Fault("traces", "none given; give a path or a pattern in traces")]
    for fault in (*faults, *missing):
        step.bad_input(fault)
    for number, path in enumerate(traces, 1):
        step.report_on(number, path)
    return _finish(step, summary, output)


def _finish(step: ReportStep, summary: Path, output: Path) -> int:
    outcome, work = step.outcome, step.work
    status = outcome.status
    text = assembled(outcome.blocks, SUMMARY_BYTES)
    _write(work / "summary.md", text)
    with summary.open("ab") as file:
        file.write(_bytes(text))
    comment = work / "comment.md"
    _write(comment, assembled(outcome.blocks, COMMENT_BYTES))
    place = str(comment)
    if target := step.inputs.comment:
        if _put(comment, Path(target)):
            place = target
        else:
            annotate("error", "comment not written", f"{shell_word(target)} is no file or cannot be written")
            status = ExitCode.BAD_INPUT
    html = work / "html"
    for name, value in {
        "verdict": outcome.verdict, "comparison": outcome.comparison, "status": str(int(status)), "summary-file": str(work / "summary.md"),
        "comment-file": place, "html-dir": str(html) if html.is_dir() else "",
    }.items():  # fmt: skip
        set_output(output, name, value)
    # without a gate the workflow is told, not stopped; bad input always stops it
    return 0 if status is ExitCode.CANNOT_JUDGE and not step.inputs.gated else int(status)


def _put(made: Path, target: Path) -> bool:
    """Move a copy of the file to its place; return False where that cannot be."""
    # a device or a pipe would be replaced by the move
    if target.exists() and not target.is_file():
        return False
    partial = target.with_name(f"{target.name}.part.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(made.read_bytes())
        partial.replace(target)  # moved, so that a link of that name is not followed
    except OSError:
        return False
    return True


def _write(path: Path, text: str) -> None:
    path.write_bytes(_bytes(text))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2] or path
