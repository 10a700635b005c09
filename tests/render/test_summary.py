"""The compact block for pull requests: bounded, stable, marked, and nothing in it acts, whatever the trace."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import traceanalyzer as ta
from tests.render.fakes import finding, hostile, kernel, make, report
from traceanalyzer.render.marker import marker
from traceanalyzer.render.shell import shell_word
from traceanalyzer.render.summary import MAX_CHARACTERS, render_summary
from traceanalyzer.report import model
from traceanalyzer.report.model import Abstention, Verdict

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "samples").glob("*.json"))
# every kind of text that GitHub's renderer turns into something: links, mentions, references, tags, tables, code, maths
ACTING = [
    "@octocat", "@org/team", "#123", "GH-7", "org/repo#5", "deadbeefcafe1234", "http://x.y", "www.x.y/z", "me@x.y", "mailto:a@b.c",
    "[l](http://x)", "![i](http://x)", "[x]: http://y", "<http://x.y>", "<script>alert(1)</script>", "</sub></details>", "<!-- a --> b", "-->",
    "--!>", "|", "\\|", "a|b|c", "`", "```", "``` x", "~~~", "**b** _i_ ~~s~~", "$x$", "$$y$$", ":rocket:", "&lt;b&gt;", "\n# title\n", "\n```\n@a\n",
    "\r- item", "    code", "> quote", "1. one", "\u202egnp.exe", "\u200b", "\x1b[31m", "\ud800", "[!NOTE]", "[^1]", "- [ ] task", "漢字" * 300, "a" * 9000,
    "::set-output name=x::y", "##[error]x", "%0A::error::x", "@" * 9000, "\U0010ffff" * 9000, "", " ",
]  # fmt: skip
# word boundaries as GitHub sees them: "_" parts words for addresses, not for the rest
LINKED = r"@\w|#\d|\bGH-\d|://|(?<![^\W_])www\.|(?<!\w):\w+:|\b(?=\d*[a-f])[0-9a-f]{7,40}\b"
OURS = {"<sub>", "</sub>"}


def github() -> MarkdownIt:
    """Return a renderer with GitHub's extensions: tables, strikethrough, raw HTML, and links made of bare addresses."""
    parser = MarkdownIt("gfm-like", {"html": True, "linkify": True})
    # GitHub makes no link of "a.b", and every other of these
    parser.linkify.set({"fuzzy_link": False, "fuzzy_email": True})
    return parser


GFM = github()


def assert_nothing_acts(text: str) -> None:
    """Hold the block to what it may consist of: our own marks, and the trace's text as text."""
    head, rest = text.split("\n", 1)
    assert re.fullmatch(r"<!-- traceanalyzer:report( [\w.~%-]+)? -->", head) and "--" not in head[4:-3]
    tokens = GFM.parse(text)
    inline = [c for t in tokens for c in t.children or []]
    assert not {c.type for c in inline} & {"link_open", "image", "s_open"}, "something became a link"
    html = "".join(t.content for t in [*tokens, *inline] if t.type in ("html_block", "html_inline")).replace(head, "")
    assert set(re.findall(r"<[^>]*>?", html)) <= OURS
    for token in tokens:
        shown = "".join(c.content for c in token.children or [] if c.type in ("text", "text_special"))
        assert not re.search(LINKED, shown), "GitHub would link this"
        # GitHub looks for maths in the source, code left out
        assert token.type != "inline" or "$" not in re.sub(r"(?<!\\)(`+).*?(?<!`)\1(?!`)", "", token.content)
    kinds = [t.type for t in tokens if t.nesting == 1]
    assert kinds.count("heading_open") == 1 and kinds.count("table_open") <= 1 and "blockquote_open" not in kinds
    assert kinds.count("bullet_list_open") <= 1 and "ordered_list_open" not in kinds
    assert [t.info for t in tokens if t.type == "fence"] in ([], ["sh"])
    assert not [t for t in tokens if t.type in ("code_block", "hr", "reference")]
    rows = [0]
    for token in tokens:
        if token.type == "tr_open":
            rows.append(0)
        elif token.type in ("td_open", "th_open"):
            rows[-1] += 1
    assert set(rows[1:]) <= {9}, "a cell was split or lost"
    assert {c for c in rest if not c.isprintable()} <= {"\n"}
    text.encode("utf-8")


@pytest.mark.parametrize("text", ACTING)
def test_no_text_of_a_trace_acts_on_github(text):
    command = f"traceanalyze report {shell_word(text)}"
    block = render_summary(hostile(text, rows=9, kernels=9), command=command, top=9)
    assert_nothing_acts(block)
    assert "TA000" in block and "### GPU trace report: SUSPECT" in block


@given(st.text(alphabet=st.sampled_from(list("ab`|\\<>[]()!*_~#@:/.$&w1-%'\" \n")), max_size=30))
def test_no_mixture_of_marks_acts(text):
    data = report(
        text,
        kernels=[kernel(text)],
        findings=[finding("TA201", text)],
        abstentions=[Abstention("TA202", text)],
        trace=make(model.TraceSummary, text, notes=[text]),
    )
    assert_nothing_acts(render_summary(data, command=f"traceanalyze report {shell_word(text)}"))


@pytest.mark.parametrize("text", ACTING)
@pytest.mark.parametrize("top", [1, 5, 500])
def test_a_block_stays_under_16000_characters_and_60_lines_so_that_several_fit_one_comment(text, top):
    block = render_summary(hostile(text, rows=40, kernels=500), command="x" * 5000, top=top)
    assert len(block) <= MAX_CHARACTERS and MAX_CHARACTERS * 4 < 65_536
    assert "5,000 characters and is not shown" in block


def test_what_does_not_fit_is_counted():
    data = report(
        kernels=[kernel(f"k{n}") for n in range(30)],
        findings=[finding(f"TA{n}") for n in range(201, 208)],
        abstentions=[Abstention(f"TA{n}", f"reason {n}") for n in range(301, 308)],
    )
    block = render_summary(data)
    assert "25 more kernels" in block and "- and 2 more: TA206, TA207" in block
    assert "Not judged (7)" in block and "; and 3 more</sub>" in block


@pytest.mark.parametrize("status", ["ok", "suspect", "cannot-judge"])
def test_a_report_without_kernels_has_no_empty_table(status):
    block = render_summary(report(verdict=Verdict(status, "said")))
    assert "|" not in block and "No findings." in block and "**said**" in block
    assert f"### GPU trace report: {status.upper().replace('-', ' ')} (fake.json)" in block


@pytest.mark.parametrize("path", SAMPLES, ids=[p.stem for p in SAMPLES])
def test_every_sample_gives_verdict_table_findings_conditions_and_command(path):
    data = ta.analyze(path).data
    block = render_summary(data, command=f"traceanalyze report {path.name}")
    assert_nothing_acts(block)
    html = GFM.render(block)
    assert html.count("<table>") == 1 and html.count("<h3>") == 1 and f"traceanalyze report {path.name}" in html
    assert all(f.rule in block for f in data.findings[:5])
    assert (
        "Conditions:" in block
        and data.version in block.split("Conditions:")[1]
        and data.version not in block.split("Conditions:")[0]
    )
    assert "SIMULATED" in block and len(block) < 8_000


def test_a_later_run_of_the_same_benchmark_changes_no_line_without_a_measured_number(tmp_path):
    # the same run an hour later, under another process id: only the trace's times differ
    text = SAMPLES[0].read_text(encoding="utf-8")
    blocks = []
    for shift in (0, 3_600_000_000):
        moved = re.sub(r'"ts": ?([0-9.]+)', lambda m, s=shift: f'"ts":{float(m[1]) + s:.3f}', text)
        (tmp_path / "run.json").write_text(moved, encoding="utf-8")
        blocks.append(render_summary(ta.analyze(tmp_path / "run.json").data))
    assert blocks[0] == blocks[1]


def test_the_folder_of_a_trace_is_never_told(tmp_path):
    folder = tmp_path / "host-17"
    folder.mkdir()
    (folder / "run.json").write_bytes(SAMPLES[0].read_bytes())
    assert "host-17" not in summary_of(folder / "run.json")


# the marker


@pytest.mark.parametrize("name", [*ACTING, "-", "--", "->", "---", "a-", "-a", "x --> y", "%2D", "a--b"])
def test_a_marker_is_one_comment_that_its_name_cannot_close(name):
    line = marker(name)
    assert (
        line.startswith("<!-- traceanalyzer:report") and line.endswith(" -->") and line.isascii() and len(line) < 1600
    )
    inside = line[4:-3]
    assert not re.search(r"--|[<>\n\r@#]", inside) and not inside.startswith((">", "->")) and not inside.endswith("-")
    assert GFM.render(line + "\ntext").startswith(line)


def test_markers_of_different_names_differ():
    names = [
        "a-b",
        "a--b",
        "a%2Db",
        "a-%2Db",
        "A-b",
        "a b",
        "a\nb",
        "x" * 200,
        "x" * 201,
        "x" * 200 + "y",
        "\ud800",
        "\ud801",
        "",
    ]
    assert len({marker(n) for n in names}) == len(names)


def test_a_plain_name_stands_in_its_marker_as_it_is():
    assert marker("bench_run-2.pt.trace.json.gz") == "<!-- traceanalyzer:report bench_run-2.pt.trace.json.gz -->"
    assert marker() == "<!-- traceanalyzer:report -->"


# the command


def run_bash(command: str, folder: Path) -> subprocess.CompletedProcess[bytes]:
    """Run one line as a reader would who pasted it, with the command of this installation."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(["bash", "-c", command], cwd=folder, capture_output=True, env={**os.environ, "PATH": path})


def summary_of(path: Path, *options: str) -> str:
    command = [
        sys.executable,
        "-m",
        "traceanalyzer",
        "report",
        str(path),
        "--format",
        "markdown",
        "--summary",
        *options,
    ]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@pytest.mark.parametrize(
    "name",
    [
        "run.json",
        "a b'c\"d$(x)`y`.json",
        "line\nbreak.json",
        "-o.json",
        "漢字\u202e.json",
        "back\\slash!|.json",
        "```.json",
        "~.json",
    ],
)
def test_the_printed_command_makes_the_same_block_again(tmp_path, name):
    (tmp_path / name).write_bytes(SAMPLES[0].read_bytes())
    block = summary_of(tmp_path / name, "--claim", "9.8us:a b'c", "--kernel", "^triton|-x", "--top", "3", "-o", "-")
    command = re.search(r"```sh\n(.*)\n```", block)[1]
    assert "-o" not in command.replace("-o.json", "") and str(tmp_path) not in command
    assert run_bash(command, tmp_path).stdout.decode() == block
    assert_nothing_acts(block)


@given(st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=30))
def test_a_shell_word_is_read_back_as_the_same_text(text):
    word = shell_word(text)
    assert word.isprintable()
    out = subprocess.run(
        ["bash", "-c", f"printf %s {word}"], capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8"}
    ).stdout
    assert out == text.encode()


def test_a_name_that_is_no_utf8_is_read_back_byte_for_byte():
    word = shell_word(os.fsdecode(b"a\xff\x9bb.json"))
    assert word == r"$'a\xff\x9bb.json'"
    assert subprocess.run(["bash", "-c", f"printf %s {word}"], capture_output=True).stdout == b"a\xff\x9bb.json"


@pytest.mark.parametrize("other", ["text", "json", "csv"])
def test_summary_with_another_format_is_one_line_and_exit_code_2(other):
    command = [sys.executable, "-m", "traceanalyzer", "report", str(SAMPLES[0]), "--format", other, "--summary"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "") and len(done.stderr.splitlines()) == 1
    assert "add --format markdown" in done.stderr
