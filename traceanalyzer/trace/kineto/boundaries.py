"""Where one event ends and the next begins, in text that may be cut or damaged.

The quick way is a guess that the decoder then proves: ``[`` + text up to a guessed boundary + ``]`` is
valid JSON only if the guess lies between two events of the array, for inside a string or a nested value
something stays unclosed.
"""

from __future__ import annotations

from traceanalyzer.trace.possessive import compiled

_SPACE = b" \t\r\n"
_MOST_BRACES = 512
_FEWEST_BRACES = 16
_BYTES_PER_BRACE = 64
_NEAR = 64
# A brace that follows a comma or bracket and opens with a key every event has. `"args": {"name": ...}`
# does not match: a colon comes before its brace.
EVENT_START = compiled(rb'[,\[}]\s{0,1024}+(\{\s{0,1024}+"(?:ph|name|cat|args|pid|tid|ts|dur|id|s|bp)"\s{0,16}+:)')
LONGEST_START = 4096
EVENTS_KEY = compiled(rb'("traceEvents"\s{0,1024}+:\s{0,1024}+[\[{])')


def last_boundary(buffer: bytes, low: int, high: int) -> int:
    """Return the position just after the last ``}`` in [low, high) that ``, {`` follows; -1 if none is near its end.

    No more than a few hundred braces are looked at: text full of braces that are no boundaries is read event by event.
    """
    brace = high
    for _ in range(min(_MOST_BRACES, _FEWEST_BRACES + (high - low) // _BYTES_PER_BRACE)):
        brace = buffer.rfind(b"{", low + 1, brace)
        if brace <= low:
            return -1
        at = _before(buffer, low, brace)
        if at > low and buffer[at] == 0x2C:
            at = _before(buffer, low, at)
            if at > low and buffer[at] == 0x7D:
                return at + 1
    return -1


def _before(buffer: bytes, low: int, high: int) -> int:
    """Return the position of the last byte in [low, high) that is no blank; ``low`` where there is none."""
    at = high - 1
    if at > low and buffer[at] not in _SPACE:
        return at
    width = _NEAR
    while high > low:
        begin = max(low, high - width)
        kept = buffer[begin:high].rstrip(_SPACE)
        if kept:
            return begin + len(kept) - 1
        high, width = begin, width * 8
    return low
