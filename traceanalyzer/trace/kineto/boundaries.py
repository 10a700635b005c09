"""Where one event ends and the next begins, in text that may be cut or damaged.

The quick way is a guess that the decoder then proves: ``[`` + text up to a guessed boundary + ``]`` is
valid JSON only if the guess lies between two events of the array, for inside a string or a nested value
something stays unclosed. The exact way walks strings and brackets.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]|"', re.S)
_SPACE = b" \t\r\n"
# A brace that follows a comma or bracket and opens with a key every event has. `"args": {"name": ...}`
# does not match: a colon stands before its brace.
EVENT_START = re.compile(rb'[,\[}]\s*(\{\s*"(?:ph|name|cat|args|pid|tid|ts|dur|id|s|bp)"\s*:)')


def last_boundary(buffer: bytes, low: int, high: int) -> int:
    """Return the position just after the last ``}`` in [low, high) that ``, {`` follows; -1 if none does."""
    brace = high
    while (brace := buffer.rfind(b"{", low + 1, brace)) > low:
        at = brace - 1
        while at > low and buffer[at] in _SPACE:
            at -= 1
        if buffer[at] != 0x2C:
            continue
        at -= 1
        while at > low and buffer[at] in _SPACE:
            at -= 1
        if at > low and buffer[at] == 0x7D:
            return at + 1
    return -1


def close_of(buffer: bytes, start: int, max_depth: int) -> tuple[int, int]:
    """Walk the value that opens at ``start``.

    Returns (position after its closing bracket or -1 if it never closes, deepest nesting seen). A string
    that never ends counts as never closing.
    """
    depth = deepest = 0
    for match in _TOKEN.finditer(buffer, start):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            if depth > deepest:
                deepest = depth
                if deepest > max_depth * 64:  # a depth bomb: no need to count the rest
                    return -1, deepest
        elif token in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                return match.end(), deepest
        elif token == b'"':
            return -1, deepest
    return -1, deepest


def next_event_start(buffer: bytes, after: int) -> int:
    """Return where the next text that looks like the start of an event lies, or -1."""
    match = EVENT_START.search(buffer, after)
    return match.start(1) if match else -1


def find_key(buffer: bytes, key: bytes, start: int = 0) -> tuple[int, int, bool]:
    """Find ``"key":`` at nesting depth 1 of the object that opens at ``start``.

    Returns (start of the key, position of its value, True) or (-1, -1, complete) where ``complete`` says
    whether the object closed without it.
    """
    quoted = b'"' + key + b'"'
    depth = 0
    for match in _TOKEN.finditer(buffer, start):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
        elif token in (b"}", b"]"):
            depth -= 1
            if depth <= 0:
                return -1, -1, True
        elif depth == 1 and token == quoted:
            value = re.compile(rb"\s*:\s*(?=\S)").match(buffer, match.end())
            if value:
                return match.start(), value.end(), True
        elif token == b'"':
            return -1, -1, False
    return -1, -1, False


def end_of_open_object(rest: bytes) -> int:
    """Return the position in ``rest`` of the brace that closes the object it stands in; -1 if none does."""
    close, _ = close_of(b"{" + rest, 0, 1 << 20)
    return close - 2 if close > 0 else -1
