"""The user's own line: which frames are the user's, and that an item names the innermost of them."""

from __future__ import annotations

import numpy as np
import pytest

import traceanalyzer as ta
from tests.builders import trace
from traceanalyzer.analysis.ledger.lines import is_users, short_line
from traceanalyzer.options import AnalysisOptions


@pytest.mark.parametrize(
    ("frame", "users"),
    [
        ("train.py(76): main", True),
        ("/home/me/project/train.py(76): main", True),
        ("model/blocks.py(12): forward", True),
        ("torch/nn/modules/module.py(1743): _call_impl", False),
        ("/usr/lib/python3.11/site-packages/mine/x.py(3): f", False),
        ("/opt/venv/lib/python3.12/dist-packages/x.py(3): f", False),
        ("threading.py(917): run", False),
        ("multiprocessing/process.py(108): run", False),
        ("/tmp/torchinductor_me/ab/cab.py(132): call", False),
        ("<built-in method item of Tensor object at 0x7f>", False),
        ("nn.Module: Linear_3", False),
    ],
)
def test_which_frames_are_the_users(frame, users):
    assert is_users(frame) is users


@pytest.mark.parametrize(
    ("frame", "line"), [("/a/b/train.py(76): main", "train.py:76"), ("C:\\me\\t.py(1): f", "t.py:1"), ("x", "")]
)
def test_a_line_is_shown_without_folder_and_function(frame, line):
    assert short_line(frame) == line


@pytest.fixture
def stacked(tmp_path):
    """Kernels 100 us apart; the host is in a line of the user's, in a library's below it."""
    builder = trace().loop(5, 100, 5, 20)
    builder.host("python_function", "/home/me/train.py(9): step", 990, 600)
    builder.host("python_function", "torch/_tensor.py(12): item", 1030, 40)
    return builder.write(tmp_path / "t.json")


def test_a_cause_names_the_users_line_and_no_folder(stacked):
    found = ta.analyze(stacked).data.ledger[0].items
    python = [i for i in found if i.class_ == "python"]
    assert python
    assert {i.line for i in found if i.class_ not in ("compute",)} == {"train.py:9"}
    whole = ta.analyze(stacked, options=AnalysisOptions(show_paths=True))
    assert {i.line for i in whole.data.ledger[0].items if i.class_ == "python"} == {"/home/me/train.py(9): step"}


def test_frames_name_what_nothing_else_names(stacked):
    ledger = ta.analyze(stacked).data.ledger[0]
    names = {i.name for i in ledger.items if i.class_ == "python"}
    assert names == {"train.py(9): step", "torch/_tensor.py(12): item"}
    assert np.isclose(sum(ledger.classes.values()), ledger.span_us)
