"""``traceanalyze capture`` as its user runs it: real processes, misbehaving functions, exit codes."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from traceanalyzer.capture.program import Program, program_of
from traceanalyzer.errors import OptionError

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="capture needs torch")

FUNCTIONS = """
import ctypes, os, sys, time
import torch
X = torch.randn(64, 64)
def good():
    print("noise from the function")
    return X @ X
def good_reference(): return X.double() @ X.double()
def wrong(): return X @ X + 1
def wrong_reference(): return X @ X
def leaves(): os._exit(0)
def crashes(): ctypes.string_at(0)
def hangs(): time.sleep(1000)
COUNT = 0
def later():
    global COUNT
    COUNT += 1
    if COUNT > 60: os._exit(9)
    return X
def cuda(): return torch.ones(3, device="cuda")
def moves():
    os.chdir("/")
    return X @ X
def taken_inputs(): return {"name": 1, "out": X, "seed": 1}
def taken(name, out, seed): return X @ X + out
def stops_the_clock():
    time.perf_counter_ns = lambda: 0
    return X @ X
def vast(): return X
vast_bytes_moved = 10**30
def lax(): return X
lax_tolerance = ("tight", None)
"""
TRAINING = """
import sys, torch
print("to stdout", sys.argv[1:])
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad(); model(torch.ones(4, 8)).sum().backward(); optimizer.step()
print("all steps done")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "fns.py").write_text(FUNCTIONS, encoding="utf-8")
    (tmp_path / "train.py").write_text(TRAINING, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def earlier(tmp_path_factory):
    """What the capture of a program left in its folder."""
    where = tmp_path_factory.mktemp("earlier")
    (where / "train.py").write_text(TRAINING, encoding="utf-8")
    assert run(where, "-o", "out", "--", "train.py", "3").returncode == 3
    return where / "out"


def run(folder, *words):
    command = [sys.executable, "-m", "traceanalyzer", "capture", "--iters", "10", "--budget", "5", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=dict(os.environ))


def error_line(result):
    lines = [line for line in result.stderr.splitlines() if line.startswith("traceanalyze:")]
    assert len(lines) == 1 and "Traceback" not in result.stderr
    return lines[0]


def sidecar(folder, name="out"):
    return json.loads((folder / name / "trace.sidecar.json").read_text(encoding="utf-8"))


def test_a_right_function_gives_report_trace_and_sidecar_and_a_clean_standard_output(folder):
    result = run(folder, "fns.py:good", "-o", "out")
    assert result.returncode == 0, result.stderr
    assert "noise" not in result.stdout and "noise" in result.stderr
    assert "Measured: good on cpu" in result.stdout and "result right" in result.stdout
    assert (folder / "out" / "trace.json.gz").is_file() and sidecar(folder)["operations"][0]["correctness"][
        "passed"
    ] is True


def test_a_wrong_function_is_struck_through_and_exits_one(folder):
    result = run(folder, "fns.py:wrong", "-o", "out", "--protocols", "wall_sync_once")
    assert result.returncode == 1 and "~~" in result.stdout and "WRONG RESULT" in result.stdout
    assert "wrong_result" in error_line(result)


@pytest.mark.parametrize(
    ("function", "kind", "says"),
    [
        ("leaves", "crashed", "status 0"),
        ("crashes", "crashed", "SIGSEGV"),
        ("cuda", "needs_gpu", "CUDA"),
        ("hangs", "timed_out", "3 s"),
    ],
)
def test_a_function_that_misbehaves_is_one_line_and_exit_four(folder, function, kind, says):
    result = run(folder, f"fns.py:{function}", "-o", "out", *(["--timeout", "3"] if function == "hangs" else []))
    line = error_line(result)
    assert result.returncode == 4 and kind in line and says in line


def test_what_was_measured_before_a_crash_is_printed_and_kept(folder):
    result = run(
        folder, "fns.py:later", "-o", "out", "--protocols", "wall_sync_each,wall_sync_once", "--format", "text"
    )
    assert result.returncode == 4 and "what was measured so far is kept" in error_line(result)
    assert any(p["samples_us"] for p in sidecar(folder)["operations"][0]["protocols"])
    assert "wall clock, synchronise" in result.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["fns.py:goood"], "did you mean 'good'"),
        (["nothing.py:f"], "no_such_file"),
        (["fns.py:good", "--protocols", "event_pear"], "did you mean 'event_pair'"),
        (["fns.py:good", "--protocols", "all,event_pear"], "did you mean 'event_pair'"),
        (["fns.py:good", "--rtol", "0.1"], "go together"),
        (["fns.py:good", "extra"], "after --"),
        (["--", "nothing.py"], "no_such_file"),
    ],
)
def test_bad_words_exit_two_with_what_to_do(folder, words, says):
    result = run(folder, "-o", "out", *words)
    assert result.returncode == 2 and says in error_line(result)


def test_an_unmodified_script_runs_under_the_profiler_and_stops_at_its_bound(folder):
    result = run(folder, "-o", "out", "--steps", "5", "--", "train.py", "50", "--flag")
    assert result.returncode == 3, "a run without a device cannot be judged: " + result.stderr
    assert "to stdout ['50', '--flag']" in result.stderr and "all steps done" not in result.stderr
    assert any("until the bound of 5 optimizer steps" in note for note in sidecar(folder)["notes"])
    assert (folder / "out" / "trace.json.gz").is_file()


def test_a_script_that_fails_keeps_its_trace(folder):
    result = run(folder, "-o", "out", "--", "train.py", "many")
    assert result.returncode == 4 and "ValueError" in error_line(result)
    assert (folder / "out" / "trace.json.gz").is_file()


def test_json_is_the_report_alone(folder):
    result = run(folder, "fns.py:good", "-o", "out", "--format", "json", "--protocols", "profiler_self_time")
    report = json.loads(result.stdout)
    assert report["schema"] == "traceanalyzer.report/1" and report["capture"]["operations"][0]["name"] == "good"


@pytest.mark.parametrize("words", [["fns.py:moves", "--protocols", "wall_sync_once"], ["--", "moves.py"]])
def test_code_that_changes_the_working_directory_leaves_its_files_where_they_were_asked_for(folder, words):
    (folder / "moves.py").write_text("import os, torch\nos.chdir('/')\ntorch.ones(3) + 1\n", encoding="utf-8")
    result = run(folder, "-o", "moved-out", *words)
    assert result.returncode == (3 if "--" in words else 0), result.stderr
    assert (folder / "moved-out" / "trace.sidecar.json").is_file()


@pytest.mark.parametrize(("words", "code"), [(["fns.py:goood"], 2), (["fns.py:leaves"], 4), (["--", "nothing.py"], 2)])
def test_what_an_earlier_capture_left_is_neither_shown_nor_called_kept_nor_lost(folder, earlier, words, code):
    shutil.copytree(earlier, folder / "out")
    result = run(folder, "-o", "out", *words)
    assert result.returncode == code and not result.stdout
    assert "kept" not in error_line(result) and "wrote" not in result.stderr
    assert (folder / "out" / "trace.json.gz").is_file()


def test_a_script_that_is_killed_shows_no_report_of_another(folder, earlier):
    shutil.copytree(earlier, folder / "out")
    (folder / "dies.py").write_text("import os\nos._exit(3)\n", encoding="utf-8")
    result = run(folder, "-o", "out", "--", "dies.py")
    assert result.returncode == 4 and not result.stdout and "kept" not in error_line(result)


def test_arguments_may_be_named_as_those_of_capture_itself(folder):
    result = run(folder, "fns.py:taken", "-o", "out", "--protocols", "wall_sync_once")
    assert result.returncode == 0, result.stderr
    assert set(sidecar(folder)["operations"][0]["inputs"]) == {"name", "out", "seed"}


def test_a_function_that_puts_another_clock_in_its_place_is_timed_by_the_real_one(folder):
    assert run(folder, "fns.py:stops_the_clock", "-o", "out", "--protocols", "wall_sync_once").returncode == 0
    assert sidecar(folder)["operations"][0]["protocols"][0]["p50_us"] > 0


def test_a_side_number_beyond_all_bounds_costs_itself_alone(folder):
    result = run(folder, "fns.py:vast", "-o", "out", "--protocols", "wall_sync_once")
    assert result.returncode == 0, result.stderr
    assert sidecar(folder)["operations"][0]["bytes_moved"] is None


def test_a_tolerance_that_is_no_pair_of_numbers_is_told(folder):
    result = run(folder, "fns.py:lax", "-o", "out")
    assert result.returncode == 2 and "bad_tolerance" in error_line(result)


def test_the_help_names_every_protocol():
    from click.testing import CliRunner

    from traceanalyzer.capture.protocols import chosen_protocols
    from traceanalyzer.commands.capture import command

    text = CliRunner().invoke(command, ["--help"]).output
    assert [key for key in chosen_protocols(("all",)) if key not in text] == []


@pytest.mark.parametrize(
    "words", [["-m", "pkg.train", "4"], ["python", "pkg/train.py", "4"], ["python3", "-m", "pkg.train", "4"]]
)
def test_a_program_is_captured_as_it_is_started(folder, words):
    (folder / "pkg").mkdir(exist_ok=True)
    (folder / "pkg" / "__init__.py").write_text("")
    (folder / "pkg" / "train.py").write_text(
        "import sys, torch\ntorch.ones(int(sys.argv[1])) + 1\nprint(__name__, sys.argv[1:])\n"
    )
    result = run(folder, "-o", "as-started", "--", *words)
    assert result.returncode == 3 and "__main__ ['4']" in result.stderr, result.stderr
    assert (folder / "as-started" / "trace.json.gz").is_file()


def test_ranks_that_torchrun_starts_leave_a_trace_each(folder):
    (folder / "ranked.py").write_text("import os, torch\ntorch.ones(3) + 1\nprint('rank', os.environ['RANK'])\n")
    result = run(folder, "-o", "ranks-out", "--", "torchrun", "--standalone", "--nproc-per-node", "2", "ranked.py")
    names = sorted(p.name for p in (folder / "ranks-out").iterdir())
    assert [n for n in names if n.endswith(".gz")] == ["trace.rank0.json.gz", "trace.rank1.json.gz"], result.stderr
    assert "wrote 2 traces" in result.stderr


@pytest.mark.parametrize(
    ("words", "program"),
    [
        (["train.py", "-x"], Program("train.py", False, ["-x"])),
        (["python", "train.py"], Program("train.py")),
        (["/usr/bin/python3.12", "-m", "pkg.train", "a"], Program("pkg.train", True, ["a"])),
        (["torchrun", "--nproc-per-node", "2", "t.py", "b"], Program("t.py", False, ["b"], ["--nproc-per-node", "2"])),
        (["python", "-m", "torch.distributed.run", "-m", "pkg.t"], Program("pkg.t", True, [], [])),
        (["fns.py:good"], None), (["msda"], None),
    ],
)  # fmt: skip
def test_words_name_a_program_or_a_function(words, program):
    assert program_of(words) == program


@pytest.mark.parametrize(
    "words", [["python"], ["python", "-c", "1"], ["torchrun", "--nnodes", "2"], ["-m"], ["msda", "x"]]
)
def test_words_that_name_neither_are_refused_with_what_to_write(words):
    with pytest.raises(OptionError) as error:
        program_of(words)
    assert error.value.hint
