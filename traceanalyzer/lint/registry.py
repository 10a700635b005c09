"""Every lint rule, in the order of its code."""

from __future__ import annotations

from traceanalyzer.errors import OptionError
from traceanalyzer.lint.rule import LintRule
from traceanalyzer.lint.rules.tl101_clock_without_barrier import ClockWithoutBarrier
from traceanalyzer.lint.rules.tl102_barrier_in_timed_loop import BarrierInTimedLoop
from traceanalyzer.lint.rules.tl103_no_barrier_before_start import NoBarrierBeforeStart
from traceanalyzer.lint.rules.tl104_first_call_in_region import FirstCallInRegion
from traceanalyzer.lint.rules.tl105_event_read_too_early import EventReadTooEarly
from traceanalyzer.lint.rules.tl106_event_without_timing import EventWithoutTiming
from traceanalyzer.lint.rules.tl107_coarse_clock import CoarseClock
from traceanalyzer.lint.rules.tl108_inputs_in_region import InputsInRegion
from traceanalyzer.lint.rules.tl109_result_never_checked import ResultNeverChecked
from traceanalyzer.lint.rules.tl110_wrong_barrier import WrongBarrier
from traceanalyzer.lint.rules.tl111_do_bench_waits import DoBenchWaits
from traceanalyzer.lint.rules.tl112_single_call import SingleCall
from traceanalyzer.lint.rules.tl113_output_in_region import OutputInRegion
from traceanalyzer.lint.rules.tl114_mean_of_readings import MeanOfReadings

LINT_RULES: tuple[type[LintRule], ...] = (
    ClockWithoutBarrier, BarrierInTimedLoop, NoBarrierBeforeStart, FirstCallInRegion, EventReadTooEarly, EventWithoutTiming, CoarseClock,
    InputsInRegion, ResultNeverChecked, WrongBarrier, DoBenchWaits, SingleCall, OutputInRegion, MeanOfReadings,
)  # fmt: skip


def chosen(select: tuple[str, ...], ignore: tuple[str, ...]) -> list[LintRule]:
    """Return the rules that codes, prefixes of codes or names choose. Raises OptionError for one that is not there."""
    known = {r.code: r for r in LINT_RULES} | {r.name.upper(): r for r in LINT_RULES}

    def matching(words: tuple[str, ...]) -> set[str]:
        found = set()
        for word in (w.strip().upper() for part in words for w in part.split(",") if w.strip()):
            hits = {r.code for key, r in known.items() if key == word or r.code.startswith(word)}
            if not hits:
                from difflib import get_close_matches

                near = get_close_matches(word, known, 1)
                hint = f"did you mean '{known[near[0]].code}'?" if near else "traceanalyze lint --list names the rules"
                raise OptionError("unknown_rule", f"no lint rule is called '{word[:40]}'", hint=hint)
            found |= hits
        return found

    wanted = matching(select) if select else {r.code for r in LINT_RULES}
    return [r() for r in LINT_RULES if r.code in wanted - matching(ignore)]
