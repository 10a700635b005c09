"""The command line as its user meets it: output, exit codes, one-line errors, clean pipes."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.builders import trace
from traceanalyzer.cli import cli
from traceanalyzer.options import ReadLimits

ROOT = Path(__file__).resolve().parents[2]


def run(*args: str, stdin: bytes | None = None):
    return CliRunner().invoke(cli, list(args), input=stdin, prog_name="traceanalyze")


@pytest.fixture
def loop(tmp_path) -> Path:
    return trace().loop(12, 40, 5, 10).write(tmp_path / "loop.json")


@pytest.mark.parametrize("form", ["text", "markdown", "json", "csv"])
def test_every_format_is_made(loop, form):
    done = run("report", str(loop), "--format", form)
    assert done.exit_code == 0 and done.stdout.strip() and not done.stderr
    if form == "json":
        assert json.loads(done.stdout)["verdict"]["status"] == "suspect"


def test_the_verdict_line_says_the_sentence_this_project_exists_for(loop):
    text = " ".join(run("report", str(loop)).stdout.split())
    assert text.startswith(
        "Suspect: CPU-bound queue. `k` takes 10 us on the device but is dispatched every 40 us; an unsynced event pair would read about 40 us (4.0x)."
    )


def test_standard_input_plain_and_gzip(loop):
    for data in (loop.read_bytes(), gzip.compress(loop.read_bytes())):
        done = run("report", "-", "--format", "json", stdin=data)
        assert json.loads(done.stdout)["trace"]["kernels"] == 12
        assert json.loads(done.stdout)["trace"]["name"] == "<stdin>"


def test_output_goes_to_a_file_and_standard_output_stays_empty(loop, tmp_path):
    target = tmp_path / "report.md"
    done = run("report", str(loop), "--format", "markdown", "-o", str(target))
    assert (
        done.exit_code == 0
        and not done.stdout
        and target.read_text().startswith("<!-- traceanalyzer:report loop.json -->\n### GPU trace report")
    )
    assert [p.name for p in tmp_path.iterdir()] == ["loop.json", "report.md"] or len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("target", ["missing/folder/x.md", "."])
def test_an_output_that_cannot_be_written_is_one_line(loop, tmp_path, target):
    done = run("report", str(loop), "-o", str(tmp_path / target))
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and "cannot_write" in done.stderr


@pytest.mark.parametrize(("level", "code"), [("note", 1), ("warning", 1), ("error", 0)])
def test_fail_on_decides_the_exit_code(loop, level, code):
    assert run("report", str(loop), "--fail-on", level).exit_code == code


def test_cannot_judge_is_exit_code_3_and_still_a_report(tmp_path):
    path = trace().kernel(0, 5, 1).kernel(10, 5, 2).write(tmp_path / "t.json")
    done = run("report", str(path), "--format", "json")
    assert done.exit_code == 3 and json.loads(done.stdout)["trace"]["kernels"] == 2


def test_no_device_activity_is_exit_code_3(tmp_path):
    done = run("report", str(trace().launch(0).launch(12).write(tmp_path / "t.json")))
    assert done.exit_code == 3 and "no device activity" in done.stdout


@pytest.mark.parametrize(
    ("content", "kind"),
    [(b"", "empty_file"), (b"hello", "not_json"), (b'{"a": 1}', "not_a_trace"), (b'{"traceEvents": 1}', "not_a_trace")],
)
def test_bad_input_is_one_line_on_standard_error_and_exit_code_2(tmp_path, content, kind):
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    done = run("report", str(path))
    assert done.exit_code == 2 and not done.stdout
    assert done.stderr.startswith(f"traceanalyze: {kind}: ") and done.stderr.count("\n") == 1


@pytest.mark.parametrize("path", ["/no/such/file.json", "\0"])
def test_a_path_that_does_not_open_is_one_line(path):
    done = run("report", path)
    assert done.exit_code == 2 and done.stderr.count("\n") == 1 and "Traceback" not in done.output


def test_a_folder_is_refused(tmp_path):
    done = run("report", str(tmp_path))
    assert done.exit_code == 2 and "folder" in done.stderr


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_no_permission_is_one_line(loop):
    loop.chmod(0)
    assert "permission" in run("report", str(loop)).stderr


def test_the_folder_of_a_file_never_shows(loop):
    for form in ("text", "markdown", "json", "csv"):
        assert str(loop.parent) not in run("report", str(loop), "--format", form).output


def test_an_error_names_the_path_that_was_given(loop):
    for given in (str(loop.parent / "missing.json"), "missing/./x.json"):
        assert f"'{given}': there is no such file" in run("report", given).stderr
    assert f"'{loop.parent}' is a folder" in run("report", str(loop), "-o", str(loop.parent)).stderr


@pytest.mark.parametrize("form", ["text", "markdown", "json", "csv"])
def test_paths_inside_names_show_only_on_request(tmp_path, form):
    secret = "/home/alice/project/kernel.py:12 my_kernel"
    built = trace().loop(8, 40, 5, 10, name=secret).range("/home/alice/run/step", 0, 10)
    built.fields |= {"traceName": "/home/alice/x.json", "host_name": "alicehost", "username": "alice"}
    path = built.write(tmp_path / "t.json")
    hidden = run("report", str(path), "--format", form).output
    assert "alice" not in hidden and "kernel.py" in hidden
    assert "alice" in run("report", str(path), "--format", form, "--show-paths").output


@pytest.mark.parametrize(
    ("args", "hint"),
    [(["--range", "nope"], "no ranges"), (["--device", "7"], "it has: 0"), (["--stream", "1"], "it has: 7"), (["--kernel", "("], "regular expression"),
     (["--threshold", "x=1"], "no threshold"), (["--threshold", "starved_fraction"], "NAME=NUMBER")],
)  # fmt: skip
def test_an_option_that_means_nothing_is_refused(loop, args, hint):
    done = run("report", str(loop), *args)
    assert done.exit_code == 2 and hint in done.stderr and done.stderr.count("\n") == 1


def test_a_threshold_can_be_set(loop):
    assert "TA201" not in run("report", str(loop), "--threshold", "starved_fraction=1.1").stdout


def test_limits_are_options(loop):
    assert "--max-bytes" in run("report", str(loop), "--max-bytes", "100").stderr
    assert "--max-rows" in run("report", str(loop), "--max-rows", "3").stderr
    assert ReadLimits().max_bytes == 8 << 30


def test_a_misspelt_command_gets_a_suggestion():
    assert "Did you mean 'report'?" in run("reprot").stderr
    assert "traceanalyze report t.json" in run("t.json").stderr


@pytest.mark.parametrize("args", [["--help"], ["report", "--help"], ["--version"]])
def test_help_and_version(args):
    done = run(*args)
    assert done.exit_code == 0 and done.stdout
    if args == ["--help"]:
        assert all(f"  {code}  " in done.stdout for code in range(6))


def test_a_closed_pipe_is_no_traceback(loop):
    command = f"{sys.executable} -m traceanalyzer report {loop} --format json | head -c 10"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_pipe_gets_no_colour_and_no_progress(loop):
    done = subprocess.run([sys.executable, "-m", "traceanalyzer", "report", str(loop)], capture_output=True, cwd=ROOT)
    assert b"\x1b" not in done.stdout and done.stderr == b""


def test_a_locale_without_unicode_still_gets_the_report(loop):
    env = os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    done = subprocess.run(
        [sys.executable, "-m", "traceanalyzer", "report", str(loop)], capture_output=True, cwd=ROOT, env=env
    )
    assert done.returncode == 0 and b"CPU-bound" in done.stdout


def test_frames_have_the_documented_columns(loop):
    import pandas as pd

    import traceanalyzer as ta
    from traceanalyzer.trace.schema import SCHEMAS, frame

    report = ta.analyze(loop)
    assert report.kernels.loc[0, "p50_us"] == 10.0 and report.kernels["count"].sum() == 12
    assert isinstance(report.streams, pd.DataFrame) and not report.findings.empty
    loaded = ta.read(loop)
    for table, columns in SCHEMAS.items():
        assert list(frame(loaded, table).columns) == [c.name for c in columns]
    assert frame(loaded, "activities")["launch"].notna().all()


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="no /dev/full here")
def test_a_full_disk_is_one_line_and_no_traceback():
    trace_file = ROOT / "samples" / "cpu_bound_loop.json"
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "traceanalyzer", "report", str(trace_file)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "standard output" in done.stderr


def test_output_goes_into_a_pipe_and_through_a_link_without_replacing_them(tmp_path):
    trace_file = str(ROOT / "samples" / "cpu_bound_loop.json")
    pipe, link, real = tmp_path / "pipe", tmp_path / "link.txt", tmp_path / "real.txt"
    os.mkfifo(pipe)
    real.write_text("old")
    link.symlink_to(real)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True)
    for target in (pipe, link):
        assert (
            subprocess.run([sys.executable, "-m", "traceanalyzer", "report", trace_file, "-o", str(target)]).returncode
            == 0
        )
    assert reader.communicate(timeout=20)[0].startswith("Suspect") and pipe.is_fifo()
    assert link.is_symlink() and real.read_text().startswith("Suspect")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.txt", "pipe", "real.txt"]


def test_a_closed_standard_output_is_no_traceback(tmp_path):
    command = f'"{sys.executable}" -m traceanalyzer report "{ROOT}/samples/cpu_bound_loop.json"'
    done = subprocess.run(f"{command} -o r.txt >&-", shell=True, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (0, "") and (tmp_path / "r.txt").read_text().startswith("Suspect")
    assert subprocess.run(f"{command} >&-", shell=True, stderr=subprocess.PIPE).stderr == b""


@pytest.mark.parametrize("command", ["report", "check", "compare"])
def test_no_command_writes_over_its_input(loop, command, tmp_path):
    before = loop.read_bytes()
    other = tmp_path / "other.json"
    other.write_bytes(before)
    link = tmp_path / "link.json"
    link.symlink_to(loop)
    for target in (loop, link):
        words = [command, str(loop), *([str(other)] if command == "compare" else []), "-o", str(target)]
        result = run(*words)
        assert result.exit_code == 2 and "is the input itself" in result.stderr
        assert loop.read_bytes() == before


def test_a_folder_of_a_capture_is_told_apart_from_any_other(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    assert "run' is a folder; give one trace file" in run("report", str(folder)).stderr
    (folder / "trace.json.gz").write_bytes(b"")
    assert f"the capture in it is {folder}/trace.json.gz" in run("report", str(folder)).stderr


def test_a_claim_that_nothing_can_judge_is_said_in_the_verdict(tmp_path):
    built = trace()
    for i in range(12):
        built.call(100.0 * i, 100.0 * i + 6, 9, name=f"kernel_{'abcdefghijkl'[i]}")
    path = built.write(tmp_path / "t.json")
    result = run("report", str(path), "--claim", "9.8us")
    assert "the claim of 9.8us was not judged" in " ".join(result.output.split()).lower()


def test_every_claim_is_answered_where_one_names_no_operation(loop):
    result = run("report", str(loop), "--claim", "9.8us:nowhere", "--claim", "1us", "--format", "json")
    found = {f["message"] for f in json.loads(result.stdout)["findings"] if f["rule"] in ("TA706", "TA709")}
    assert any("`nowhere`" in m for m in found) and any("1us" in m for m in found)


@pytest.mark.parametrize("folder", [".", "/"])
def test_a_folder_without_a_name_of_its_own_is_named_as_it_was_given(folder):
    result = run("report", folder)
    assert result.exit_code == 2 and f"'{folder}' is a folder" in result.stderr
