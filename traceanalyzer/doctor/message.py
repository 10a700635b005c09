"""Sentences of findings, made from a template and parameters: the one place where a parameter becomes text.

A template holds ``{parameter}`` or ``{parameter:kind}``:

- ``time`` (nanoseconds), ``share`` (a part of one as a percentage), ``change`` (a relative difference, with its sign)
- ``times``, ``factor``, ``ratio`` and ``number`` (three digits with an x; one digit behind the point with an x; four digits behind the point; three digits)
- ``count`` (an integer with its thousands apart), ``often`` (once, twice, 3 times), ``plural WORD`` (``1 place``, ``3 places``)
- ``name`` (a kernel, operator or range, cut and in backquotes), ``cause`` (the same, but plain words where the parameter ``PARAMETER_unnamed`` holds
  the class of a cause that no row names), ``unit`` (a step, a call of an operation, an iteration of some kernels)
- ``damages`` (reasons by which rows were left out, with their numbers)
- ``protocol`` (a timing protocol in words), ``without`` (a change of the replays in words)

A part in brackets of the form ``[[... {parameter} ...]]`` is left out where one of its parameters is None or empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from traceanalyzer import number_text
from traceanalyzer.damage_text import words_of_key
from traceanalyzer.record import record
from traceanalyzer.trace.names import scrub_paths, short_names

_OPTIONAL = re.compile(r"\[\[(.*?)\]\]", re.S)
_PARAMETER = re.compile(r"\{(\w+)(?::(\w+)(?: ([\w -]+))?)?\}")


@record(frozen=True)
class Message:
    """The texts of one message code: the start of a verdict, without a full stop, and the finding's own sentences.

    ``brief`` is the headline where another finding leads and this one follows; empty where the headline itself is short.
    """

    headline: str
    text: str
    brief: str = ""


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


def numbered(
    names: Iterable[str], prefixes: tuple[str, ...] = ("first", "second", "third")
) -> dict[str, float | int | str | None]:
    """Return the first different names, each under a prefix; None under those that are left over."""
    found = list(dict.fromkeys(names))
    return {prefix: found[place] if place < len(found) else None for place, prefix in enumerate(prefixes)}


PROTOCOLS = {
    "wall_sync_each": "with a synchronise in each call",
    "event_pair": "by an event pair around each call",
    "event_pair_sync": "by an event pair and a synchronise in each call",
    "wall_sync_once": "by a wall clock around the loop",
    "event_loop": "by events around the loop",
    "wall_nosync": "by a wall clock without synchronise",
    "do_bench": "behind a cache clear (do_bench)",
    "graph_unrolled": "unrolled in one graph",
}
"""Timing protocols in words, those that people use most first."""

WITHOUT = {
    "launches_free": "with its launches issued at once",
    "no_synchronise": "without synchronise calls",
    "no_copy_calls": "with copies that do not block",
    "no_host_waits": "without waits of the host for the device",
    "no_allocation": "without allocation",
    "no_data_loading": "with data ready",
    "no_compile": "without compilation",
}
"""Each change of the replays as the start of a sentence on what it would be worth."""


def _damages(listed: str) -> str:
    """Return ``KEY=COUNT KEY=COUNT`` in words: why rows were left out, and how many."""
    counts = (entry.rpartition("=") for entry in listed.split())
    return "; ".join(f"{count} {words_of_key(key)}" for key, _, count in counts)


def _unit(text: str) -> str:
    """Return ``step:``, ``call:NAME`` or ``iteration:KERNELS`` in words: what a replay says the time of."""
    kind, _, what = text.partition(":")
    if kind == "call":
        return f"a call of `{shown_name(what)}`"
    return f"an iteration of {what} kernels" if kind == "iteration" else "a step"


show_us, show_share = number_text.duration, number_text.percent
"""Durations and shares in the text of verdicts."""

_KINDS: dict[str, Callable[[Any], str]] = {
    "": str,
    "time": number_text.duration,
    "share": number_text.percent,
    "change": number_text.change,
    "times": lambda value: f"{value:.3g}x",
    "name": lambda value: f"`{shown_name(str(value))}`",
    "factor": lambda value: f"{value:.1f}x",
    "often": lambda value: {1: "once", 2: "twice"}.get(value, f"{value:,} times"),
    "count": lambda value: f"{value:,}",
    "without": lambda value: WITHOUT[value],
    "unit": _unit,
    "protocol": lambda value: PROTOCOLS.get(value, str(value)),
    "ratio": lambda value: f"{value:.4f}",
    "damages": _damages,
    "number": lambda value: f"{value:.3g}",
}


def sentence(template: str, params: Mapping[str, Any]) -> str:
    """Return the text of a template. Raises KeyError for a parameter that is not there."""

    def optional(match: re.Match[str]) -> str:
        inner = match.group(1)
        wanted = [params.get(name) for name, _, _ in _PARAMETER.findall(inner)]
        return "" if any(value is None or value == "" for value in wanted) else inner

    def shown(match: re.Match[str]) -> str:
        value = params[match.group(1)]
        if match.group(2) == "plural":
            return number_text.plural(value, match.group(3))
        if match.group(2) == "cause":
            return _KINDS["" if params.get(f"{match.group(1)}_unnamed") else "name"](value)
        return _KINDS[match.group(2) or ""](value)

    return _PARAMETER.sub(shown, _OPTIONAL.sub(optional, template))
