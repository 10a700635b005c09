"""traceanalyzer: says whether a GPU benchmark can be trusted, from its profiler trace.

>>> import traceanalyzer as ta
>>> report = ta.analyze("trace.json")          # doctest: +SKIP
>>> report.verdict.headline                    # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceanalyzer._version import __version__

if TYPE_CHECKING:
    from traceanalyzer.api import analyze, compare, read
    from traceanalyzer.options import AnalysisOptions, ReadLimits, Selection
    from traceanalyzer.report.compare.public import Comparison
    from traceanalyzer.report.public import Report

__all__ = [
    "AnalysisOptions", "Comparison", "ReadLimits", "Report", "Selection", "__version__", "analyze", "compare", "read",
]  # fmt: skip

# Loaded on first use: `import traceanalyzer` and `traceanalyze --help` must not pay for numpy.
_HOMES = {
    "analyze": "traceanalyzer.api",
    "compare": "traceanalyzer.api",
    "Comparison": "traceanalyzer.report.compare.public",
    "read": "traceanalyzer.api",
    "AnalysisOptions": "traceanalyzer.options",
    "ReadLimits": "traceanalyzer.options",
    "Selection": "traceanalyzer.options",
    "Report": "traceanalyzer.report.public",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'traceanalyzer' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
