"""Nothing in a trace acts in an output: not in a terminal, not in GitHub Markdown, not in HTML."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from traceanalyzer.commands.output import write_output
from traceanalyzer.render.escape import html, log, markdown, markdown_code, terminal

GFM = MarkdownIt("gfm-like", {"html": True, "linkify": False}).enable(["table", "strikethrough"])
HOSTILE = [
    "a|b", "`code`", "``two``", "<script>alert(1)</script>", "<b>", "@octocat", "#123", "GH-7", "org/repo#5", "http://x.y", "www.x.y",
    "me@x.y", "![i](http://x)", "[l](http://x)", "**b** _i_ ~~s~~", "$x$ and $$y$$", ":rocket:", "&lt;b&gt;", "a\nb", "\x1b[31mred", "\\",
    "\\|", "|", "`", "</details>", "<!--", "-->", "mailto:a@b.c", "\u202egnp", "[x]: http://y", "\ud800", "a" * 5000, "", " ", "deadbeefcafe123",
    "0123456789abcdef0123456789abcdef01234567", "_www.x.y", "x_deadbeefcafe",
]  # fmt: skip


@pytest.mark.parametrize("text", HOSTILE)
def test_the_terminal_gets_one_printable_line(text):
    shown = terminal(text)
    assert shown.isprintable() and "\n" not in shown and len(shown) <= 2100


@given(st.text(max_size=200))
def test_any_text_is_one_printable_line(text):
    assert terminal(text).isprintable()


def cells_of(line: str) -> list[list]:
    tokens = GFM.parse(f"| a | b |\n| --- | --- |\n| {line} | 2 |\n")
    return [t.children or [] for i, t in enumerate(tokens) if t.type == "inline" and tokens[i - 1].type == "td_open"]


@pytest.mark.parametrize("escape", [markdown, markdown_code])
@pytest.mark.parametrize("text", HOSTILE)
def test_a_table_cell_stays_one_cell_of_plain_text(escape, text):
    assert_plain(escape, text)


@pytest.mark.parametrize("escape", [markdown, markdown_code])
@given(text=st.text(alphabet=st.sampled_from(list("ab`|\\<>[]()!*_~#@:/.$&w1- \n")), max_size=40))
def test_no_mixture_of_marks_acts(escape, text):
    assert_plain(escape, text)


def assert_plain(escape, text: str) -> None:
    cells = cells_of(escape(text))
    assert len(cells) == 2, "a pipe split the cell"
    allowed = (
        {"text", "code_inline", "text_special", "softbreak"} if escape is markdown_code else {"text", "text_special"}
    )
    assert {t.type for t in cells[0]} <= allowed
    if escape is markdown_code:
        assert len([t for t in cells[0] if t.type == "code_inline"]) == 1
    else:
        shown = "".join(t.content for t in cells[0])
        assert not re.search(r"@\w|#\w|GH-\d|://|www\.|:\w+:|(?<![^\W_])[0-9a-fA-F]{7}", shown), (
            "GitHub would link this"
        )
        assert shown.replace("\u200c", "").split() == terminal(text).split()


@pytest.mark.parametrize("text", HOSTILE)
def test_html_holds_no_tag_and_no_quote(text):
    assert not re.search("[<>\"']", html(text))


@pytest.mark.parametrize(
    "line", ["::error file=a::x", "  \t::add-mask::a", "a ##[add-matcher]x", "##vso[task.setvariable variable=x]y"]
)
def test_no_line_of_a_log_is_a_command_for_the_runner_of_a_job(line):
    def commands(text):
        return [row for row in text.splitlines() if row.lstrip().startswith("::") or re.search(r"##\w*\[", row)]

    text = f"a title\n{line}\nat::Tensor ## [1]\n"
    assert len(commands(text)) == 1 and not commands(log(text))
    assert log(text).startswith("a title\n") and log(text).endswith("\nat::Tensor ## [1]\n")
    data = json.dumps({"name": line}, indent=1)
    assert not commands(log(data, json=True)) and json.loads(log(data, json=True)) == {"name": line}
    assert not commands("x" + terminal(line))


def test_standard_output_of_a_command_holds_no_command_of_a_trace(capsys):
    for form, lines in (("text", "::error::x"), ("github", "::warning::x"), ("json", '"##[group]"')):
        write_output(lines, None, form=form)
    assert capsys.readouterr().out == '\\x3a:error::x\n::warning::x\n"\\u0023#[group]"\n'
