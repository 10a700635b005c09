"""Runs the steps of action.yml as the runner does: its own texts, the environment it maps, the files it gives.

Only what composite steps of this action use is understood: ``run`` steps with ``env``, and expressions that name an
input or a step's output. Steps of other actions are recorded, not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

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


def run_action(workspace: Path, *, python: str = sys.executable, **given: str) -> Outcome:
    """Run the report step of action.yml with inputs (``fail_on`` for ``fail-on``) in a workspace.

    The install step is taken as done, its output the given interpreter: this installation has the analyser.
    """
    inputs = {name: str(spec.get("default", "")) for name, spec in ACTION["inputs"].items()}
    for name, value in given.items():
        assert name.replace("_", "-") in inputs, name
        inputs[name.replace("_", "-")] = value
    steps = {"install": {"python": python}, "python": {"python-path": python}}
    step = next(s for s in ACTION["runs"]["steps"] if s.get("id") == "report")
    temp = workspace.parent / f"{workspace.name}-temp"
    temp.mkdir(exist_ok=True)
    done, output, summary = run_step(step, inputs, steps, workspace, temp)
    steps["report"] = read_outputs(output)
    outputs = {name: evaluate(spec["value"], inputs, steps) for name, spec in ACTION["outputs"].items()}
    log = done.stdout.decode()
    return Outcome(
        done.returncode, log, outputs, summary.read_text(encoding="utf-8"), done.stderr.decode(), read_commands(log)
    )


def run_step(
    step: dict[str, Any],
    inputs: dict[str, str],
    steps: dict[str, dict[str, str]],
    workspace: Path,
    temp: Path,
    action: Path = ROOT,
) -> tuple[subprocess.CompletedProcess[bytes], Path, Path]:
    """Run one ``run`` step and return what it did, its output file and its summary file."""
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
    # what `shell: bash` means to the runner
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=workspace, env=env, capture_output=True), output, summary


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
