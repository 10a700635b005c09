"""How a command ends when something goes wrong: a crash is no finding, a signal is silent, nothing half-written stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.builders import trace
from traceanalyzer import api, cli
from traceanalyzer.commands import config
from traceanalyzer.doctor import engine
from traceanalyzer.errors import OptionError

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = str(ROOT / "samples" / "cpu_bound_loop.json")
COMMAND = [sys.executable, "-m", "traceanalyzer"]
needs_full = pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")


def crash(*_, **__):
    raise ZeroDivisionError("a secret of the file")


def test_a_crash_is_exit_code_5_and_one_line_that_asks_for_a_report(monkeypatch, capsys):
    monkeypatch.setattr(api, "analyse", crash)
    assert cli.run(["report", SAMPLE]) == 5
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and "secret" not in err and "Traceback" not in err
    assert "internal_error: ZeroDivisionError at traceanalyzer.api:" in err and "report it" in err and "0.1.0" in err


@pytest.mark.parametrize("way", ["option", "variable"])
def test_the_traceback_is_shown_to_who_asks_for_it(monkeypatch, capsys, way):
    monkeypatch.setattr(api, "analyse", crash)
    if way == "variable":
        monkeypatch.setenv(cli.DEBUG_VARIABLE, "1")
    assert cli.run([*(["--debug"] if way == "option" else []), "report", SAMPLE]) == 5
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["report", "check"])
def test_a_rule_that_fails_is_told_and_fails_no_gate(monkeypatch, capsys, tmp_path, command):
    path = trace().loop(12, 40, 50, 60).write(tmp_path / "t.json")
    for rule in engine.RULES:
        monkeypatch.setattr(rule, "check", crash)
    assert cli.run([command, str(path), "--fail-on", "note"]) in (0, 3)
    assert "TA000" in capsys.readouterr().out


@needs_full
@pytest.mark.parametrize("arguments", [["--help"], ["report", "--help"], ["--version"], ["rules"]])
def test_a_full_standard_output_is_one_line_and_exit_code_2(arguments):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, *arguments], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "standard output" in done.stderr


def test_a_closed_standard_input_is_one_line():
    done = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -m traceanalyzer report - <&-'], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr.count("\n")) == (2, 1) and "standard input is closed" in done.stderr


@pytest.mark.parametrize(("level", "code"), [("warning", 1), ("error", 0)])
def test_a_reader_that_has_enough_changes_no_exit_code(level, code):
    line = f'"{sys.executable}" -m traceanalyzer report "{SAMPLE}" --format json --fail-on {level} | true; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("seconds", [0.06, 0.15, 0.25])
def test_a_signal_ends_it_in_silence_and_leaves_no_file(tmp_path, number, seconds):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)  # nobody writes: it waits until the signal comes
    (tmp_path / "out").mkdir()
    command = [*COMMAND, "report", str(fifo), "-o", str(tmp_path / "out" / "r.txt")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and not ready(child.pid):
        time.sleep(0.005)
    time.sleep(seconds)
    child.send_signal(number)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out, err) == (128 + number, b"", b"") and not list((tmp_path / "out").iterdir())


def ready(pid: int) -> bool:
    """Return whether a process has set its handlers: Python has one for SIGINT from its first moments on, and none for SIGTERM."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        pytest.skip("no /proc here")
    mask = next(line for line in status.splitlines() if line.startswith("SigCgt"))
    return (
        bool(int(mask.split()[1], 16) >> (signal.SIGTERM - 1) & 1)
        and b"traceanalyzer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_a_file_is_written_leaves_no_part_of_it(tmp_path, number):
    code = f"""
import os, sys
from traceanalyzer import interrupts
interrupts.install()
from traceanalyzer.commands.streamed_output import write_stream
from traceanalyzer.cli import run
def pieces():
    yield b"x" * 100
    assert any(n.endswith(".part") for n in os.listdir({str(tmp_path)!r}))
    os.kill(os.getpid(), {int(number)})
    yield b"y"
import traceanalyzer.cli as cli
cli._invoked = lambda _: write_stream(pieces(), {str(tmp_path / "o.json")!r})
os._exit(run([]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stderr, list(tmp_path.iterdir())) == (128 + number, b"", [])


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/proc/kmsg"])
@pytest.mark.parametrize("command", [["report"], ["compare", SAMPLE], ["annotate", "-o", "never.json"]])
def test_a_device_that_never_ends_is_an_error(capsys, device, command):
    if not Path(device).exists():
        pytest.skip(f"no {device} here")
    assert cli.run([*command, device]) == 2
    assert f"'{device}' is a device" in capsys.readouterr().err


@pytest.mark.parametrize(
    "text",
    [
        "tool = 5",
        "tool = [1]",
        "x = " + "[" * 100_000,
        "no toml",
        "[tool.traceanalyzer",
        "\0",
        "[tool]\ntraceanalyzer = 3",
    ],
)
def test_a_pyproject_that_cannot_be_used_is_said_in_one_line_and_ignored(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    found = config.load_config(tmp_path)
    assert (
        found.select == ()
        and len(found.notes) == 1
        and "pyproject.toml" in found.notes[0]
        and "\n" not in found.notes[0]
    )


def test_a_sound_pyproject_of_somebody_else_is_no_news(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.black]\nline-length = 3\n")
    (tmp_path / "setup.cfg").write_text("[tool:traceanalyzer]\nselect = TA2\n")
    found = config.load_config(tmp_path)
    assert found.select == ("TA2",) and found.notes == ()


def test_a_broken_setup_cfg_is_said(tmp_path):
    (tmp_path / "setup.cfg").write_text("[tool:traceanalyzer\nselect = TA2\n")
    assert "setup.cfg" in config.load_config(tmp_path).notes[0]


@pytest.mark.parametrize("value", ["true", '"x"', "[]", "nan", "inf", "-1", '"5 %%"'])
def test_a_threshold_that_is_no_number_is_refused(tmp_path, value):
    (tmp_path / "pyproject.toml").write_text(f"[tool.traceanalyzer.thresholds]\nidle_share = {value}\n")
    with pytest.raises(OptionError):
        config.load_config(tmp_path)
