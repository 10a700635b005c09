"""Ids as traces write them: processes, threads and numbers in quotes, in words or bare."""

from __future__ import annotations

import re

from traceanalyzer.trace.kineto.repair import decode_text

_DIGITS = re.compile(r"-?\d+")


def id_text(raw: bytes) -> str:
    """Return a pid or tid as text: quotes gone, so that ``"25738"`` and ``25738`` are one thread."""
    text = raw.decode("utf-8", "replace").strip()
    if text.startswith('"'):
        text = decode_text(raw)[0]
    return text.strip() if text not in ("", "null") else ""


def to_int(value: object) -> int | None:
    """Return an id written as number, decimal string or ``"stream 7"``; None when there is none in it."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, float):
        return int(value) if abs(value) < 1 << 62 else None  # NaN compares false
    if isinstance(value, str):
        found = _DIGITS.findall(value)
        value = int(found[-1]) if len(found) == 1 or (value.lower().startswith("stream") and found) else None
    if isinstance(value, int):
        # 64-bit addresses and hashes come unsigned; two's complement keeps them distinct
        return value if -(1 << 63) < value < 1 << 63 else (value & (1 << 63) - 1)
    return None
