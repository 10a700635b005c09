"""What a shell is told when a word is completed."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from traceanalyzer.cli import cli


def completed(*words: str) -> list[tuple[str, str]]:
    *before, incomplete = words
    items = ShellComplete(cli, {}, "traceanalyze", "_TRACEANALYZE_COMPLETE").get_completions(before, incomplete)
    return [(item.type, item.value) for item in items]


def test_commands_options_and_values_are_completed():
    assert completed("rep") == [("plain", "report")]
    assert ("plain", "--section") in completed("report", "--sec")
    assert completed("report", "--format", "ht") == [("plain", "html")]


def test_the_command_of_the_action_is_hidden():
    assert completed("a") == [("plain", "annotate")]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("report", "tr"), "file"), (("compare", "base.json", "he"), "file"), (("check", "a.json", ""), "file"),
        (("annotate", ""), "file"), (("lint", "be"), "file"), (("ranks", "tr"), "dir"),
    ],
)  # fmt: skip
def test_names_of_traces_are_left_to_the_shell(words, kind):
    assert completed(*words) == [(kind, words[-1])]
