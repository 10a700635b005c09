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
    assert len(json.loads(lint(script.parent, "--format", "json").output)["files"]) == 1


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


class Asynchronous:
    """A device that is behind the host: launch returns at once, synchronize waits. Time is virtual."""

    def __init__(self):
        self.now = self.free = 0.0

    def launch(self):
        self.now += 20e-6
        self.free = max(self.free, self.now) + 500e-6

    def synchronize(self):
        self.now = max(self.now, self.free)


def test_a_fixed_script_prints_what_the_unfixed_one_should_have():
    """Run both against a fake asynchronous device: 100 launches of 500 us, dispatched in 20 us each."""
    import types

    from traceanalyzer.lint.engine import fixed_text

    text = "import time, torch\nt0 = time.perf_counter()\nfor _ in range(100):\n    torch.mm(x, x)  # on 'cuda'\nprinted = (time.perf_counter() - t0) / 100\n"
    mended, used = fixed_text(text, lint_text("x.py", text, chosen(("TL101",), ())))
    assert used == 1

    def printed(script):
        device = Asynchronous()
        torch = types.SimpleNamespace(
            mm=lambda *_: device.launch(), cuda=types.SimpleNamespace(synchronize=device.synchronize)
        )
        names = {"x": None, "torch": torch, "time": types.SimpleNamespace(perf_counter=lambda: device.now)}
        exec(script.replace("import time, torch\n", ""), names)
        return names["printed"]

    assert printed(text) == pytest.approx(20e-6)
    assert printed(mended) == pytest.approx(500e-6, rel=0.05)
