"""Runs the steps of action.yml as the runner does: its own texts, the environment it maps, the files it gives.

Only what composite steps of this action use is understood: ``run`` steps with ``env``, and expressions that name an
input or a step's output. Steps of other actions are recorded, not run.
"""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from traceanalyzer.action import run as action_run
from traceanalyzer.action.apart import WorkFailed, attempt

ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))


@dataclass
class Outcome:
    """What a run of the action left behind. ``outputs`` are those of action.yml, ``commands`` the workflow commands."""

    code: int
    log: str
    outputs: dict[str, str]
    summary: str
    stderr: str
    commands: list[tuple[str, str, str]] = field(default_factory=list)
    made: dict[str, str] = field(default_factory=dict)
    """Outputs of the step itself."""

    @property
    def comment(self) -> str:
        """Text of the comment file."""
        return Path(self.outputs["comment-file"]).read_text(encoding="utf-8")

    def said(self, level: str) -> list[str]:
        """Return title and message of the annotations of a level."""
        return [f"{title}|{message}" for kind, title, message in self.commands if kind == level]


def read_outputs(path: Path) -> dict[str, str]:
    """Read GITHUB_OUTPUT as the runner does: ``name=value``, or ``name<<END`` up to the line END."""
    found: dict[str, str] = {}
    lines = iter(path.read_text(encoding="utf-8").split("\n"))
    for line in lines:
        if not line:
            continue
        heredoc = re.match(r"([^=<]+)<<(.+)", line)
        if heredoc:
            value: list[str] = []
            for inner in lines:
                if inner == heredoc[2]:
                    break
                value.append(inner)
            else:
                raise AssertionError(f"no end of {line!r}")
            found[heredoc[1]] = "\n".join(value)
        else:
            name, _, text = line.partition("=")
            found[name] = text
    return found


def read_commands(log: str) -> list[tuple[str, str, str]]:
    """Read workflow commands as the runner does: ``::`` begins a line, ``##[`` counts anywhere in the others."""
    found = []
    for line in re.split(r"\r\n|\r|\n", log):
        command = re.match(r"\s*::([A-Za-z-]+)( [^:]*)?::(.*)", line)
        if command:
            title = re.search(r"title=([^,]*)", command[2] or "")
            found.append((command[1], _decoded(title[1] if title else ""), _decoded(command[3])))
        elif "##[" in line:
            found.append(("##[", "", line))
    return found


def _decoded(text: str) -> str:
    for code, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(code, char)
    return text


def run_action(workspace: Path, *, as_runner: bool = False, **given: str) -> Outcome:
    """Run the report step of action.yml with inputs (``fail_on`` for ``fail-on``) in a workspace.

    ``as_runner``: in a shell of its own, as the runner does; else its command is called here, with the environment that action.yml
    maps. The install step is taken as done: this installation has the analyser.
    """
    inputs = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
    for name, value in given.items():
        assert name.replace("_", "-") in inputs, name
        inputs[name.replace("_", "-")] = value
    steps = {"install": {"python": sys.executable}, "python": {"python-path": sys.executable}}
    step = next(s for s in ACTION["runs"]["steps"] if s.get("id") == "report")
    temp = workspace.parent / f"{workspace.name}-temp"
    temp.mkdir(exist_ok=True)
    if as_runner:
        done, output, summary = run_step(step, inputs, steps, workspace, temp)
        code, log, stderr = done.returncode, done.stdout.decode(), done.stderr.decode()
    else:
        output, summary, env = environment(step, inputs, steps, workspace, temp, ROOT)
        code, log, stderr = called(env)
    steps["report"] = read_outputs(output)
    outputs = {name: evaluate(spec["value"], inputs, steps) for name, spec in ACTION["outputs"].items()}
    return Outcome(code, log, outputs, summary.read_text(encoding="utf-8"), stderr, read_commands(log), steps["report"])


def called(env: dict[str, str]) -> tuple[int, str, str]:
    """Call the command of the report step in this process: its exit code, its log and what went to standard error."""
    out, err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    place = Path.cwd()
    try:
        with redirect_stdout(out), redirect_stderr(err), patch.object(action_run, "apart", here):
            code = action_run.run_step(env)
    finally:
        os.chdir(place)
    out.flush()
    return code, out.buffer.getvalue().decode(), err.getvalue()  # type: ignore[attr-defined]


def here(work: Callable[..., Any], *arguments: object) -> Any:
    """Do in this process what the action does in one of its own."""
    failure, result = attempt(work, *arguments)
    if failure is not None:
        raise WorkFailed(failure)
    return result


def run_step(
    step: dict[str, Any],
    inputs: dict[str, str],
    steps: dict[str, dict[str, str]],
    workspace: Path,
    temp: Path,
    action: Path = ROOT,
) -> tuple[subprocess.CompletedProcess[bytes], Path, Path]:
    """Run one ``run`` step and return what it did, its output file and its summary file."""
    output, summary, env = environment(step, inputs, steps, workspace, temp, action)
    # what `shell: bash` means to the runner
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=workspace, env=env, capture_output=True), output, summary


def environment(
    step: dict[str, Any], inputs: dict[str, str], steps: dict[str, dict[str, str]], workspace: Path, temp: Path, action: Path
) -> tuple[Path, Path, dict[str, str]]:  # fmt: skip
    """Return a new output file, a new summary file and the environment of a step."""
    number = len(list(temp.glob("output-*")))
    output, summary = temp / f"output-{number}", temp / f"summary-{number}"
    output.touch()
    summary.touch()
    env = {
        "PATH": os.environ["PATH"], "HOME": str(temp), "GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(workspace), "RUNNER_TEMP": str(temp),
        "GITHUB_ACTION_PATH": str(action), "GITHUB_OUTPUT": str(output), "GITHUB_STEP_SUMMARY": str(summary), "LANG": "C.UTF-8",
        **{k: v for k, v in os.environ.items() if k.startswith("PIP_")},
        **{name: evaluate(text, inputs, steps) for name, text in step.get("env", {}).items()},
    }  # fmt: skip
    return output, summary, env


def evaluate(text: str, inputs: dict[str, str], steps: dict[str, dict[str, str]]) -> str:
    """Return the text with its expressions replaced; any that is not a plain name is refused."""

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("inputs."):
            return inputs[name.removeprefix("inputs.")]
        of_step = re.fullmatch(r"steps\.([a-z-]+)\.outputs\.([a-z-]+)", name)
        assert of_step, name
        return steps.get(of_step[1], {}).get(of_step[2], "")

    return re.sub(r"\$\{\{ *(.*?) *\}\}", value, text)
