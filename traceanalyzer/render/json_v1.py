"""The JSON report, version 1 (docs/schema.md)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Protocol

from traceanalyzer.render.base import ComparisonResult, RenderSettings
from traceanalyzer.report.compare.model import COMPARE_SCHEMA, ComparisonData, Comparisons
from traceanalyzer.report.model import ReportData

_TOKENS = 10_000
# A pair of backslashes first, so that an escaped backslash before a "u" is not read as an escape.
_ESCAPES = re.compile(r"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}|(?P<lone>\\ud[89a-f][0-9a-f]{2})")


def render_json(report: ReportData, *, indent: int | None = 1) -> str:
    """Return the report as standard JSON: no NaN, fields in their documented order, one newline at the end.

    All but ASCII is escaped, so that neither a terminal nor a wrong encoding can be hurt by a name.
    """
    return dump(report.to_dict(), indent=indent)


def render_comparison_json(found: Sequence[ComparisonData], *, indent: int | None = 1) -> str:
    """Return one comparison as standard JSON, or several in ``comparisons``."""
    whole = found[0] if len(found) == 1 else Comparisons(COMPARE_SCHEMA, found[0].version, list(found))
    return dump(whole.to_dict(), indent=indent)


def dump(value: object, *, indent: int | None = 1) -> str:
    """Return a value as JSON in ASCII; half of a surrogate pair, which strict readers refuse, becomes U+FFFD."""
    return "".join(map(_strict, chain(_pieces(value, indent), ("\n",))))


def _strict(text: str) -> str:
    return _ESCAPES.sub(lambda m: "\\ufffd" if m["lone"] else m[0], text) if "\\ud" in text else text


def _pieces(value: object, indent: int | None) -> Iterator[str]:
    # the encoder makes a token of every value and comma; joined at once they take ten times the memory of the text
    tokens = json.JSONEncoder(indent=indent, allow_nan=False, ensure_ascii=True).iterencode(value)
    while piece := "".join(islice(tokens, _TOKENS)):
        yield piece


class _HasDict(Protocol):
    def to_dict(self) -> dict[str, Any]: ...


def json_of(data: _HasDict, settings: RenderSettings) -> str:  # noqa: ARG001 - JSON holds everything, always
    """Return any finished data as JSON."""
    return dump(data.to_dict())


def json_report(report: ReportData, settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the whole report."""
    return render_json(report)


def json_comparison(results: Sequence[ComparisonResult], settings: RenderSettings) -> str:  # noqa: ARG001
    """Return the results of a comparison."""
    return render_comparison_json([r.data for r in results])
