"""A saved ``bench.json``, read back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from traceanalyzer.errors import OptionError
from traceanalyzer.report.bench.model import SCHEMA, BenchTable

MOST_BYTES = 64 << 20
TABLE_NAME = "bench.json"


@dataclass(frozen=True)
class _SavedVersion:
    schema: str = ""


def source_of(path: Path) -> str:
    """Return what tells a saved table from the others: its folder's name where the file is called as all are."""
    return path.parent.name if path.name == TABLE_NAME and path.parent.name else path.name


def read_table(path: Path) -> BenchTable:
    """Return the table of a file, or of the folder that ``bench -o`` wrote. Raises OptionError, which says what was found."""
    import msgspec

    path = path / TABLE_NAME if path.is_dir() else path
    try:
        if path.stat().st_size > MOST_BYTES:
            raise OptionError(
                "too_large", f"'{path.name}' is larger than {MOST_BYTES >> 20} MiB", hint="give a bench.json"
            )
        content = path.read_bytes()
    except OSError as error:
        raise OptionError("cannot_read", f"'{path.name}': {error.strerror}", hint="give a bench.json") from None
    try:
        schema = msgspec.json.decode(content, type=_SavedVersion).schema
        if schema != SCHEMA:
            raise OptionError("not_a_bench", f"'{path.name}' has the schema {schema!r:.60}; expected {SCHEMA}")
        return msgspec.json.decode(content, type=BenchTable)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        found = " ".join(str(error).split())[:160]
        raise OptionError(
            "not_a_bench", f"'{path.name}' is no table of bench ({found})", hint="give the file that bench -o wrote"
        ) from None
