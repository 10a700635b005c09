"""Each lint rule against its own examples: the bad ones fire it, the good ones do not, --fix makes what it says."""

from __future__ import annotations

import pytest

pytest.importorskip("libcst")

from traceanalyzer.lint.engine import fixed_text, lint_text
from traceanalyzer.lint.registry import LINT_RULES

BAD = [(r, e) for r in LINT_RULES for e in r.bad]
GOOD = [(r, e) for r in LINT_RULES for e in r.good]


def names(pairs):
    return [f"{r.code}-{e.title.replace(' ', '-')}" for r, e in pairs]


@pytest.mark.parametrize(("rule", "example"), BAD, ids=names(BAD))
def test_bad_examples_fire(rule, example):
    found = lint_text("bench.py", example.text, [rule()])
    assert not found.fault and [p.rule for p in found.problems][:1] == [rule.code]
    for p in found.problems:
        assert "{" not in rule.messages[p.code].format(**p.params)


@pytest.mark.parametrize(("rule", "example"), GOOD, ids=names(GOOD))
def test_good_examples_are_silent(rule, example):
    found = lint_text("bench.py", example.text, [rule()])
    assert not found.fault and found.problems == []


@pytest.mark.parametrize(("rule", "example"), [b for b in BAD if b[1].fixed], ids=names([b for b in BAD if b[1].fixed]))
def test_a_fix_makes_what_it_says_and_is_done_once(rule, example):
    mended, used = fixed_text(example.text, lint_text("bench.py", example.text, [rule()]))
    assert used and mended == example.fixed
    again = lint_text("bench.py", mended, [rule()])
    assert again.problems == [] and fixed_text(mended, again) == (mended, 0)


def test_every_rule_has_examples_documentation_and_a_code_of_its_own():
    import sys

    assert len(LINT_RULES) >= 12 and len({r.code for r in LINT_RULES}) == len(LINT_RULES)
    for rule in LINT_RULES:
        assert rule.bad and rule.good and rule.messages
        assert (sys.modules[rule.__module__].__doc__ or "").startswith(f"{rule.code} {rule.name}: ")
        assert rule.fixable == any(e.fixed for e in rule.bad)
