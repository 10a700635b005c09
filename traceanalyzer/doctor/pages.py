"""Generates docs/rules.md from the rule files: ``python -m traceanalyzer.doctor.pages`` (``--check`` compares)."""

from __future__ import annotations

import sys
from pathlib import Path

from traceanalyzer.doctor.docs import rules_page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "rules.md"


def main() -> None:
    """Write the page, or compare it with ``--check``."""
    text = rules_page()
    stale = not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != text
    if "--check" in sys.argv[1:]:
        sys.exit("docs/rules.md is stale, run python -m traceanalyzer.doctor.pages" if stale else 0)
    if stale:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
