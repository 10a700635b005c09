"""The pages for contributors name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/glossary.md", "docs/architecture.md", "docs/lint.md", "CONTRIBUTING.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", re.sub(r"`[^`\n]*`", "", text)):  # `kernel[grid](x)` is code
        assert ((ROOT / page).parent / target).exists(), target
    for name in re.findall(r"`((?:traceanalyzer|capture|kernels|tests|docs|samples)/[\w./]+)`", text):
        if not name.startswith("kernels.") and "NAME" not in name:
            assert (ROOT / name).exists(), name


def test_every_class_of_the_ledger_is_in_the_glossary():
    from traceanalyzer.analysis.ledger import DrainedBy, LedgerClass

    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    assert all(re.search(rf"\b{c.label}\b", text) for c in LedgerClass)
    assert "drained by" in text and len(DrainedBy) == 5


def test_every_lint_rule_is_in_its_page():
    pytest.importorskip("libcst")
    from traceanalyzer.lint.registry import LINT_RULES

    text = (ROOT / "docs" / "lint.md").read_text(encoding="utf-8")
    for rule in LINT_RULES:
        line = next(x for x in text.splitlines() if x.startswith(f"| {rule.code} {rule.name} |"))
        assert ("yes" in line.split("|")[3]) == rule.fixable


def test_every_folder_of_the_package_is_in_the_picture():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for folder in (ROOT / "traceanalyzer").iterdir():
        if folder.is_dir() and (folder / "__init__.py").exists() and folder.name != "schemas":
            assert f"`traceanalyzer/{folder.name}`" in text, folder.name
