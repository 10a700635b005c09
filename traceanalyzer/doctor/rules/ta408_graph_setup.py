"""TA408 graph-setup: graphs are captured or instantiated while the device waits.

What it checks
    Idle time of the device while the host captures, instantiates, updates, uploads or destroys graphs.

Why it matters
    A graph pays where it is made once and replayed often. Making it in each iteration costs more than the
    launches it saves.

How it is decided
    Idle intervals in which the launching thread is under capture or in a call of the graph API other than
    the launch. PROVEN.

Example
    A graph is captured and instantiated in every iteration: 9 of 14.5 ms.

What to do
    Capture once, before the loop; update inputs in place.

When it is wrong
    A window that holds the only capture: it is paid once.

References
    pytorch/pytorch#171672.
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.doctor.example import call, kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import graph_once_of
from traceanalyzer.doctor.rule import Example


def _captured_each_time(setup: float) -> tuple[dict[str, Any], ...]:
    """Return eight graph launches of a kernel of 300 us; an instantiation of ``setup`` us leads each but the first."""
    events: list[dict[str, Any]] = []
    at = 0.0
    for i in range(8):
        if setup and i:
            events.append(call(at, setup, "cudaGraphInstantiateWithFlags", 900 + i))
            at += setup + 2
        events += [launch(at, i + 1, 5, "cudaGraphLaunch"), kernel(at + 8, 300, i + 1)]
        at += 305 if setup else 290
    return tuple(events)


class GraphSetup(LedgerRule):
    """Graphs are captured or instantiated while the device waits."""

    code = "TA408"
    name = "graph-setup"
    family = "warm-up"
    since = "0.2.0"
    remedies: ClassVar[tuple[Remedy, ...]] = (graph_once_of,)
    messages: ClassVar[dict[str, Message]] = {
        "graph-setup": Message(
            "graphs are made while the device waits: {cost_ns:time}, {share:share} of its span, goes to graph set-up, most to {top:cause}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while the host makes graphs: "
            "{top:cause} {top_ns:time} in {top_count:plural place}[[, {second:cause} {second_ns:time}]][[, {third:cause} {third_ns:time}]].",
        )
    }
    causes = (LedgerClass.GRAPH_SETUP,)
    positive = Examples(
        lambda: (
            Example(
                "a graph is instantiated before each launch",
                _captured_each_time(900),
                allows=("TA201", "TA202", "TA206", "TA211"),
            ),
        )
    )
    negative = Examples(lambda: (Example("one graph, launched again and again", _captured_each_time(0)),))
