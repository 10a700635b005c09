"""How many calls and rounds a capture makes, within a budget of time."""

from __future__ import annotations

from dataclasses import dataclass

from traceanalyzer.number_text import plural

LEAST_ROUNDS = 6
"""Under six samples a median has no 95 % interval."""
MOST_ROUNDS = 10
LEAST_CALLS = 1
OUTPUT_BUDGET_BYTES = 1 << 30


@dataclass(frozen=True)
class Plan:
    """``rounds`` of every protocol in turn; in each ``block_calls`` in an uninterrupted loop, or ``round_calls`` with a barrier between."""

    rounds: int
    block_calls: int
    round_calls: int
    note: str = ""


def plan(
    iterations: int, call_ns: float, loop_protocols: int, call_protocols: int, budget_ns: int, held_bytes: int = 0
) -> Plan:
    """Return the plan for ``iterations`` calls per protocol, cut down where a call is too slow for the budget.

    Protocols with a barrier after each call get their calls spread over the rounds; those that time a loop make
    ``iterations`` calls in each round. First the blocks are shortened, then the rounds; never under six rounds of one call. ``held_bytes``:
    output bytes of a call that a loop must keep.
    """
    rounds = min(MOST_ROUNDS, max(LEAST_ROUNDS, iterations))
    round_calls = max(LEAST_CALLS, -(-iterations // rounds))
    block_calls = max(LEAST_CALLS, iterations)
    if held_bytes:
        block_calls = min(block_calls, max(1, OUTPUT_BUDGET_BYTES // held_bytes))

    def cost(r: int, b: int, c: int) -> float:
        return r * call_ns * (loop_protocols * b + call_protocols * c)

    asked = (rounds, block_calls, round_calls)
    while cost(rounds, block_calls, round_calls) > budget_ns and block_calls > 1:
        block_calls = max(1, block_calls // 2)
    while cost(rounds, block_calls, round_calls) > budget_ns and round_calls > 1:
        round_calls = max(1, round_calls // 2)
    while cost(rounds, block_calls, round_calls) > budget_ns and rounds > LEAST_ROUNDS:
        rounds -= 1
    note = ""
    if (rounds, block_calls, round_calls) != asked:
        note = (
            f"fewer calls than asked for fit into the time (--budget): {rounds} rounds of "
            f"{plural(round_calls, 'single call')}, and of a block of {plural(block_calls, 'call')}"
        )
    return Plan(rounds, block_calls, round_calls, note)
