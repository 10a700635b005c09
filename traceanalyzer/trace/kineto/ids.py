"""Ids as traces write them: processes, threads and numbers in quotes, in words or bare."""

from __future__ import annotations

import re

from traceanalyzer.trace.kineto.repair import decode_text
from traceanalyzer.trace.whole_numbers import BAD_ID, whole_number

_DIGITS = re.compile(r"-?[0-9]+")
_LONGEST = 256
_MOST_DIGITS = 20


def id_text(raw: bytes) -> str:
    """Return a pid or tid as text: quotes gone, so that ``"25738"`` and ``25738`` are one thread."""
    text = raw.decode("utf-8", "replace").strip()
    if text.startswith('"'):
        text = decode_text(raw)[0]
    return text.strip() if text not in ("", "null") else ""


def to_int(value: object) -> int | None:
    """Return an id written as number, decimal string or ``"stream 7"``; None when there is none in it, or none of 64 bits."""
    if isinstance(value, str):
        found = _DIGITS.findall(value[:_LONGEST])
        value = found[-1] if len(found) == 1 or (value[:6].lower() == "stream" and found) else None
        if value is not None and len(value) > _MOST_DIGITS:
            return None
    return whole_number(value)


def lane_id(value: object) -> int | None:
    """Return a device or stream number as :func:`to_int` does; :data:`BAD_ID` for one that is there and cannot be one."""
    found = to_int(value)
    if found is not None or value is None:
        return found
    if isinstance(value, str):
        return BAD_ID if _DIGITS.search(value[:_LONGEST]) and len(_DIGITS.findall(value[:_LONGEST])) == 1 else None
    return BAD_ID if isinstance(value, int | float) and not isinstance(value, bool) else None
