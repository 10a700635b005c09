"""The lint command: formats, exit codes, files that cannot be read, ignored lines, mended files."""

from __future__ import annotations

import json
import time

import pytest

pytest.importorskip("libcst")

from click.testing import CliRunner

from traceanalyzer.cli import cli
from traceanalyzer.lint.engine import lint_text
from traceanalyzer.lint.registry import LINT_RULES, chosen

SCRIPT = "import time, torch\nx = torch.randn(9, device='cuda')\nt0 = time.perf_counter()\ny = torch.mm(x, x)\nprint(time.perf_counter() - t0)\n"


def lint(*words):
    return CliRunner().invoke(cli, ["lint", *map(str, words)])


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "bench.py"
    path.write_text(SCRIPT)
    return path


def test_a_problem_is_one_line_with_its_place_and_exit_one(script):
    result = lint(script)
    line = result.output.splitlines()[0]
    assert result.exit_code == 1 and line.startswith(f"{script}:5:7: warning: TL101 ") and line.endswith("[*]")
    assert lint(script, "--fail-on", "never").exit_code == 0
    assert lint(script, "--ignore", "TL1").exit_code == 0


def test_fix_writes_the_file_and_then_there_is_nothing_left(script):
    result = lint(script, "--fix", "--select", "TL101")
    assert result.exit_code == 0 and "1 mended" in result.output
    assert script.read_text().count("torch.cuda.synchronize()") == 2
    compile(script.read_text(), "bench.py", "exec")


def test_windows_line_ends_and_file_modes_survive_a_fix(script):
    script.write_bytes(SCRIPT.replace("\n", "\r\n").encode())
    script.chmod(0o750)
    lint(script, "--fix")
    content = script.read_bytes()
    assert b"synchronize()\r\n" in content and content.count(b"\n") == content.count(b"\r\n")
    assert script.stat().st_mode & 0o777 == 0o750


def test_an_ignored_line_is_left_alone(script):
    script.write_text(SCRIPT.replace("- t0)", "- t0)  # ta: ignore[TL101]"))
    assert lint(script).exit_code == 0
    script.write_text(SCRIPT.replace("- t0)", "- t0)  # ta: ignore[TL102]"))
    assert lint(script).exit_code == 1


def test_json_github_and_sarif_say_the_same(script):
    data = json.loads(lint(script, "--format", "json").output)
    (problem,) = [p for p in data["files"][0]["problems"] if p["level"] == "warning"]
    assert (problem["rule"], problem["line"], problem["fixable"]) == ("TL101", 5, True)
    assert "line=5,col=7,title=TL101 clock-without-barrier::" in lint(script, "--format", "github").output
    sarif = json.loads(lint(script, "--format", "sarif").output)
    found = [r for r in sarif["runs"][0]["results"] if r["ruleId"] == "TL101"]
    assert found[0]["locations"][0]["physicalLocation"]["region"] == {"startLine": 5, "startColumn": 7}
    assert {r["id"] for r in sarif["runs"][0]["tool"]["driver"]["rules"]} == {r.code for r in LINT_RULES}


@pytest.mark.parametrize(
    "content",
    [
        b"def f(:\n",
        b"\xff\xfe",
        b"x = " + b"(" * 3000 + b")" * 3000,
        b"x = " + b"1+" * 9000 + b"1\n",
        b"x = " + b"-" * 9000 + b"1\n",
    ],
)
def test_what_is_no_python_is_named_and_costs_no_other_file(script, content):
    (script.parent / "broken.py").write_bytes(content)
    result = lint(script.parent)
    assert result.exit_code == 1 and "broken.py: not read: " in result.output and "TL101" in result.output


def test_a_folder_is_searched_but_not_its_environments(script):
    (script.parent / ".venv").mkdir()
    (script.parent / ".venv" / "bench.py").write_text(SCRIPT)
    (script.parent / "mine").mkdir()
    (script.parent / "mine" / "pyvenv.cfg").write_text("")
    (script.parent / "mine" / "bench.py").write_text(SCRIPT)
    (script.parent / "gone.py").symlink_to("nothing")
    assert len(json.loads(lint(script.parent, "--format", "json").output)["files"]) == 1


def test_diff_prints_what_fix_would_do_and_writes_nothing(script):
    result = lint(script, "--diff", "--select", "TL101")
    assert "+torch.cuda.synchronize()" in result.output and "1 would be mended" in result.output
    assert script.read_text() == SCRIPT
    assert lint(script, "--diff", "--format", "json").exit_code == 2


def test_a_link_is_mended_at_its_target_and_stays_a_link(script):
    link = script.parent / "link.py"
    link.symlink_to(script.name)
    lint(link, "--fix", "--select", "TL101")
    assert link.is_symlink() and "synchronize" in script.read_text()


def test_a_declared_encoding_survives_a_fix(script):
    script.write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + SCRIPT.encode())
    assert lint(script, "--fix", "--select", "TL101").exit_code == 0
    content = script.read_bytes()
    assert b"caf\xe9" in content and b"synchronize" in content


def test_a_byte_order_mark_survives_a_fix(script):
    script.write_bytes(b"\xef\xbb\xbf" + SCRIPT.encode())
    lint(script, "--fix", "--select", "TL101")
    content = script.read_bytes()
    assert content.startswith(b"\xef\xbb\xbfimport") and b"synchronize" in content


def notebook(*cells):
    return json.dumps(
        {
            "nbformat": 4,
            "cells": [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in cells],
        }
    )


def test_a_notebook_s_code_cells_are_read_with_their_places(script):
    path = script.with_name("bench.ipynb")
    head, rest = SCRIPT.split("t0 =")
    path.write_text(
        notebook(
            ("markdown", "# title"),
            ("code", "%matplotlib inline\n" + head),
            ("code", "t0 =" + rest),
            ("code", "%%bash\nls"),
        )
    )
    result = lint(path)
    assert (
        result.exit_code == 1 and f"{path}:cell 3:3:7: warning: TL101 " in result.output and "[*]" not in result.output
    )
    annotation = lint(path, "--format", "github").output
    assert f"file={path},title=TL101" in annotation and "::cell 3, line 3: " in annotation
    path.write_text("{}")
    assert "no notebook" in lint(path).output and lint(path).exit_code == 2


def test_a_file_that_was_named_and_cannot_be_read_is_bad_input(script):
    script.write_text("print 'python 2'\n")
    result = lint(script)
    assert result.exit_code == 2 and "not Python 3" in result.output
    assert "::error file=" in lint(script, "--format", "github").output
    (notice,) = json.loads(lint(script, "--format", "sarif").output)["runs"][0]["invocations"][0][
        "toolExecutionNotifications"
    ]
    assert notice["level"] == "error"


def test_edits_that_would_break_a_file_are_left_out_and_the_others_made(script):
    # behind "else:" on one line there is no place for a line of its own
    script.write_text(
        SCRIPT
        + "if t0:\n    t1 = time.perf_counter()\nelse: t1 = time.perf_counter()\nz = torch.mm(x, x)\nprint(time.perf_counter() - t1)\n"
    )
    lint(script, "--fix", "--select", "TL101")
    assert script.read_text().count("synchronize") >= 2
    compile(script.read_text(), "bench.py", "exec")


def test_a_reading_in_the_statement_of_its_work_is_not_mended(script):
    text = SCRIPT.replace(
        "y = torch.mm(x, x)\nprint(time.perf_counter() - t0)", "print(torch.mm(x, x).shape, time.perf_counter() - t0)"
    )
    script.write_text(text)
    lint(script, "--fix", "--select", "TL101")
    assert script.read_text() == text


def test_unknown_rules_and_paths_are_refused_with_what_to_do(script):
    assert lint(script, "--select", "TL999").exit_code == 2
    assert lint(script.parent / "nothing.py").exit_code == 2
    assert lint().exit_code == 2
    assert all(r.code in lint("--list").output for r in LINT_RULES)


def test_time_grows_with_the_length_of_a_script():
    def seconds(n):
        text = "import time, torch\n" + "t0 = time.time()\nfn(x.cuda())\nprint(time.time() - t0)\n" * n
        start = time.process_time()
        lint_text("x.py", text, chosen((), ()))
        return time.process_time() - start

    seconds(20)
    assert seconds(800) < 6 * seconds(200) + 0.2
