"""The action's report step, run as the runner runs it: names act nowhere, gates hold, nothing is lost in silence."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

from tests.action.composite import ROOT, run_action
from tests.render.test_summary import GFM
from traceanalyzer.action import judge as judging
from traceanalyzer.action import run as action_run
from traceanalyzer.action.apart import WorkFailed, apart
from traceanalyzer.action.judge import Judged, TraceAnswer
from traceanalyzer.action.outcome import graver
from traceanalyzer.action.traces import expand

SAMPLE = (ROOT / "samples" / "cpu_bound_loop.json").read_bytes()
FED = (ROOT / "samples" / "gpu_bound_loop.json").read_bytes()
EMPTY = b'{"traceEvents": []}'
HOSTILE = [
    "with space.json", "quote's \"both\".json", "line\nbreak.json", "cr\rhere.json", "::set-output name=verdict::ok.json", "\n::set-output name=verdict::ok\n.json",
    "##[set-output name=verdict]ok.json", "%0A::error::forged.json", "$(touch pwned).json", "`touch pwned`.json", "; touch pwned;.json", "-o.json", "-.json",
    "*.json", "[a].json", "@octocat #1.json", "x --> <script>.json", "a|b.json", "\\.json", "~.json", "漢字\u202e.json", "end_0\nverdict=ok\n.json", "a\tb.json",
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "work space"
    folder.mkdir()
    return folder


# verdicts and gates


def test_a_trace_gives_summary_comment_annotation_and_outputs(workspace):
    (workspace / "run.json").write_bytes(SAMPLE)
    done = run_action(workspace, traces="run.json")
    assert done.code == 0 and done.stderr == ""
    assert done.outputs["verdict"] == "suspect" and done.outputs["status"] == "0" and done.outputs["comparison"] == ""
    assert done.summary == done.comment == Path(done.outputs["summary-file"]).read_text()
    assert done.summary.startswith(
        "<!-- traceanalyzer:report -->\n<!-- traceanalyzer:report run.json -->\n### GPU trace report: SUSPECT"
    )
    assert [c[:2] for c in done.commands] == [
        ("warning", "traceanalyzer: run.json")
    ] and "CPU-bound queue" in done.commands[0][2]
    assert done.outputs["html-dir"] == ""


def test_two_runs_on_the_same_traces_write_the_same_text(workspace):
    (workspace / "run.json").write_bytes(SAMPLE)
    assert run_action(workspace, traces="*.json").summary == run_action(workspace, traces="*.json").summary


@pytest.mark.parametrize(("level", "code"), [("error", 0), ("warning", 1), ("note", 1), ("", 0)])
def test_fail_on_decides_the_step_and_the_summary_is_written_all_the_same(workspace, level, code):
    (workspace / "run.json").write_bytes(SAMPLE)
    done = run_action(workspace, traces="run.json", fail_on=level)
    assert (done.code, done.outputs["status"]) == (code, str(code)) and "TA201" in done.summary
    assert bool(done.said("error")) == bool(code)


@pytest.mark.parametrize(("level", "code"), [("", 0), ("error", 1), ("note", 1)])
def test_a_trace_that_cannot_be_judged_passes_no_gate_and_stops_nothing_without_one(workspace, level, code):
    # an empty trace is a finding of level error as well, so the gate says 1
    (workspace / "run.json").write_bytes(EMPTY)
    done = run_action(workspace, traces="run.json", fail_on=level)
    assert done.outputs["verdict"] == "cannot-judge" and done.code == code
    assert done.outputs["status"] == ("3" if not level else "1") and "CANNOT JUDGE" in done.summary


HEADLINE = "said\n::set-output name=verdict::ok"


def answering(monkeypatch, status: str, comparison: str = "", failed: bool = False) -> list[tuple]:
    """Let the analyser answer with a verdict, for reports or for comparisons; return what it is asked."""
    asked = []

    def judge(path, base, inputs):
        asked.append((path, base, inputs))
        compared = Judged(comparison, HEADLINE, failed, "### comparison\n") if comparison and base else None
        return TraceAnswer(Judged(status, HEADLINE, failed and not comparison, "### report\n"), compared)

    monkeypatch.setattr(action_run, "judge", judge)
    monkeypatch.setattr(action_run, "base_report", lambda path, inputs: path)
    return asked


@pytest.mark.parametrize(("level", "code"), [("", 0), ("error", 3)])
def test_status_3_stops_the_step_where_a_gate_was_asked_for(workspace, monkeypatch, level, code):
    (workspace / "run.json").write_bytes(SAMPLE)
    answering(monkeypatch, "cannot-judge")
    done = run_action(workspace, traces="run.json", fail_on=level)
    assert (done.code, done.outputs["status"]) == (code, "3")


def test_a_headline_forges_no_command(workspace, monkeypatch):
    (workspace / "run.json").write_bytes(SAMPLE)
    answering(monkeypatch, "ok")
    done = run_action(workspace, traces="run.json")
    assert [c[0] for c in done.commands] == ["notice"] and done.outputs["verdict"] == "ok"


def test_every_verdict_has_its_place_and_one_that_nobody_knows_is_no_pass():
    assert graver(["ok", "suspect", "cannot-judge"]) == "cannot-judge" and graver(["same", "faster"]) == "same"
    assert graver(["ok", "splendid"]) == "cannot-judge"


def test_a_trace_and_a_base_are_analysed_once_whatever_is_made_of_them(workspace, monkeypatch):
    for name in ("a.json", "b.json", "base.json"):
        (workspace / name).write_bytes(SAMPLE)
    read = []
    for function in ("analyze", "load_report"):
        real = getattr(judging, function)
        monkeypatch.setattr(
            judging, function, lambda path, *a, real=real, **o: read.append(path) or real(path, *a, **o)
        )
    done = run_action(workspace, traces="[ab].json", base="base.json", html="pages", fail_on="error")
    assert done.code == 0 and sorted(read) == ["a.json", "b.json", "base.json"]
    assert len(list(Path(done.outputs["html-dir"]).iterdir())) == 4


def test_the_gravest_verdict_of_several_traces_stands_in_the_output(workspace):
    (workspace / "a.json").write_bytes(EMPTY)
    (workspace / "b.json").write_bytes(FED)
    done = run_action(workspace, traces="*.json")
    assert done.outputs["verdict"] == "cannot-judge"
    assert done.summary.index("(a.json)") < done.summary.index("(b.json)")


def test_claims_reach_the_report_one_a_line(workspace):
    (workspace / "run.json").write_bytes(SAMPLE)
    done = run_action(workspace, traces="run.json", claim="\n 9.8us \n39us:triton\n")
    assert done.summary.count("claim of 9.8us") and done.summary.count("claim of 39us")
    assert "--claim 9.8us --claim 39us:triton" in done.summary


# bad input


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("bad.json", b"not json", "not_json"),
        ("bad.json.gz", b"\x1f\x8b\x08\x00junk-and-more-junk", "gzip|truncated|invalid|empty_file"),
        ("bad.json", b"", "empty"),
    ],
)
def test_a_bad_trace_is_one_error_line_and_exit_code_2(workspace, name, content, said):
    (workspace / name).write_bytes(content)
    done = run_action(workspace, traces=name)
    assert (done.code, done.outputs["status"], done.outputs["verdict"]) == (2, "2", "bad-input")
    errors = done.said("error")
    assert len(errors) == 1 and re.search(said, errors[0]) and name in errors[0] and "Traceback" not in done.log
    assert "BAD INPUT" in done.summary and "BAD INPUT" in done.comment


def test_one_bad_trace_does_not_cost_the_report_of_the_others(workspace):
    (workspace / "a.json").write_bytes(b"junk")
    (workspace / "b.json").write_bytes(SAMPLE)
    done = run_action(workspace, traces="a.json\nb.json\nmissing.json\nno/*.gz")
    assert done.code == 2 and "(b.json)" in done.summary and done.summary.count("BAD INPUT") == 3
    assert any("'no/*.gz'|no file matches" in e for e in done.said("error"))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"traces": ""}, "none given"),
        ({"traces": "\n  \n"}, "none given"),
        ({"traces": "nothing/*.json"}, "no file matches"),
        ({"traces": "run.json", "fail_on": "fatal"}, "fatal is no level"),
        ({"traces": "run.json", "fail_on": "x\n::error::y"}, "is no level"),
        ({"traces": "run.json", "fail_on_regression": "5"}, "give base"),
        ({"traces": "run.json", "base": "run.json", "fail_on_regression": "5 %"}, "no percentage"),
        ({"traces": "run.json", "base": "gone"}, "gone does not exist"),
        ({"traces": "run.json", "claim": "fast"}, "is no time"),
        ({"traces": "."}, r"\."),
    ],
)
def test_a_wrong_setting_is_one_error_and_exit_code_2(workspace, given, said):
    (workspace / "run.json").write_bytes(SAMPLE)
    done = run_action(workspace, **given)
    assert done.code == 2 and done.outputs["status"] == "2"
    assert len(done.said("error")) == 1 and re.search(said, done.said("error")[0])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ZeroDivisionError("::set-output name=a::b"), "internal_error: ZeroDivisionError"),
        (MemoryError(), "out_of_memory"),
    ],
)
def test_a_crash_of_the_analyser_is_no_gate_that_failed(workspace, monkeypatch, error, said):
    (workspace / "run.json").write_bytes(SAMPLE)

    def crash(*_):
        raise error

    monkeypatch.setattr(action_run, "judge", crash)
    done = run_action(workspace, traces="run.json", fail_on="error")
    assert done.code == 2 and done.outputs["verdict"] == "bad-input" and len(done.commands) == 1
    assert done.said("error")[0].startswith(f"traceanalyzer: run.json|{said}")


def test_a_process_that_is_killed_or_ends_costs_its_own_trace_alone():
    with pytest.raises(WorkFailed, match="SIGKILL: the memory may not suffice"):
        apart(_kill_itself)
    with pytest.raises(WorkFailed, match="exit code 7"):
        apart(os._exit, 7)
    with pytest.raises(WorkFailed, match="internal_error: ZeroDivisionError"):
        apart(divmod, 1, 0)
    assert apart(divmod, 7, 2) == (3, 1)


def _kill_itself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


# foreign names


@pytest.mark.parametrize("as_runner", [False, True], ids=["called", "as the runner does"])
def test_no_file_name_acts_in_the_shell_the_log_the_outputs_or_the_markdown(workspace, as_runner):
    (workspace / "traces").mkdir()
    for name in HOSTILE:
        (workspace / "traces" / name).write_bytes(SAMPLE)
    done = run_action(workspace, traces="traces/*", as_runner=as_runner)
    assert done.code == 0 and done.stderr == "" and not list(tmp_files(workspace, "pwned"))
    assert done.outputs["verdict"] == "suspect"
    assert done.summary.count("### GPU trace report: SUSPECT") == len(HOSTILE)
    assert [c[0] for c in done.commands] == ["warning"] * len(HOSTILE) and done.log.count("\n") == len(HOSTILE)
    assert done.log.replace("\n", "").isprintable()
    assert_markdown_is_ours(done.summary)


def test_no_name_of_a_bad_file_acts_either(workspace):
    for name in HOSTILE:
        (workspace / name).write_bytes(b"junk ::set-output name=verdict::ok\n##[error]x")
    done = run_action(workspace, traces="*")
    assert done.code == 2 and [c[0] for c in done.commands] == ["error"] * len(HOSTILE)
    assert done.outputs["verdict"] == "bad-input" and not list(tmp_files(workspace, "pwned"))
    assert done.summary.count("BAD INPUT") == len(HOSTILE)
    assert_markdown_is_ours(done.summary)


def tmp_files(workspace: Path, name: str) -> list[Path]:
    return list(workspace.parent.rglob(name))


def assert_markdown_is_ours(text: str) -> None:
    tokens = GFM.parse(text)
    inline = [c for t in tokens for c in t.children or []]
    assert not {c.type for c in inline} & {"link_open", "image"}
    html = "".join(t.content for t in [*tokens, *inline] if t.type in ("html_block", "html_inline"))
    tags = {f"<{slash}{tag}>" for tag in ("sub", "details", "summary") for slash in ("", "/")} | {"<br>"}
    markers = {
        line
        for line in text.splitlines()
        if re.fullmatch(r"<!-- traceanalyzer:(report|compare)( [\w.~%-]+)? -->", line)
    }
    assert set(re.findall(r"<!--.*?-->|<[^>]*>?", html)) <= tags | markers
    shown = "".join(c.content for c in inline if c.type in ("text", "text_special"))
    assert "@octocat" not in shown and "#1" not in shown


def test_a_name_that_is_no_utf8_is_reported(workspace):
    (Path(os.fsdecode(os.fsencode(workspace) + b"/a\xff\x9b.json"))).write_bytes(SAMPLE)
    done = run_action(workspace, traces="*.json")
    assert done.code == 0 and "SUSPECT" in done.summary and r"$'a\xff\x9b.json'" in done.log


# which traces


def test_patterns_paths_and_duplicates_give_each_trace_once_in_a_stable_order(workspace):
    for name in ("t/b.json", "t/deep/c.json", "a b.json"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_bytes(FED)
    done = run_action(workspace, traces="  t/**/*.json\na b.json\n\nt/b.json\n")
    assert re.findall(r"### .*\((.*)\)", done.summary) == ["b.json", "c.json", "a b.json"]


def test_a_name_that_looks_like_a_pattern_is_that_file(workspace):
    (workspace / "run[1].json").write_bytes(FED)
    (workspace / "run1.json").write_bytes(SAMPLE)
    done = run_action(workspace, traces="run[1].json")
    assert len(done.commands) == 1 and done.commands[0][1] == "traceanalyzer: 'run[1].json'"


def test_a_file_that_has_the_name_of_a_pattern_hides_no_other(workspace):
    for name in ("*.json", "a.json", "b.json"):
        (workspace / name).write_bytes(FED)
    assert run_action(workspace, traces="*.json").summary.count("### GPU trace report") == 3


def test_patterns_mean_what_they_mean_to_bash(tmp_path, monkeypatch):
    for name in ("a.json", ".h.json", "b/c.json", "b/.d/e.json", "b/f/g.json", "[x].json", "x.json", "1.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "b" / "up").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert expand("*.json") == {"a.json", "[x].json", "x.json", "1.json"}
    assert expand("**/*.json") == expand("*.json") | {"b/c.json", "b/f/g.json"} == expand("**/**/*.json")
    assert expand(".*.json") == {".h.json"} and expand("b/.d/*") == {"b/.d/e.json"}
    assert expand("[!ax].json") == expand("[^ax].json") == {"1.json"} and expand(r"\[x].json") == {"[x].json"}
    assert expand("b/**") == {"b/c.json", "b/f", "b/f/g.json", "b/up"} and expand("gone/*") == set()
    assert expand(f"{tmp_path}/?.json") == {f"{tmp_path}/{n}.json" for n in "ax1"}


def test_a_pattern_passes_over_the_sidecars_beside_the_traces(workspace):
    (workspace / "run.json").write_bytes(FED)
    (workspace / "run.sidecar.json").write_text("{}")
    assert run_action(workspace, traces="*.json").summary.count("###") == 1


def test_modules_of_the_workspace_and_python_variables_do_not_run(workspace, monkeypatch):
    for name in ("json.py", "click.py", "traceanalyzer.py", "sitecustomize.py"):
        (workspace / name).write_text("open('pwned', 'w')")
    (workspace / "run.json").write_bytes(FED)
    done = run_action(workspace, traces="*.json", as_runner=True)
    assert done.code == 0 and done.outputs["verdict"] == "ok" and not tmp_files(workspace, "pwned")


# room


def test_many_traces_keep_the_comment_and_the_summary_within_their_limits_and_say_how_many_are_left_out(workspace):
    for n in range(30):
        (workspace / f"run{n:02}.json").symlink_to(ROOT / "samples" / "cpu_bound_loop.json")
    done = run_action(workspace, traces="*.json")
    assert done.summary.count("###") == 30 and len(done.summary) < 1_000_000
    assert len(done.comment.encode()) <= 65_000
    shown = done.comment.count("###")
    assert 20 <= shown < 30 and f"Left out for want of room: {30 - shown} more" in done.comment


def test_the_comment_goes_where_it_is_asked_for_and_through_no_link(workspace, tmp_path):
    (workspace / "run.json").write_bytes(FED)
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (workspace / "out dir").mkdir()
    (workspace / "out dir" / "c.md").symlink_to(victim)
    done = run_action(workspace, traces="run.json", comment="out dir/c.md")
    assert done.code == 0 and victim.read_text() == "mine" and not (workspace / "out dir/c.md").is_symlink()
    assert (workspace / done.outputs["comment-file"]).read_text() == done.summary
    assert [p.name for p in (workspace / "out dir").iterdir()] == ["c.md"]


def test_a_comment_that_cannot_be_written_is_an_error(workspace):
    (workspace / "run.json").write_bytes(FED)
    done = run_action(workspace, traces="run.json", comment=".")
    assert done.code == 2 and "comment not written" in done.said("error")[0]
    assert Path(done.outputs["comment-file"]).read_text() == done.summary


# the base


@pytest.mark.parametrize(
    ("status", "failed", "step"),
    [("slower", True, 1), ("same", False, 0), ("undecided", False, 0), ("cannot-judge", False, 3)],
)
def test_the_base_is_compared_with_each_trace_and_its_gate_holds(workspace, monkeypatch, status, failed, step):
    (workspace / "head.json").write_bytes(SAMPLE)
    (workspace / "base's.json").write_bytes(SAMPLE)
    asked = answering(monkeypatch, "ok", status, failed)
    done = run_action(workspace, traces="head.json", base="base's.json", fail_on_regression="2.5")
    assert (done.code, done.outputs["comparison"]) == (step, status)
    assert [(path, base[0], inputs.fail_on_regression) for path, base, inputs in asked] == [
        ("head.json", "base's.json", 2.5)
    ]


def test_a_folder_as_base_gives_each_trace_its_namesake_and_says_which_has_none(workspace, monkeypatch):
    for name in ("base/a.json", "a.json", "new.json"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).write_bytes(SAMPLE)
    asked = answering(monkeypatch, "ok", "same")
    done = run_action(workspace, traces="*.json", base="base/")
    assert [(path, base and base[0]) for path, base, _ in asked] == [("a.json", "base/a.json"), ("new.json", None)]
    assert done.said("notice")[-1] == "traceanalyzer: new.json|the base has no trace of this name: not compared"


def test_a_base_that_is_no_trace_is_an_error_and_the_report_is_made_all_the_same(workspace):
    (workspace / "run.json").write_bytes(SAMPLE)
    (workspace / "base.json").write_bytes(b"secret")
    done = run_action(workspace, traces="run.json", base="base.json")
    assert (done.code, done.outputs["comparison"], done.outputs["verdict"]) == (2, "bad-input", "bad-input")
    assert (
        done.said("error")[0].startswith("traceanalyzer: run.json against its base|not_json")
        and "secret" not in done.log
    )
    assert "SUSPECT" in done.summary and "secret" not in done.summary


def test_the_real_comparison_stands_in_the_summary_and_slower_work_fails_the_gate(workspace):
    text = SAMPLE.decode()
    (workspace / "base.json").write_text(text)
    slow = re.sub(r'("cat": ?"kernel".*?"dur": ?)([0-9.]+)', lambda m: f"{m[1]}{float(m[2]) * 1.5:.3f}", text)
    assert slow != text
    (workspace / "head.json").write_text(slow)
    done = run_action(workspace, traces="head.json", base="base.json", fail_on_regression="10")
    assert (done.code, done.outputs["comparison"], done.outputs["status"]) == (1, "slower", "1")
    order = [done.summary.index(head) for head in ("GPU trace comparison: SLOWER", "GPU trace report: SUSPECT")]
    assert order == sorted(order) and "head.json against its base" in done.said("error")[0]
    same = run_action(workspace, traces="base.json", base="base.json", fail_on_regression="10")
    assert same.code == 0 and same.outputs["comparison"] == "same"
    assert len(done.comment.encode()) < 65_000
    assert_markdown_is_ours(done.summary)


def test_no_name_acts_in_a_comparison(workspace):
    for folder in ("base", "head"):
        (workspace / folder).mkdir()
        for name in HOSTILE:
            (workspace / folder / name).write_bytes(SAMPLE)
    done = run_action(workspace, traces="head/*", base="base", fail_on_regression="5")
    assert done.code == 0 and done.outputs["comparison"] == "same" and not tmp_files(workspace, "pwned")
    assert [c[0] for c in done.commands] == ["warning", "notice"] * len(HOSTILE)
    assert done.log.count("\n") == 2 * len(HOSTILE)
    assert_markdown_is_ours(done.summary)


def test_a_pattern_that_finds_folders_means_the_files_in_them(workspace):
    (workspace / "traces" / "deep").mkdir(parents=True)
    (workspace / "traces" / "deep" / "run.json").write_bytes(FED)
    done = run_action(workspace, traces="traces/**")
    assert done.code == 0 and done.outputs["verdict"] == "ok" and not done.said("error")
    done = run_action(workspace, traces="trac*")
    assert done.code == 2 and "no file matches" in done.said("error")[0]


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_comment_replaces_no_pipe_and_no_device(workspace, kind):
    (workspace / "run.json").write_bytes(FED)
    place = workspace / "comment.md"
    if kind == "pipe":
        os.mkfifo(place)
    else:
        place.symlink_to("/dev/null")
    done = run_action(workspace, traces="run.json", comment="comment.md")
    assert done.code == 2 and "comment not written" in done.said("error")[0]
    assert place.is_fifo() or place.is_symlink()


# pages


def test_html_pages_have_names_that_an_artifact_takes(workspace):
    for name in ('a:b*"<>|?.json', "plain.json", "x" * 200 + ".json"):
        (workspace / name).write_bytes(FED)
    done = run_action(workspace, traces="*.json", html="pages")
    names = sorted(p.name for p in Path(done.outputs["html-dir"]).iterdir())
    assert len(names) == 3 and all(re.fullmatch(r"0[123]-[\w.-]{1,100}\.html", n) for n in names)
    assert all(
        p.read_text().lstrip().lower().startswith("<!doctype html") for p in Path(done.outputs["html-dir"]).iterdir()
    )


def test_pages_that_cannot_be_made_cost_a_warning_and_not_the_report(workspace, monkeypatch):
    (workspace / "run.json").write_bytes(FED)
    monkeypatch.setattr("traceanalyzer.render.page.content.page_report", lambda *_: 1 / 0)
    done = run_action(workspace, traces="run.json", html="pages")
    assert done.code == 0 and done.outputs["html-dir"] == "" and "(run.json)" in done.summary
    assert done.said("warning")[0].startswith("traceanalyzer: no HTML for run.json|internal_error: ZeroDivisionError")
