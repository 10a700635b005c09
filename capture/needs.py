"""What a capture needs and may not find."""

from __future__ import annotations

from importlib.util import find_spec

from traceanalyzer.errors import CaptureUnavailable


def require_torch() -> None:
    """Raise :class:`~traceanalyzer.errors.CaptureUnavailable` (exit code 4) unless torch can be imported."""
    if find_spec("torch") is None:
        raise CaptureUnavailable(
            "no_torch",
            "capture needs torch, which is not installed",
            hint="install the extra: pip install -e '.[capture]'",
        )
