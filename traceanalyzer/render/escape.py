"""Text from a trace is hostile: what it may contain is made harmless here, once per kind of output."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from functools import lru_cache

MAX_TEXT = 2000
"""No name of a trace takes more characters than this in an output for people."""

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_\[\]|~!])")
# What GitHub links or replaces in finished text, where a backslash does not help: mentions, issue and commit
# references, bare addresses, emoji names. "_www." is an address as well, and any seven hexadecimal digits that are left
# together are a commit.
_TRIGGERS = re.compile(
    r"(?i)@|\#(?=\w)|\bGH(?=-)|:(?=//)|(?<![^\W_])w(?=ww\.)|(?<=:)(?=[\w+-]+:)|\b(?:mailto|xmpp)(?=:)|[0-9a-f]{6}(?=[0-9a-f])"
)
_BREAK = "&#8204;"
_BLANK = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Fillers that count as letters or symbols and show nothing: two names could differ in them alone."""


_RUNNER_COMMAND = re.compile(r"#(?=#\w*\[)")
_RUNNER_LINE = re.compile(r"(?m)^([^\S\n]*):(?=:)")


def terminal(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text on one line with every character that is not plainly printable as a visible escape.

    Control bytes, ANSI sequences, bidirectional and zero-width characters, and lone surrogates end here.
    """
    # bounded once to save work, and once more because an escape takes up to ten characters for one
    return _bounded(visible(_bounded(text, limit)), limit)


def visible(text: str) -> str:
    """Return the whole text, however long, with the same escapes as :func:`terminal`."""
    text = _RUNNER_COMMAND.sub(r"\\x23", text)
    if text.isascii() and text.isprintable():
        return text
    return _escaped_once(text) if len(text) <= MAX_TEXT else _escaped(text)


def _escaped(text: str) -> str:
    return text.translate({ord(c): _visible(c) for c in set(text) if not _is_plain(c)})


_escaped_once = lru_cache(maxsize=256)(_escaped)
"""One odd name is in many rows of a report."""


def log(text: str, *, json: bool = False) -> str:
    """Return an output of many lines in which the runner of a CI job, whose log it becomes, reads no command.

    Runners obey a line that begins with ``::``, whatever blanks are in front of it, and ``##[`` or ``##vso[`` anywhere. A name that
    fills the first cell of a row, or is wrapped to a line, must not be one. In JSON the escape is that of JSON.
    """
    if json:
        return _RUNNER_COMMAND.sub(r"\\u0023", text)
    return _RUNNER_LINE.sub(r"\1\\x3a", _RUNNER_COMMAND.sub(r"\\x23", text))


def _is_plain(char: str) -> bool:
    category = unicodedata.category(char)
    return (
        char.isprintable() and char not in _BLANK and category not in ("Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me")
    )


def _visible(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def markdown(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text as plain Markdown that GitHub renders as the same text and nothing else.

    Markup is escaped, angle brackets and ampersands become entities, and what GitHub would turn into a
    mention, link, issue reference or emoji is broken by an entity that shows nothing. The text must not be
    at the beginning of a line, where a ``#`` or ``-`` would still count.
    """
    text = terminal(text, limit)
    # marks of our own that no text can hold after terminal(), so that entities are added last
    text = _TRIGGERS.sub(lambda m: m[0] + "\0", text)
    text = _MARKDOWN_SPECIAL.sub(r"\\\1", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("$", "&#36;")
    return text.replace("\0", _BREAK)


def markdown_code(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text as a code span that nothing inside can close, safe in a table cell.

    GitHub splits table cells before it looks for code, so a pipe is escaped even inside.
    """
    text = terminal(text, limit).replace("|", "\\|")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or text.startswith(" ") or text.endswith(" ") or not text.strip() else ""
    return f"{fence}{pad}{text or ' '}{pad}{fence}"


_BEFORE_UNIT = re.compile(r"(?<=\d) (?=(?:%|[numk]?s|[kMGT]?B|x)(?![\w-]))")
TIED = "\ue000"
"""Stands for the blank between a number and its unit while lines are broken; no text of a file holds it once it is escaped."""


def tied(text: str, blank: str = TIED) -> str:
    """Return an escaped text in which no line breaks between a number and its unit."""
    return _BEFORE_UNIT.sub(blank, text)


def wrapped(text: str, width: int) -> list[str]:
    """Return an escaped text on lines of at most ``width`` characters, a number and its unit on one."""
    return [line.replace(TIED, " ") for line in textwrap.wrap(tied(text), width)]


def code_spans(text: str) -> str:
    """Return our own sentence as HTML, escaped, with text in backquotes as code; a number keeps its unit on its line."""
    parts = _quoted(text).split("`")
    if len(parts) % 2 == 0:  # a backquote without a second one is text
        parts[-2:] = ["`".join(parts[-2:])]
    return "".join(f"<code>{part}</code>" if i % 2 else tied(part, "&nbsp;") for i, part in enumerate(parts))


def html(text: str, limit: int = MAX_TEXT) -> str:
    """Return the text escaped for HTML content and quoted attributes."""
    return _quoted(terminal(text, limit))


def _quoted(text: str) -> str:
    import html  # a report on a terminal needs none of it

    return html.escape(text, quote=True)
