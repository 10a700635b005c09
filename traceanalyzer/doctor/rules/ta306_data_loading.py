"""TA306 data-loading: the device waits while the host gets the next batch.

What it checks
    Idle time of the device while the launching thread is in the DataLoader (`enumerate(DataLoader)`).

Why it matters
    An input pipeline that is slower than the device sets the pace of the run; no kernel can be made fast
    enough to help.

How it is decided
    Each idle nanosecond belongs to what the host did in it; those inside the DataLoader's range are the
    cost. PROVEN: range, idle interval and launch are rows of the trace.

Example
    One step in four waits 18 ms for the DataLoader: 109 of 338 ms.

What to do
    More workers, prefetching, a cheaper transform; or the data on the device.

When it is wrong
    A first batch that starts the workers is paid once; narrow with --range.

References
    pytorch/kineto (the TensorBoard sample with num_workers=0), nerfstudio-project/gsplat#1058.
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.doctor.example import host_range, kernel, launch
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import loader_of
from traceanalyzer.doctor.rule import Example


def _steps(n: int, before: float, *inside: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    """Return ``n`` steps of two kernels of 100 us, ``before`` us apart; ``inside`` are rows between two steps, from their end."""
    events: list[dict[str, Any]] = []
    for i in range(n):
        at = (210 + before) * i
        events += [
            launch(at, 10 * i + 1),
            kernel(at + 5, 100, 10 * i + 1, "first"),
            launch(at + 4, 10 * i + 2),
            kernel(at + 106, 100, 10 * i + 2, "second"),
        ]
        if i + 1 < n:
            events += [e | {"ts": e["ts"] + at + 206} for e in inside]
    return tuple(events)


class DataLoading(LedgerRule):
    """The device waits while the host gets the next batch."""

    code = "TA306"
    name = "data-loading"
    family = "sync"
    change = "no_data_loading"
    since = "0.2.0"
    remedies: ClassVar[tuple[Remedy, ...]] = (
        loader_of,
        "keep the decoded data on the device, or move transforms to it",
    )
    messages: ClassVar[dict[str, Message]] = {
        "data-loading": Message(
            "the input pipeline holds the device up: it waits {cost_ns:time}, {share:share} of its span, in {top:cause}",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while the host is in "
            "{top:cause}, in {intervals:plural idle interval} of up to {top_longest_ns:time}.",
        )
    }
    causes = (LedgerClass.DATA_LOADING,)
    positive = Examples(
        lambda: (
            Example(
                "each step waits 500 us for its batch",
                _steps(8, 500, host_range("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 490)),
                allows=("TA201", "TA202", "TA205", "TA211"),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example(
                "batches are there ahead of the device",
                tuple(
                    e | {"ts": e["ts"] / 4} if e["cat"] == "user_annotation" else e
                    for e in (*_steps(8, 2), host_range("enumerate(DataLoader)", 0, 40))
                ),
            ),
        )
    )
