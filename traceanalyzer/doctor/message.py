"""Sentences of findings, made from a template and parameters: the one place where a parameter becomes text.

A template holds ``{parameter}`` or ``{parameter:kind}``: ``time`` (nanoseconds), ``share`` (a part of one as a percentage), ``times`` and ``factor`` (a
ratio, three digits or one behind the point), ``name``
(a kernel, operator or range, cut and in backquotes), ``count`` (an integer with its thousands apart),
``often`` (once, twice, 3 times). A part in brackets of the form
``[[... {parameter} ...]]`` is left out where one of its parameters is None or empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from traceanalyzer.trace.names import scrub_paths, short_names

_OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.S)
_PARAMETER = re.compile(r"\{(\w+)(?::(\w+))?\}")


@dataclass(frozen=True)
class Message:
    """The two texts of one message code: the start of a verdict, without a full stop, and the finding's own sentences."""

    headline: str
    text: str


def short(name: str) -> str:
    """Return a name for a sentence."""
    return short_names([scrub_paths(name)], 60)[0]


_SIGNATURE = re.compile(r"\w<|^(?:void|bool|int|float) |\(.*[*&].*\)$")
_LONGEST = 60


def shown_name(name: str) -> str:
    """Return the name of a kernel, operator, range or call for a sentence; only what is written as C++ is shortened as C++."""
    if _SIGNATURE.search(name):
        return short(name)
    name = scrub_paths(name)
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 16]}…{name[-15:]}"


def show_us(ns: float | None) -> str:
    """Return a duration for a sentence: ``9.8 us``, ``5.08 ms``, ``2 s``; ``n/a`` of None."""
    if ns is None:
        return "n/a"
    value = ns / 1000
    for divisor, unit in ((1.0, "us"), (1e3, "ms")):
        if abs(value) / divisor < 999.5:  # what rounds to 1000 is one of the next unit
            return f"{_digits(value / divisor)} {unit}"
    return f"{_digits(value / 1e6)} s"


def _digits(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


def show_share(part: float) -> str:
    """Return a part of one as a percentage: whole ones, a digit behind the point below ten."""
    if 0 < part < 0.0005:
        return "under 0.1%"
    return f"{part:.0%}" if part >= 0.0995 or part == 0 else f"{part:.1%}"


_KINDS: dict[str, Callable[[Any], str]] = {
    "": str,
    "time": show_us,
    "share": show_share,
    "times": lambda value: f"{value:.3g}x",
    "name": lambda value: f"`{shown_name(str(value))}`",
    "factor": lambda value: f"{value:.1f}x",
    "often": lambda value: {1: "once", 2: "twice"}.get(value, f"{value:,} times"),
    "count": lambda value: f"{value:,}",
}


def sentence(template: str, params: Mapping[str, Any]) -> str:
    """Return the text of a template. Raises KeyError for a parameter that is not there."""

    def optional(match: re.Match[str]) -> str:
        inner = match.group(1)
        wanted = [params.get(name) for name, _ in _PARAMETER.findall(inner)]
        return "" if any(value is None or value == "" for value in wanted) else inner

    def shown(match: re.Match[str]) -> str:
        return _KINDS[match.group(2) or ""](params[match.group(1)])

    return _PARAMETER.sub(shown, _OPTIONAL.sub(optional, template))
