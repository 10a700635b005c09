"""Host ranges by the name of what they mark: step counters are cut out of names, other numbers belong to them."""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from traceanalyzer.record import record
from traceanalyzer.trace.ordering import distinct
from traceanalyzer.trace.sidecar_place import CAPTURE_PREFIX
from traceanalyzer.trace.tables import Bool, Int64, Trace

PROFILER_STEP = "ProfilerStep"
_STEP = re.compile(r"ProfilerStep[*#]")
_NUMBER = re.compile(r"\d+")
_LONGEST_NUMBER = 15
_COUNTING_WORD = re.compile(
    r"(?:step|iter|iteration|batch|epoch|frame|token|call|run|rep|repeat|repetition|trial|sample|loop|round|request|req)s?[\s#:_=(\[-]*\Z"
    r"|#\Z",
    re.I,
)
"""What comes before a number that counts."""
_MARKS = re.compile(r"[\s#:_=(\[-]+\Z")
_MOSTLY = 0.8
_FRAMEWORK = (
    "Optimizer.", "nccl:", "c10d::", "enumerate(DataLoader)", "## Call CompiledFxGraph", "Torch-Compiled Region", "TorchDynamo",
    "AOTDispatcher", "Inductor", "DistributedDataParallel", "FullyShardedDataParallel", "FSDP", "autograd::", "aten::",
)  # fmt: skip
"""Beginnings of range names that PyTorch writes by itself: they mark no benchmark."""
_LIBRARY = re.compile(
    r"(?:nccl|rccl|cublas|cudnn|cusparse|cusolver|cufft|nvshmem)[A-Z_]\w*\Z|(?:cub|thrust|cutlass)::|ncclx?:"
)
"""Names that libraries write for their own calls (NVTX)."""


@record(frozen=True)
class Spans:
    """Host ranges in order of start: times in nanoseconds and the thread (row of ``trace.threads``)."""

    start_ns: Int64
    end_ns: Int64
    thread: Int64

    def __len__(self) -> int:
        return len(self.start_ns)

    def of(self, rows: Int64) -> Spans:
        """Return the given ones."""
        return Spans(self.start_ns[rows], self.end_ns[rows], self.thread[rows])


def spans_of(trace: Trace, rows: Int64) -> Spans:
    """Return rows of ``trace.ranges`` as spans."""
    table = trace.ranges
    return Spans(table.start_ns[rows], table.end_ns[rows], table.thread[rows].astype(np.int64))


def user_ranges(trace: Trace) -> dict[str, Int64]:
    """Return the host ranges a user set, by name without step counter: row numbers of ``trace.ranges`` in order of start.

    Capture's own keep their number: it belongs to the operation's name.
    """
    rows = np.flatnonzero(~trace.ranges.on_device)
    codes = trace.ranges.name[rows]
    wanted = {
        c: n for c in distinct(codes).tolist() if not _of_framework(n := trace.names[c]) or n.startswith(CAPTURE_PREFIX)
    }
    plain = {c: n for c, n in wanted.items() if n.startswith(CAPTURE_PREFIX)}
    process = process_codes(trace)[trace.ranges.thread[rows]]
    counted = zip(codes.tolist(), process.tolist(), strict=True)
    plain |= without_counters((c, wanted[c], p) for c, p in counted if c in wanted and c not in plain)
    groups: dict[str, list[int]] = {}
    for row, code in zip(rows.tolist(), codes.tolist(), strict=True):
        if code in plain:
            groups.setdefault(plain[code], []).append(row)
    return {name: np.array(members, dtype=np.int64) for name, members in groups.items()}


def of_library(name: str) -> bool:
    """Return whether a range is one that a library sets around its own call: it marks no step of the user's."""
    return _LIBRARY.match(name) is not None


def _of_framework(name: str) -> bool:
    return name.startswith((PROFILER_STEP, *_FRAMEWORK)) or of_library(name)


def profiler_steps(trace: Trace) -> Spans:
    """Return the profiler's steps: annotations, or operator rows in traces of 2021, in order of start."""
    return _named(trace, np.array([_STEP.match(n) is not None for n in trace.names], dtype=bool))


def ranges_called(trace: Trace, name: str) -> Spans:
    """Return the host ranges of exactly this name, else those that have it once their step counter is cut.

    ``ProfilerStep`` means all of the profiler's steps. Rows of operators count where no annotation has the name:
    traces of 2021 have record_function ranges among them.
    """
    exact = np.array([n == name for n in trace.names], dtype=bool)
    found = _named(trace, exact)
    if len(found):
        return found
    if name == PROFILER_STEP:
        return profiler_steps(trace)
    rows = user_ranges(trace).get(name)
    return spans_of(trace, rows) if rows is not None else found


def range_names(trace: Trace) -> list[str]:
    """Return the names of host ranges that can be asked for, sorted."""
    names = {trace.names[i] for i in distinct(trace.ranges.name[~trace.ranges.on_device]).tolist()}
    if len(profiler_steps(trace)):
        names.add(PROFILER_STEP)
    return sorted(names | set(user_ranges(trace)))


def _named(trace: Trace, wanted: Bool) -> Spans:
    ranges, ops = trace.ranges, trace.host_ops
    at = np.flatnonzero(wanted[ranges.name] & ~ranges.on_device) if len(ranges) else np.empty(0, np.int64)
    if len(at) or not len(ops):
        found = spans_of(trace, at)
    else:
        at = np.flatnonzero(wanted[ops.name])
        found = Spans(ops.start_ns[at], ops.end_ns[at], ops.thread[at].astype(np.int64))
    return found.of(np.argsort(found.start_ns, kind="stable"))


def process_codes(trace: Trace) -> Int64:
    """Return a number for the process of each row of ``trace.threads``."""
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(t.process, len(seen)) for t in trace.threads], dtype=np.int64)


def without_counters(named: Iterable[tuple[int, str, int]]) -> dict[int, str]:
    """Return the names, by code, without the numbers that count steps.

    Given are (code of the name, name, process) of each range in order of start.

    A number counts where it grows by one from range to range, or follows a word for a step and never falls
    back to less. Sizes, batch sizes and layer numbers do not: they tell operations apart and stay.
    """
    shapes: dict[tuple[str, int], list[tuple[int, list[str]]]] = {}
    texts: dict[int, str] = {}
    for code, text, process in named:
        texts[code] = text
        name = text.replace("\0", " ")  # NUL stands for a number in a shape
        numbers = _NUMBER.findall(name[:1024])
        shapes.setdefault((_NUMBER.sub("\0", name[:1024]) + name[1024:], process), []).append((code, numbers))
    result: dict[int, str] = {}
    for (shape, _), members in shapes.items():
        before = shape.split("\0")
        columns = list(zip(*(n for _, n in members), strict=True))
        cut = [_counts(column, "\0".join(before[: i + 1])) for i, column in enumerate(columns)]
        for code, numbers in members:
            if code not in result:
                result[code] = _join(before, numbers, cut) or texts[code]
    return result


def _counts(column: tuple[str, ...], before: str) -> bool:
    if len(set(column)) < 2 or max(map(len, column)) > _LONGEST_NUMBER:
        # a single range, or one number for all: only the word says what it is
        return len(set(column)) == 1 and len(column) == 1 and _COUNTING_WORD.search(before) is not None
    values = np.array([int(x) for x in column], dtype=np.int64)
    steps = np.diff(values)
    if _COUNTING_WORD.search(before) is not None:
        return bool(np.mean(steps >= 0) >= _MOSTLY)
    return bool((steps == 1).mean() >= _MOSTLY and (steps >= 0).all())


def _join(before: list[str], numbers: list[str], cut: list[bool]) -> str:
    """Return the name without the numbers to cut and the marks around them; others stay as they are."""
    text = before[0]
    for number, drop, after in zip(numbers, cut, before[1:], strict=True):
        if not drop:
            text += number + after
            continue
        head = _MARKS.sub("", text)
        opened = text[len(head) :]
        tail = after[1:] if after[:1] in (")", "]") and ("(" in opened or "[" in opened) else after
        text = head + ((" " if head and tail[:1].isalnum() else "") + tail)
    return text.strip()
