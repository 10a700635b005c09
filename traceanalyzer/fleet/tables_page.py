"""The section of docs/fleet.md that lists the tables: ``python -m traceanalyzer.fleet.tables_page`` writes it."""

from __future__ import annotations

from pathlib import Path

from traceanalyzer.fleet.tables import ABOUT, COMMON, TABLES, TableColumn

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
_BEGINS = "<!-- the tables: python -m traceanalyzer.fleet.tables_page -->\n"


def tables_section() -> str:
    """Return the section: the common columns, then the own columns of each table."""
    parts = ["### In every table\n", _table(COMMON)]
    for name, columns in TABLES.items():
        parts += [f"### {name}\n", f"{ABOUT[name][0].upper()}{ABOUT[name][1:]}.\n", _table(columns[len(COMMON) :])]
    return "\n".join(parts)


def _table(columns: tuple[TableColumn, ...]) -> str:
    rows = [f"| `{c.name}` | {c.kind}{'' if c.required else ', null'} | {c.doc} |" for c in columns]
    return "\n".join(["| column | type | meaning |", "| --- | --- | --- |", *rows, ""])


def with_section(text: str) -> str:
    """Return the page with its section as the code has it."""
    return text.partition(_BEGINS)[0] + _BEGINS + "\n" + tables_section()


if __name__ == "__main__":
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
