"""Capture: record a benchmark so that it can be judged. Installed as ``traceanalyzer.capture``.

This package will run a function under named timing protocols and write a trace with a sidecar of its
conditions. So far it holds what every protocol shares: the check that a capture is possible at all.
Nothing here is imported by the analyser.
"""

from __future__ import annotations

from importlib.util import find_spec

from traceanalyzer.errors import CaptureUnavailable

__all__ = ["require_torch"]


def require_torch() -> None:
    """Raise :class:`~traceanalyzer.errors.CaptureUnavailable` (exit code 4) unless torch can be imported."""
    if find_spec("torch") is None:
        raise CaptureUnavailable(
            "no_torch",
            "capture needs torch, which is not installed",
            hint="install the extra: pip install -e '.[capture]'",
        )
