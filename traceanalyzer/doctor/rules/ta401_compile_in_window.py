"""TA401 compile-in-window: the device waits while code is compiled or tuned.

What it checks
    Idle time of the device while the launching thread is in a compiler's range: TorchDynamo, Inductor, the autotuner of Triton and similar tools, written as operators or as annotations.

Why it matters
    The first call of a compiled function takes up to minutes. A mean over a window that holds it says nothing; a recompilation in
    the loop is paid again and again.

How it is decided
    Each idle nanosecond belongs to what the host did in it; those inside compiler ranges are the cost. PROVEN that the host was in
    a range of that name.

Example
    torch.compile inside of the window: 768 of 968 ms.

What to do
    Call everything once before recording; look for recompilations (TORCH_LOGS=recompiles).

When it is wrong
    Operators whose name only looks like one.

References
    triton-lang/triton, torch._inductor, torch._dynamo (dynamo_timed).
"""

from __future__ import annotations

from typing import Any, ClassVar

from traceanalyzer.analysis.ledger import LedgerClass
from traceanalyzer.doctor.example import cpu_op, kernel, launch, loop
from traceanalyzer.doctor.examples import Examples
from traceanalyzer.doctor.ledger_rule import LedgerRule, Remedy
from traceanalyzer.doctor.message import Message
from traceanalyzer.doctor.remedies import compiled_before_of
from traceanalyzer.doctor.rule import Example


def _compiled(name: str) -> tuple[dict[str, Any], ...]:
    """Return 30 kernels of 90 us; in the middle the host is 2 ms in an operator of the name."""
    events: list[dict[str, Any]] = [cpu_op(name, 1500, 2000)]
    for i in range(30):
        at = 100 * i + (2000 if i >= 15 else 0)
        events += [launch(at + 5, i + 1), kernel(at + 9, 90, i + 1)]
    return tuple(events)


class CompileInWindow(LedgerRule):
    """The device waits for a compiler."""

    code = "TA401"
    name = "compile-in-window"
    family = "warm-up"
    change = "no_compile"
    causes = (LedgerClass.COMPILE,)
    remedies: ClassVar[tuple[Remedy, ...]] = (compiled_before_of,)
    messages: ClassVar[dict[str, Message]] = {
        "compile-in-window": Message(
            "code is compiled while the device waits: {cost_ns:time}, {share:share} of its span, goes to compilation ({top:cause})",
            "[[Device {device}: ]]{cost_ns:time} ({share:share}) of {span_ns:time} the device has nothing to do while the host compiles or tunes: {top:cause} "
            "{top_ns:time}[[, {second:cause} {second_ns:time}]][[, {third:cause} {third_ns:time}]].",
        )
    }
    positive = Examples(
        lambda: (
            Example(
                "an autotuner in the middle",
                _compiled("CachingAutotuner.benchmark_all_configs"),
                allows=(
                    "TA201",
                    "TA202",
                    "TA211",
                ),
            ),
        )
    )
    negative = Examples(
        lambda: (
            Example("an operator of another name", _compiled("aten::add")),
            Example(
                "an autotuner that the queue hides",
                (*loop(40, 10, 50), cpu_op("CachingAutotuner.benchmark", 1003, 200)),
            ),
        )
    )
