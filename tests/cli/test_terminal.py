"""What is printed fits the terminal it is printed on: its width, its colours, its encoding."""

from __future__ import annotations

import json
import os
import pty
import re
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.builders import trace
from traceanalyzer.commands.output import screen

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "samples" / "cpu_bound_loop.json")
COMMAND = [sys.executable, "-m", "traceanalyzer"]
CLEAN = {
    k: v
    for k, v in os.environ.items()
    if k not in ("COLUMNS", "LINES", "NO_COLOR", "TERM", "LC_ALL", "LANG", "PYTHONIOENCODING", "PYTHONUTF8")
}


def on_terminal(arguments: list[str], columns: int, **env: str) -> str:
    """Return what a command prints on a terminal of so many columns."""
    import fcntl
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    child = subprocess.Popen([*COMMAND, *arguments], stdout=theirs, stderr=theirs, env=CLEAN | {"TERM": "xterm"} | env)
    os.close(theirs)
    found = b""
    try:
        while piece := os.read(ours, 65536):
            found += piece
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    child.wait()
    return found.decode().replace("\r\n", "\n")


def widest(text: str) -> int:
    return max(len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines())


@pytest.mark.parametrize(
    ("columns", "env", "least", "most"),
    [(60, {}, 50, 60), (150, {}, 101, 150), (40, {}, 50, 60), (500, {}, 101, 200), (150, {"COLUMNS": "70"}, 60, 70)],
)
def test_the_width_is_that_of_the_terminal_within_60_and_200(columns, env, least, most):
    assert least <= widest(on_terminal(["report", SAMPLE, "--full"], columns, **env)) <= most


@pytest.mark.parametrize(
    ("env", "colored"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_colours_go_where_they_are_wanted(env, colored):
    assert ("\x1b[" in on_terminal(["report", SAMPLE], 100, **env)) is colored


@pytest.mark.parametrize("value", ["", "0", "-5", "x", "1" * 50, "\u0661"])
def test_columns_that_mean_nothing_are_passed_over(monkeypatch, value):
    with monkeypatch.context() as patched:  # pytest reads the same variable for its own lines
        patched.setenv("COLUMNS", value)
        assert screen("report.txt") == (100, False)


def test_columns_count_for_a_file_too(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    assert screen("report.txt") == (140, False)


@cache
def in_utf_8(*words):
    return subprocess.run([*COMMAND, *words], capture_output=True, env=CLEAN | {"PYTHONIOENCODING": "utf-8"})


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ["report", SAMPLE, "--full"],
        ["compare", SAMPLE, SAMPLE],
        ["predict", "--dispatch", "40", "--kernel", "10"],
        ["rule", "TA201"],
    ],
)
def test_an_encoding_without_lines_gets_tables_all_the_same(env, words):
    done = subprocess.run([*COMMAND, *words], capture_output=True, env=CLEAN | env)
    wanted = in_utf_8(*words)
    assert b"\\u" not in done.stdout and b"\\x" not in done.stdout and done.returncode == wanted.returncode
    done.stdout.decode("latin-1" if "latin-1" in env.values() else "ascii")
    if words[0] == "report":
        assert b"-----" in done.stdout
        # one for one, so that columns stay aligned
        assert [len(x) for x in done.stdout.decode("latin-1").splitlines()] == [
            len(x) for x in wanted.stdout.decode().splitlines()
        ]


def test_json_in_ascii_is_the_same_json(tmp_path):
    path = trace().loop(3, 40, 5, 10, name="\u6f22\u00e9\U0001f600k").write(tmp_path / "t.json")
    texts = [
        subprocess.run(
            [*COMMAND, "report", str(path), "--format", "json"],
            capture_output=True,
            env=CLEAN | {"PYTHONIOENCODING": e},
        ).stdout
        for e in ("utf-8", "ascii")
    ]
    assert texts[1].isascii() and json.loads(texts[0]) == json.loads(texts[1])
    assert "\u6f22\u00e9\U0001f600k" in json.loads(texts[1])["kernels"][0]["name"]


def test_json_that_holds_other_characters_is_escaped_for_ascii():
    code = (
        "import sys; from traceanalyzer.commands.output import write_output\n"
        "write_output('[\"\\u6f22\\u00e9\\U0001f600\"]', None, form='json')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env=CLEAN | {"PYTHONIOENCODING": "ascii"}, cwd=ROOT
    )
    assert json.loads(done.stdout) == ["\u6f22\u00e9\U0001f600"]
