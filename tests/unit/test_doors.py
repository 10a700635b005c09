"""CONTRIBUTING.md is true: what is added as a file is in the one list that its how-to names, and in no other."""

from __future__ import annotations

import inspect
from importlib import import_module
from pathlib import Path

import pytest

from traceanalyzer.doctor.registry import ALL_RULES, LEADS
from traceanalyzer.lint.registry import LINT_RULES
from traceanalyzer.render import formats
from traceanalyzer.render.base import Renderer

ROOT = Path(__file__).resolve().parents[2]
LISTS = {name: found for name, found in vars(formats).items() if isinstance(found, tuple)}
RENDERERS = [(product, renderer) for product, renderers in LISTS.items() for renderer in renderers]


def files(folder: str) -> set[str]:
    return {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__", "base"}


def homes(classes) -> set[str]:
    return {c.__module__.rpartition(".")[2] for c in classes}


def test_every_rule_is_in_the_registry_and_has_a_page():
    assert homes(ALL_RULES) == files("traceanalyzer/doctor/rules")
    assert {p.stem for p in (ROOT / "docs" / "rules").glob("TA*.md")} == {r.code for r in ALL_RULES}
    assert set(LEADS) <= {r.code for r in ALL_RULES}


def test_every_lint_rule_is_in_the_registry_and_on_its_page():
    assert homes(LINT_RULES) == files("traceanalyzer/lint/rules")
    page = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    assert [r.code for r in LINT_RULES if f"{r.code} {r.name}" not in page] == []


@pytest.mark.parametrize(("product", "renderer"), RENDERERS, ids=[f"{p}-{r.name}" for p, r in RENDERERS])
def test_every_renderer_is_a_function_of_data_and_settings(product, renderer):
    assert isinstance(renderer, Renderer) and [r.name for r in LISTS[product]].count(renderer.name) == 1
    module, _, function = renderer.place.partition(":")
    found = getattr(import_module(f"traceanalyzer.render.{module}"), function)
    assert len(inspect.signature(found).parameters) == 2


def test_every_protocol_is_listed_has_a_title_and_a_closed_form():
    from traceanalyzer.analysis import protocols as model
    from traceanalyzer.capture.protocols import PROTOCOLS, TIMED
    from traceanalyzer.capture.protocols.profiler import Profiler
    from traceanalyzer.render.blocks import LADDER_TITLES

    assert homes([*TIMED, Profiler]) == files("capture/protocols")
    # the backlog protocol measures the queue itself: the model has no reading of it
    assert set(PROTOCOLS) - {"backlog"} == set(model.PROTOCOLS) and LADDER_TITLES == model.TITLES


def test_every_framework_is_a_line_with_a_function_that_opens_its_device():
    from traceanalyzer.capture.frameworks import _ADAPTERS

    assert {a.place.partition(":")[0] for a in _ADAPTERS.values()} == files("capture/frameworks")
    for adapter in _ADAPTERS.values():
        module, _, function = adapter.place.partition(":")
        assert f"def {function}(" in (ROOT / "capture" / "frameworks" / f"{module}.py").read_text(encoding="utf-8")
