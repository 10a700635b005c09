"""Runs the files of ``interpreted/``, each in a process with Triton's interpreter on (see its conftest)."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((Path(__file__).parent / "interpreted").glob("test_*.py"))


@pytest.mark.parametrize("path", FILES, ids=[p.stem for p in FILES])
def test_kernels_are_right_in_the_interpreter(path):
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", str(path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\d+ passed", done.stdout), done.stdout


def test_without_the_variable_the_folder_is_not_collected_twice():
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    folder = str(FILES[0].parent)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "--collect-only", folder],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    assert "no tests" in done.stdout, done.stdout
