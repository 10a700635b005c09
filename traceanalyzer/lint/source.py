"""One script, read: its scopes, its timed regions, and what it runs on."""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field, replace
from functools import cached_property

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from traceanalyzer.lint.names import Names
from traceanalyzer.lint.places import CodePlaces
from traceanalyzer.lint.steps import Kind, Scope, Step, StepReader

_IGNORE = re.compile(r"#\s*ta:\s*ignore(?:\[([^\]]*)\])?", re.I)
_STRUCTURE = re.compile(r"[()\[\]{}.,+\-*/%&|^~<>=@\n]")
MOST_DEPTH = 200
MOST_STEPS = 80
ROUNDS = 4
"""A function is seen through that many others: what it calls may call what waits."""
FRAMEWORK_NAMES = frozenset({"torch", "jax", "tensorflow", "cupy", "numpy", "triton"})
MOST_CHAIN = 2000
_STACK_BYTES = 256 << 20
_ON_A_DEVICE = re.compile(r"cuda|\bxpu\b|\bmps\b|\bhip\b|triton|\bgpu\b|accelerator|\.to\(\s*(?:\w+\.)*device", re.I)


_NAMES_A_DEVICE = re.compile(r"cuda|\bxpu\b|\bmps\b|\bhip\b|triton|accelerator|\bjax\b|cupy|tensorflow", re.I)
_ON_THE_HOST = re.compile(r"^\s*(?:\w+\.)*device\s*=\s*(?:torch\.device\()?['\"]cpu['\"]\)?\s*(?:#.*)?$", re.M)


@dataclass(frozen=True)
class Region:
    """What lies between two readings of a clock, or between two events. ``steps`` without the two readings themselves.

    ``at``: the place of the first reading among the steps of the scope.
    """

    scope: Scope
    start: Step
    end: Step
    steps: tuple[Step, ...]
    at: int
    events: bool = False

    @property
    def work(self) -> list[Step]:
        """The calls that may start work on the device."""
        return [s for s in self.steps if s.kind is Kind.WORK or (s.kind is Kind.UNKNOWN and self.known)]

    @property
    def known(self) -> bool:
        """Whether the region itself says that it times a device: events, or a barrier in it or right in front of it."""
        before = self.scope.steps[max(0, self.at - 2) : self.at]
        return self.events or any(s.kind is Kind.BARRIER and _of_a_device(s) for s in (*before, *self.steps))

    @property
    def yields(self) -> bool:
        """Whether the code of a caller runs inside of it."""
        return any(s.kind is Kind.YIELD for s in self.steps)

    @property
    def waits(self) -> list[Step]:
        """Barriers, transfers that wait, and what may wait by itself."""
        return [s for s in self.steps if s.kind in (Kind.BARRIER, Kind.TRANSFER, Kind.OPAQUE)]

    @property
    def whole(self) -> bool:
        """Whether it is a whole program (an export, a training) and no measurement of one thing."""
        return len(self.steps) > MOST_STEPS

    @property
    def long(self) -> bool:
        """Whether it holds loops in loops, as training does, or turns until a time has passed: what one call adds is nothing there."""
        if self.whole:
            return True
        inner = [s for s in self.steps if self.inner_loops(s)]
        return any(len(self.inner_loops(s)) > 1 for s in inner) or any(s.kind is Kind.CLOCK for s in inner)

    @property
    def has_events(self) -> bool:
        """Whether events are recorded in it as well: then the clock is for where there are none."""
        near = self.scope.steps[max(0, self.at - 2) : self.at]
        return any(s.kind is Kind.RECORD for s in (*near, *self.steps))

    def counted(self, step: Step) -> bool:
        """Whether a step is repeated in a loop over a range inside of the region."""
        return any(line in self.scope.counted for line in self.inner_loops(step))

    def inner_loops(self, step: Step) -> tuple[int, ...]:
        """Return the loops around a step that begin inside of the region."""
        return step.loops[len(self.start.loops) :]


@dataclass
class Script:
    """``frameworks``: torch, jax, tensorflow, cupy, as imported. ``on_device``: the text names a device that runs behind the host."""

    path: str
    text: str
    lines: list[str]
    scopes: list[Scope]
    functions: dict[str, Scope]
    frameworks: set[str]
    on_device: bool
    regions: list[Region] = field(default_factory=list)

    def indent(self, line: int) -> str:
        """Return the white space at the start of a line (from 1)."""
        text = self.lines[line - 1]
        return text[: len(text) - len(text.lstrip())]

    def binds(self, name: str) -> bool:
        """Return whether the script imports a module under its own name, so that a line that is put in may use it."""
        return re.search(rf"^\s*import\b[^\n]*\b{name}(?![\w.]|\s+as\b)", self.text, re.M) is not None

    def ignores(self, line: int, rule: str) -> bool:
        """Return whether the line asks that a rule be silent there: ``# ta: ignore`` or ``# ta: ignore[TL101]``."""
        found = _IGNORE.search(self.lines[line - 1]) if 0 < line <= len(self.lines) else None
        if found is None:
            return False
        return found[1] is None or rule in {c.strip().upper() for c in found[1].split(",")}

    @cached_property
    def code(self) -> str:
        """The text without its comments (a sign in a string may cut a line short)."""
        return re.sub(r"#[^\n]*", "", self.text)

    @cached_property
    def barrier(self) -> str:
        """The statement that waits for this script's device, empty where only its outputs can be waited for."""
        if "torch" in self.frameworks:
            if not self.binds("torch"):
                return ""
            for word in ("cuda", "xpu", "mps"):
                if re.search(rf"\b{word}\b", self.text):
                    call = f"torch.{word}.synchronize()"
                    # a script that asks whether there is a device runs on machines without one: there the call raises
                    asks = re.search(rf"\b{word}\.is_available\(|['\"]cpu['\"]", self.text)
                    present = "torch.backends.mps" if word == "mps" else f"torch.{word}"
                    return f"if {present}.is_available():\n    {call}" if asks else call
            return ""
        if "tensorflow" in self.frameworks and re.search(r"^\s*import tensorflow as tf\b", self.text, re.M):
            return "tf.test.experimental.sync_devices()"
        return ""


def read_script(path: str, text: str) -> Script:
    """Return a script. Raises libcst.ParserSyntaxError (or RecursionError) for text that is no Python."""
    _refuse_depth(text)
    wrapper = MetadataWrapper(_parsed(text), unsafe_skip_copy=True)
    ranges = wrapper.resolve(PositionProvider)
    names = Names()
    wrapper.module.visit(names)
    places = CodePlaces(names, text)
    where = dict(ranges)
    wrapper.module.visit(StepReader(names, places, where))
    places.again()
    reader = StepReader(names, places, where)
    wrapper.module.visit(reader)
    frameworks = names.modules & {"torch", "jax", "tensorflow", "cupy"}
    if "triton" in names.modules:
        frameworks.add("torch")
    asynchronous = bool(frameworks & {"jax", "cupy", "tensorflow"}) or bool(_ON_A_DEVICE.search(text))
    if asynchronous and _ON_THE_HOST.search(text) and not _NAMES_A_DEVICE.search(text):
        asynchronous = False
    script = Script(
        path, text, text.splitlines(), reader.scopes, reader.functions, frameworks, bool(frameworks) and asynchronous
    )
    _resolve_calls(script)
    for scope in script.scopes:
        script.regions += [*_clock_regions(scope), *_event_regions(scope)]
    script.regions.sort(key=lambda r: (r.start.line, r.end.line))
    return script


def _refuse_depth(text: str) -> None:
    """Raise RecursionError for brackets or lines that the parser's own recursion would not survive: it has no bound of its own."""
    depth = chain = 0
    for match in _STRUCTURE.finditer(text):
        found = match[0]
        if found in "([{":
            depth += 1
        elif found in ")]}":
            depth = max(0, depth - 1)
        elif found == "," or (found == "\n" and not depth):
            chain = 0
            continue
        chain += 1
        if depth > MOST_DEPTH:
            raise RecursionError(f"brackets nested over {MOST_DEPTH} deep")
        if chain > MOST_CHAIN:
            raise RecursionError(f"an expression of over {MOST_CHAIN} operators")


def _parsed(text: str) -> cst.Module:
    """Parse on a thread with a deep stack: a chain of operators is as deep as it is long."""
    found: list[cst.Module] = []
    failed: list[BaseException] = []

    def parse() -> None:
        try:
            found.append(cst.parse_module(text))
        except BaseException as error:  # handed to the caller
            failed.append(error)

    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=parse)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    if failed:
        raise failed[0]
    return found[0]


_RESOLVED = (Kind.WORK, Kind.UNKNOWN, Kind.OPAQUE, Kind.CALL)


def _resolve_calls(script: Script) -> None:
    """Let calls of functions of this file be what those do: one that waits is a barrier, one that works on the host is none."""
    for _ in range(ROUNDS):
        kinds = {name: kind for name, scope in script.functions.items() if (kind := _kind_of(scope)) is not None}
        changed = False
        for scope in script.scopes:
            for i, step in enumerate(scope.steps):
                owner, _, own = step.name.rpartition(".")
                if step.kind not in _RESOLVED or step.argument == "host" or own == scope.name or own not in kinds:
                    continue
                kind = kinds[own]
                if step.kind is Kind.CALL and (owner not in ("", "self", "cls")):
                    continue
                if owner.partition(".")[0] in FRAMEWORK_NAMES or (
                    owner not in ("", "self", "cls") and kind is Kind.CALL
                ):
                    continue
                if step.kind is not kind:
                    scope.steps[i] = replace(step, kind=kind)
                    changed = True
        if not changed:
            return


def _of_a_device(step: Step) -> bool:
    """Whether a barrier waits for a device by its name: a wait for a thread or a server is none."""
    return bool(step.framework) or "sync" in step.name.lower()


def _kind_of(scope: Scope) -> Kind | None:
    """Return what a call of a function is; None where its text does not tell."""
    kinds = {s.kind for s in scope.steps}
    if Kind.YIELD in kinds:
        return None
    for kind in (Kind.BARRIER, Kind.TRANSFER, Kind.OPAQUE, Kind.WORK):
        if kind in kinds:
            return kind
    return Kind.CALL if kinds and Kind.UNKNOWN not in kinds and Kind.MAKE not in kinds else None


def _clock_regions(scope: Scope) -> list[Region]:
    found = []
    reads: dict[str, int] = {}
    for i, step in enumerate(scope.steps):
        if step.kind is Kind.CLOCK and step.target:
            reads[step.target] = i
        if step.kind is not Kind.DIFFERENCE or step.first not in reads or step.compared:
            continue  # one that is compared is a limit of time, or a test of one
        begun = reads[step.first]
        if step.second:
            if step.second not in reads or reads[step.second] <= begun:
                continue
            ended = reads[step.second]
        else:
            # clock() - start: the read is the last clock step before the difference
            ended = next(
                (j for j in range(i - 1, begun, -1) if scope.steps[j].kind is Kind.CLOCK and scope.steps[j].line == step.line), -1
            )  # fmt: skip
            if ended < 0:
                continue
        start, end = scope.steps[begun], scope.steps[ended]
        if end.loops[: len(start.loops)] != start.loops or len(end.loops) != len(start.loops):
            continue  # read again in each turn of a loop: a log of progress
        found.append(Region(scope, start, end, tuple(scope.steps[begun + 1 : ended]), begun))
    return _once(found)


def _event_regions(scope: Scope) -> list[Region]:
    found = []
    records: dict[str, int] = {}
    for i, step in enumerate(scope.steps):
        if step.kind is Kind.RECORD:
            records[step.first] = i
        if step.kind is not Kind.ELAPSED or step.first not in records or step.second not in records:
            continue
        begun, ended = records[step.first], records[step.second]
        if begun < ended:
            found.append(
                Region(
                    scope, scope.steps[begun], scope.steps[ended], tuple(scope.steps[begun + 1 : ended]), begun, True
                )
            )
    return _once(found)


def _once(regions: list[Region]) -> list[Region]:
    return list({(r.start.line, r.start.column, r.end.line, r.end.column): r for r in regions}.values())


def is_timing(script: Script) -> bool:
    """Return whether a script measures anything."""
    return bool(script.regions) or any("do_bench" in s.name for scope in script.scopes for s in scope.steps)
