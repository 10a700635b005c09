"""Repair of one damaged event: make its text JSON again without guessing at its meaning.

What is repaired: raw control bytes, unknown escapes and lone surrogates inside strings, bytes that are not UTF-8, bare
words such as ``NaN`` (they become null, so the row has no such value), stray commas, numbers in a form
JSON does not know (also null). What cannot be repaired is dropped by the caller and counted.
"""

from __future__ import annotations

import re

from traceanalyzer.trace.kineto.text_window import STRING
from traceanalyzer.trace.possessive import compiled

_ESCAPE = re.compile(
    rb"""\\(?:
        u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}  # a surrogate pair
        | (?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})                 # half of one
        | u[0-9a-fA-F]{4} | ["\\/bfnrt] | )""",
    re.X,
)
_CONTROL = re.compile(rb"[\x00-\x1f]")
_JSON_WORD = re.compile(rb"(?:-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null)\Z")
_ODD = re.compile(rb"[\x00-\x1f\\\x80-\xff]")
"""What a string may hold that has to be looked at."""
_PIECE = compiled(
    rb"(?P<string>" + STRING + rb')|(?P<open>")|(?P<bare>[^\s{}\[\],:"]++)|,(?=\s*+[,}\]])|(?<=[{\[,])\s*+,', re.S
)
"""A string, a quote of one that never ends, a bare word, a stray comma."""
_STRING, _OPEN, _WORD = 1, 2, 3
_QUOTE_AFTER_BACKSLASH = compiled(rb'\\"(?=\s*+[,}\]:])')


def repair_event(text: bytes) -> bytes:
    """Return the event with its strings, words and commas made valid; the caller decodes and decides."""
    plain = _ODD.search(text) is None
    out: list[bytes] = []
    position = 0
    for match in _PIECE.finditer(text):
        kind = match.lastindex
        if kind == _STRING:
            if plain:
                continue
            fixed = _repair_string(match[0])
        elif kind == _WORD:
            if _JSON_WORD.match(match[0]):
                continue
            fixed = b"null"
        elif kind == _OPEN:  # a string that never ends: nothing can be made of this text
            return text
        else:
            fixed = b""
        out += (text[position : match.start()], fixed)
        position = match.end()
    out.append(text[position:])
    return b"".join(out)


def repair_trailing_backslash(text: bytes) -> bytes:
    r"""Return the event with ``\"`` read as the end of a string where a comma, colon or bracket follows.

    A Windows folder written without escaping (``"C:\dir\"``) hides its closing quote this way.
    """
    return _QUOTE_AFTER_BACKSLASH.sub(rb'\\\\"', text)


def decode_text(text: bytes) -> tuple[str, bool]:
    """Return the string of a JSON string literal's text and whether bytes had to be replaced in it."""
    import json

    damaged = False
    try:
        decoded = text.decode("utf-8")
    except UnicodeDecodeError:
        decoded, damaged = text.decode("utf-8", "replace"), True
    try:
        value = json.loads(decoded, strict=False)
    except ValueError:
        return decoded.strip().strip('"'), True
    if not isinstance(value, str):
        return decoded.strip(), damaged
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate escape
        return value.encode("utf-8", "replace").decode("utf-8"), True
    return value, damaged


def _mend_escape(match: re.Match[bytes]) -> bytes:
    if match["lone"]:
        return rb"\ufffd"
    return rb"\\" if len(match[0]) == 1 else match[0]


def _repair_string(literal: bytes) -> bytes:
    literal = _CONTROL.sub(lambda m: b"\\u%04x" % m[0][0], literal)
    if b"\\" in literal:
        inner = _ESCAPE.sub(_mend_escape, literal[1:-1])
        literal = b'"' + inner + b'"'
    try:
        literal.decode("utf-8")
    except UnicodeDecodeError:
        literal = literal.decode("utf-8", "replace").encode("utf-8")
    return literal
