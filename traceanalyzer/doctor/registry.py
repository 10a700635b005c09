"""The rules, listed by hand in the order they are reported, and which finding makes which other one redundant."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from traceanalyzer.doctor.comparison_rule import ComparisonRule
from traceanalyzer.doctor.rule import Rule, RuleBase
from traceanalyzer.doctor.rules.ta101_no_device_activity import NoDeviceActivity
from traceanalyzer.doctor.rules.ta102_no_host_activity import NoHostActivity
from traceanalyzer.doctor.rules.ta103_lost_records import LostRecords
from traceanalyzer.doctor.rules.ta104_impossible_times import ImpossibleTimes
from traceanalyzer.doctor.rules.ta105_cut_window import CutWindow
from traceanalyzer.doctor.rules.ta106_profiler_in_window import ProfilerInWindow
from traceanalyzer.doctor.rules.ta107_heavy_instrumentation import HeavyInstrumentation
from traceanalyzer.doctor.rules.ta108_mixed_trace import MixedTrace
from traceanalyzer.doctor.rules.ta201_cpu_bound_queue import CpuBoundQueue
from traceanalyzer.doctor.rules.ta202_event_reading_misleads import EventReadingMisleads
from traceanalyzer.doctor.rules.ta203_borderline import Borderline
from traceanalyzer.doctor.rules.ta204_queue_full import QueueFull
from traceanalyzer.doctor.rules.ta205_gaps_inside_op import GapsInsideOp
from traceanalyzer.doctor.rules.ta206_graph_launch_bound import GraphLaunchBound
from traceanalyzer.doctor.rules.ta207_flush_too_short import FlushTooShort
from traceanalyzer.doctor.rules.ta208_rank_inversion import RankInversion
from traceanalyzer.doctor.rules.ta209_device_gaps import DeviceGaps
from traceanalyzer.doctor.rules.ta210_device_wait import DeviceWait
from traceanalyzer.doctor.rules.ta211_host_late import HostLate
from traceanalyzer.doctor.rules.ta301_sync_in_loop import SyncInLoop
from traceanalyzer.doctor.rules.ta302_hidden_sync import HiddenSync
from traceanalyzer.doctor.rules.ta303_blocking_launches import BlockingLaunches
from traceanalyzer.doctor.rules.ta304_no_closing_sync import NoClosingSync
from traceanalyzer.doctor.rules.ta305_allocator_in_loop import AllocatorInLoop
from traceanalyzer.doctor.rules.ta306_data_loading import DataLoading
from traceanalyzer.doctor.rules.ta307_polling import Polling
from traceanalyzer.doctor.rules.ta308_host_pause import HostPause
from traceanalyzer.doctor.rules.ta309_sync_misses_work import SyncMissesWork
from traceanalyzer.doctor.rules.ta310_exposed_communication import ExposedCommunication
from traceanalyzer.doctor.rules.ta311_exposed_copies import ExposedCopies
from traceanalyzer.doctor.rules.ta401_compile_in_window import CompileInWindow
from traceanalyzer.doctor.rules.ta402_module_load_in_window import ModuleLoad
from traceanalyzer.doctor.rules.ta403_slow_head import SlowHead
from traceanalyzer.doctor.rules.ta404_changepoint import Changepoint
from traceanalyzer.doctor.rules.ta405_drift import Drifting
from traceanalyzer.doctor.rules.ta406_too_few import TooFew
from traceanalyzer.doctor.rules.ta407_first_use import FirstUse
from traceanalyzer.doctor.rules.ta408_graph_setup import GraphSetup
from traceanalyzer.doctor.rules.ta501_low_duty import LowDuty
from traceanalyzer.doctor.rules.ta502_gap_dependent_duration import GapDependentDuration
from traceanalyzer.doctor.rules.ta503_throttle import Throttle
from traceanalyzer.doctor.rules.ta504_warm_l2 import WarmCache
from traceanalyzer.doctor.rules.ta505_flush_counted import FlushCounted
from traceanalyzer.doctor.rules.ta506_harness_kernels import HarnessKernels
from traceanalyzer.doctor.rules.ta507_bimodal import Bimodal
from traceanalyzer.doctor.rules.ta601_noisy import Noisy
from traceanalyzer.doctor.rules.ta602_mean_is_not_median import MeanIsNotMedian
from traceanalyzer.doctor.rules.ta603_timer_quantum import TimerQuantum
from traceanalyzer.doctor.rules.ta604_overlap_double_count import OverlapDoubleCount
from traceanalyzer.doctor.rules.ta605_autocorrelated import Autocorrelated
from traceanalyzer.doctor.rules.ta701_other_stream import OtherStream
from traceanalyzer.doctor.rules.ta702_kernel_set_changes import KernelSetChanges
from traceanalyzer.doctor.rules.ta703_empty_iteration import EmptyIteration
from traceanalyzer.doctor.rules.ta704_not_comparable import NotComparable
from traceanalyzer.doctor.rules.ta705_within_noise import WithinNoise
from traceanalyzer.doctor.rules.ta706_implausible_claim import ImplausibleClaim
from traceanalyzer.doctor.rules.ta707_shared_device import SharedDevice
from traceanalyzer.doctor.rules.ta708_work_missing import WorkMissing
from traceanalyzer.doctor.rules.ta709_claim_is_another_number import ClaimIsAnotherNumber
from traceanalyzer.doctor.rules.ta710_wrong_result import WrongResult
from traceanalyzer.doctor.rules.ta711_reading_contradicts_run import ReadingContradictsRun
from traceanalyzer.errors import OptionError

RULES: tuple[type[Rule], ...] = (
    NoDeviceActivity,
    NoHostActivity,
    LostRecords,
    ImpossibleTimes,
    CutWindow,
    ProfilerInWindow,
    HeavyInstrumentation,
    MixedTrace,
    WrongResult,
    ReadingContradictsRun,
    CpuBoundQueue,
    EventReadingMisleads,
    Borderline,
    QueueFull,
    GapsInsideOp,
    GraphLaunchBound,
    FlushTooShort,
    RankInversion,
    DeviceGaps,
    DeviceWait,
    HostLate,
    SyncInLoop,
    HiddenSync,
    BlockingLaunches,
    NoClosingSync,
    AllocatorInLoop,
    DataLoading,
    Polling,
    HostPause,
    SyncMissesWork,
    ExposedCommunication,
    ExposedCopies,
    CompileInWindow,
    ModuleLoad,
    SlowHead,
    Changepoint,
    Drifting,
    TooFew,
    FirstUse,
    GraphSetup,
    LowDuty,
    GapDependentDuration,
    Throttle,
    WarmCache,
    FlushCounted,
    HarnessKernels,
    Bimodal,
    Noisy,
    MeanIsNotMedian,
    TimerQuantum,
    OverlapDoubleCount,
    Autocorrelated,
    OtherStream,
    KernelSetChanges,
    EmptyIteration,
    ImplausibleClaim,
    SharedDevice,
    ClaimIsAnotherNumber,
)
"""Every rule on one trace, integrity first. Codes are never used again for something else."""

COMPARISON_RULES: tuple[type[ComparisonRule], ...] = (NotComparable, RankInversion, WithinNoise, WorkMissing)
"""Every rule on two traces, in the order they are reported. One rule may do both."""

ALL_RULES: tuple[type[RuleBase], ...] = tuple(sorted({*RULES, *COMPARISON_RULES}, key=lambda r: r.code))

SUPPRESSES: dict[str, frozenset[str]] = {
    "TA201": frozenset({"TA203", "TA211", "TA501"}),
    "TA404": frozenset({"TA405", "TA507", "TA605"}),
    "TA309": frozenset({"TA304"}),
}
"""One finding per cause: a rule that fired on a subject silences these on the same subject."""

LEADS = (
    "TA710", "TA711", "TA703", "TA701", "TA706", "TA709", "TA304", "TA309", "TA302", "TA305", "TA505", "TA301", "TA402", "TA401", "TA403", "TA404", "TA405", "TA507",
    "TA503", "TA707", "TA307", "TA306", "TA408", "TA407", "TA310", "TA311", "TA209", "TA210", "TA201", "TA206", "TA211", "TA207", "TA205", "TA202",
)  # fmt: skip
"""Which warning the verdict names first: the nearest to the cause."""


def rule_of(code: str) -> type[RuleBase]:
    """Return the rule of a code or name. Raises OptionError with a suggestion for an unknown one."""
    wanted = code.strip()
    for rule in ALL_RULES:
        if wanted.upper() == rule.code or wanted.lower() == rule.name:
            return rule
    raise OptionError("unknown_rule", f"no rule is called {code!r}", hint=_suggestion(wanted))


def chosen_rules(select: Sequence[str], ignore: Sequence[str]) -> list[type[Rule]]:
    """Return the rules that codes, code prefixes (``TA2``) or names select, less those they ignore.

    An empty selection is every rule. Raises OptionError for a word that means no rule.
    """

    def matching(word: str) -> list[type[RuleBase]]:
        found = [r for r in ALL_RULES if r.code.startswith(word.strip().upper()) or r.name == word.strip().lower()]
        if not found or not word.strip():
            raise OptionError("unknown_rule", f"no rule is called {word!r}", hint=_suggestion(word))
        return found

    wanted = [r for word in select for r in matching(word)] if select else list(ALL_RULES)
    unwanted = {r for word in ignore for r in matching(word)}
    return [r for r in RULES if r in wanted and r not in unwanted]


def _suggestion(word: str) -> str:
    known = [r.code for r in ALL_RULES] + [r.name for r in ALL_RULES]
    near = get_close_matches(word.upper(), known, 2, 0.5) or get_close_matches(word.lower(), known, 2, 0.5)
    return f"did you mean {' or '.join(near)}?" if near else "traceanalyze rules lists them"
