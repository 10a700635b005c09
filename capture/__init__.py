"""Capture: record a benchmark so that it can be judged. Installed as ``traceanalyzer.capture``.

>>> from traceanalyzer.capture import capture, timed
>>> result = capture(my_op, x, y, reference=my_reference, out="run")     # doctest: +SKIP
>>> print(result.report().verdict.headline)                              # doctest: +SKIP

Nothing here is imported by the analyser, and importing it loads no framework.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from traceanalyzer.capture.needs import require_torch

if TYPE_CHECKING:
    from traceanalyzer.capture.api import Capture, capture
    from traceanalyzer.capture.benchmark import benchmark
    from traceanalyzer.capture.measure import Measured, measure
    from traceanalyzer.capture.minimal_timer import Timed, timed
    from traceanalyzer.capture.protocols import PROTOCOLS

__all__ = ["PROTOCOLS", "Capture", "Measured", "Timed", "benchmark", "capture", "measure", "require_torch", "timed"]

_HOMES = {
    "Capture": "traceanalyzer.capture.api",
    "capture": "traceanalyzer.capture.api",
    "benchmark": "traceanalyzer.capture.benchmark",
    "Measured": "traceanalyzer.capture.measure",
    "measure": "traceanalyzer.capture.measure",
    "PROTOCOLS": "traceanalyzer.capture.protocols",
    "Timed": "traceanalyzer.capture.minimal_timer",
    "timed": "traceanalyzer.capture.minimal_timer",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        from importlib import import_module

        found = getattr(import_module(_HOMES[name]), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'traceanalyzer.capture' has no attribute {name!r}")
