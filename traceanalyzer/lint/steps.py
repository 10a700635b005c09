"""A scope as a list of steps in the order of its text: clock reads, barriers, work, loops. Rules look at slices of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import CodeRange

from traceanalyzer.lint import device_words
from traceanalyzer.lint import vocabulary as words
from traceanalyzer.lint.names import Names, plain
from traceanalyzer.lint.places import CodePlace, CodePlaces
from traceanalyzer.strenum import StrEnum


class Kind(StrEnum):
    """What a step does. ``WORK`` is known to start work on a device, ``CALL`` is known to start none, ``UNKNOWN`` is neither.

    ``OPAQUE``: a whole step of a program (``predict``), which may wait for its own result. ``YIELD``: the caller's code runs.
    ``REPEAT``: ``timeit`` of a function that works on a device and does not wait.
    """

    CLOCK = "clock"
    DIFFERENCE = "difference"
    BARRIER = "barrier"
    TRANSFER = "transfer"
    WORK = "work"
    MAKE = "make"
    OUTPUT = "output"
    EVENT = "event"
    RECORD = "record"
    ELAPSED = "elapsed"
    CALL = "call"
    UNKNOWN = "unknown"
    OPAQUE = "opaque"
    YIELD = "yield"
    REPEAT = "repeat"


@dataclass(frozen=True)
class Step:
    """One step. ``target``: the variable that gets its value. ``name``: what is called. ``loops``: lines of the loops around it.

    ``line`` and ``column`` (from 0) of the expression, ``statement`` and ``last`` the first and last line of its statement.
    ``first`` and ``second``: the variables of a difference or of an elapsed_time. ``alone``: the statement is nothing else.
    ``compared``: a difference that is held against a limit. ``ifs``: conditions around it.
    """

    kind: Kind
    name: str
    line: int
    column: int
    statement: int
    last: int
    loops: tuple[int, ...] = ()
    target: str = ""
    first: str = ""
    second: str = ""
    alone: bool = False
    framework: str = ""
    argument: str = ""
    compared: bool = False
    ifs: int = 0


@dataclass(eq=False)
class Scope:
    """The steps of a module or function, and the last line of each loop in it by the loop's first line; ``counted``: loops over a range.

    ``parameters``: the names that a caller gives a value.
    """

    name: str
    steps: list[Step] = field(default_factory=list)
    loop_ends: dict[int, int] = field(default_factory=dict)
    counted: set[int] = field(default_factory=set)
    parameters: frozenset[str] = frozenset()

    @property
    def waits(self) -> bool:
        """Whether a caller may take a call of this function for a barrier."""
        return any(s.kind in (Kind.BARRIER, Kind.TRANSFER) for s in self.steps)


def _parameters(params: cst.Parameters) -> frozenset[str]:
    stars = [p for p in (params.star_arg, params.star_kwarg) if isinstance(p, cst.Param)]
    return frozenset(p.name.value for p in (*params.params, *params.posonly_params, *params.kwonly_params, *stars))


class StepReader(cst.CSTVisitor):
    """Collects the scopes of a module."""

    def __init__(self, names: Names, places: CodePlaces, ranges: dict[cst.CSTNode, CodeRange]) -> None:
        super().__init__()
        self.names = names
        self.places = places
        self._ranges = ranges
        self.module = Scope("")
        self.scopes = [self.module]
        self.functions: dict[str, Scope] = {}
        self._stack = [self.module]
        self._loops: list[list[int]] = [[]]
        self._statement: list[tuple[int, int, bool]] = [(0, 0, False)]
        self._target = ""
        self._handlers = 0
        self._ifs = 0
        self._comparisons = 0

    # -- scopes, loops and statements ------------------------------------------------------------------

    def visit_FunctionDef(self, node: cst.FunctionDef) -> bool:
        scope = Scope(node.name.value, parameters=_parameters(node.params))
        self.scopes.append(scope)
        self.functions.setdefault(node.name.value, scope)
        self._stack.append(scope)
        self._loops.append([])
        self.places.enter(node)
        node.body.visit(self)
        self.places.leave()
        self._stack.pop()
        self._loops.pop()
        return False

    def visit_Lambda(self, node: cst.Lambda) -> bool:  # noqa: ARG002 - its body runs elsewhere
        return False

    def leave_Return(self, original_node: cst.Return) -> None:
        if original_node.value is not None:
            self.places.returned(original_node.value)

    def leave_Yield(self, original_node: cst.Yield) -> None:
        self._put(Kind.YIELD, "yield", original_node)

    def visit_ExceptHandler(self, node: cst.ExceptHandler) -> bool:
        # what a handler does is not what is measured; its clock reads end nothing
        self._handlers += 1
        node.body.visit(self)
        self._handlers -= 1
        return False

    def visit_Comparison(self, node: cst.Comparison) -> None:  # noqa: ARG002
        self._comparisons += 1

    def leave_Comparison(self, original_node: cst.Comparison) -> None:  # noqa: ARG002
        self._comparisons -= 1

    def _loop(self, node: cst.For | cst.While) -> None:
        where = self._ranges[node]
        self._stack[-1].loop_ends[where.start.line] = self._ranges[node.body].end.line
        self._loops[-1].append(where.start.line)

    def visit_For(self, node: cst.For) -> bool:
        node.iter.visit(self)
        self._loop(node)
        if _is_counted(node, self.names):
            self._stack[-1].counted.add(self._loops[-1][-1])
        node.body.visit(self)
        self._loops[-1].pop()
        return False

    def visit_While(self, node: cst.While) -> bool:
        self._loop(node)
        node.test.visit(self)
        node.body.visit(self)
        self._loops[-1].pop()
        return False

    def visit_If(self, node: cst.If) -> bool:
        """Visit the branches of a condition; the one for machines without a device works on the host."""
        node.test.visit(self)
        test = _code(node.test)
        device, host = device_words.ASKS_FOR_DEVICE.search(test), device_words.ASKS_FOR_HOST.search(test)
        self._ifs += 1
        with self.places.host_branch(bool(host)):
            node.body.visit(self)
        if node.orelse is not None:
            with self.places.host_branch(bool(device) and not host and isinstance(node.orelse, cst.Else)):
                node.orelse.visit(self)
        self._ifs -= 1
        return False

    def visit_SimpleStatementLine(self, node: cst.SimpleStatementLine) -> None:
        where = self._ranges[node]
        alone = len(node.body) == 1 and isinstance(node.body[0], cst.Expr) and isinstance(node.body[0].value, cst.Call)
        self._statement.append((where.start.line, where.end.line, alone))

    def leave_SimpleStatementLine(self, original_node: cst.SimpleStatementLine) -> None:  # noqa: ARG002
        self._statement.pop()

    def visit_With(self, node: cst.With) -> None:
        for item in node.items:
            item.item.visit(self)

    def visit_Raise(self, node: cst.Raise) -> bool:  # noqa: ARG002 - what is raised is no work
        return False

    # -- assignments -----------------------------------------------------------------------------------

    def visit_Assign(self, node: cst.Assign) -> bool:
        targets, value = node.targets[0].target, node.value
        pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = [(targets, value)]
        if (
            isinstance(targets, cst.Tuple)
            and isinstance(value, cst.Tuple)
            and len(targets.elements) == len(value.elements)
        ):
            pairs = [(t.value, v.value) for t, v in zip(targets.elements, value.elements, strict=True)]
        for name, part in pairs:
            self._target = plain(name)
            part.visit(self)
        self._target = ""
        for target in node.targets:
            self.places.assign(target.target, node.value)
        return False

    def visit_AnnAssign(self, node: cst.AnnAssign) -> bool:
        if node.value is not None:
            self._target = plain(node.target)
            node.value.visit(self)
            self._target = ""
            self.places.assign(node.target, node.value)
        return False

    def visit_AugAssign(self, node: cst.AugAssign) -> bool:
        self._target = plain(node.target)
        node.value.visit(self)
        self._target = ""
        return False

    # -- expressions -----------------------------------------------------------------------------------

    def leave_BinaryOperation(self, original_node: cst.BinaryOperation) -> None:
        """A difference of two clock reads: ``clock() - start`` or ``end - start``; or a product of matrices on a device."""
        if isinstance(original_node.operator, cst.MatrixMultiply):
            if CodePlace.DEVICE in (self.places.of(original_node.left), self.places.of(original_node.right)):
                self._put(Kind.WORK, _code(original_node), original_node)
            return
        if not isinstance(original_node.operator, cst.Subtract):
            return
        right = plain(original_node.right)
        left = original_node.left
        if not right:
            return
        if isinstance(left, cst.Call) and self.names.dotted(left.func) in words.CLOCKS:
            self._put(Kind.DIFFERENCE, "", original_node, first=right)
        elif name := plain(left):
            self._put(Kind.DIFFERENCE, "", original_node, first=right, second=name)

    def leave_Call(self, original_node: cst.Call) -> None:
        node = original_node
        name = self.names.dotted(node.func)
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        owner = plain(node.func.value) if isinstance(node.func, cst.Attribute) else ""
        if name in words.CLOCKS:
            self._put(Kind.CLOCK, name, node)
        elif name in words.BARRIERS:
            self._put(Kind.BARRIER, name, node, framework=words.BARRIERS[name])
        elif name.endswith("cuda.Event"):
            timing = any(a.keyword and a.keyword.value == "enable_timing" and _is_true(a.value) for a in node.args)
            self._put(
                Kind.EVENT, name, node, argument="timing" if timing or any(not a.keyword for a in node.args) else ""
            )
        elif method == "record" and len(node.args) <= 1 and owner:
            self._put(Kind.RECORD, name, node, first=owner)
        elif method == "elapsed_time" and node.args:
            self._put(Kind.ELAPSED, name, node, first=owner, second=plain(node.args[0].value))
        elif name in ("print", "logging.info", "logger.info") or name == "tqdm.tqdm.write":
            self._put(Kind.OUTPUT, name, node)
        elif method in words.WAITING_METHODS and not name.startswith(("numpy.", "threading.")):
            kind = Kind.BARRIER if method in ("synchronize", "block_until_ready") else Kind.TRANSFER
            framework = "jax" if method == "block_until_ready" else ""
            self._put(kind, name or method, node, framework=framework, first=owner)
        elif words.WAITING_NAME.search(name.rpartition(".")[2] or method):
            self._put(Kind.BARRIER, name, node)
        elif name in words.MAKERS:
            self._put(Kind.MAKE, name, node)
        elif method in words.MOVERS and not _is_host_move(node):
            self._put(Kind.MAKE, f".{method}()", node, argument="move")
            if owner and self._statement[-1][2]:
                self.places.moved(owner, self.places.of(node))
        elif name in words.REPEATERS and node.args and self.places.of(node.args[0].value) is CodePlace.CALLABLE:
            waits = words.FETCHED_IN.search(_code(node.args[0].value))
            self._put(Kind.CALL if waits else Kind.REPEAT, name, node, first=_code(node.args[0].value))
        elif self._fetches(name, node):
            self._put(Kind.TRANSFER, name, node)
        else:
            works, _ = self.places.judge(node)
            # what is on the host by its names stays there, whatever a function of that name does with other arguments
            on_host = self.places.on_host or (not works and self._on_host_variables(node))
            kind = Kind.CALL if on_host else self._unproven(node, name, method)
            where = "host" if on_host else ""
            self._put(Kind.WORK if works else kind, name or method or _code(node.func), node, argument=where)

    @staticmethod
    def _on_host_variables(node: cst.Call) -> bool:
        return any(
            device_words.HOST_VARIABLE.search(plain(a.value).rpartition(".")[2]) for a in node.args if plain(a.value)
        )

    def _fetches(self, name: str, node: cst.Call) -> bool:
        """Whether a call brings a value of the device to the host: ``float(loss)``, ``np.asarray(x)``, ``tree_map(np.array, x)``."""
        if not node.args:
            return False
        first = node.args[0].value
        if name == "float":
            return not isinstance(first, cst.SimpleString)
        if name in words.FETCHING:
            return True
        if name in ("int", "bool", "print", "list", "numpy.asarray", "numpy.array", "numpy.mean", "numpy.sum"):
            return self.places.of(first) is CodePlace.DEVICE
        return isinstance(first, cst.Lambda | cst.Attribute) and bool(words.FETCHED_IN.search(_code(first)))

    @staticmethod
    def _unproven(node: cst.Call, name: str, method: str) -> Kind:
        own = method or name.rpartition(".")[2]
        if name in words.HOST_CALLS or method in words.HOST_METHODS or device_words.is_host_module(name):
            return Kind.CALL
        if device_words.is_opaque(node):
            return Kind.OPAQUE
        if device_words.HOST_NAME.search(own) or own[:1].isupper():
            return Kind.CALL
        return Kind.UNKNOWN

    def leave_Await(self, original_node: cst.Await) -> None:
        # what is awaited has come: a client of a server, no launch of a kernel
        self._put(Kind.BARRIER, "await", original_node)

    def _put(self, kind: Kind, name: str, node: cst.CSTNode, **more: str) -> None:
        where = self._ranges[node].start
        first, last, alone = self._statement[-1]
        if first <= 0:
            first = last = where.line
        self._stack[-1].steps.append(
            Step(
                kind, name, where.line, where.column, first, last, tuple(self._loops[-1]), self._target,
                more.get("first", ""), more.get("second", ""), alone, more.get("framework", ""), more.get("argument", ""),
                bool(self._comparisons or self._handlers), self._ifs,
            )
        )  # fmt: skip


def _is_true(node: cst.BaseExpression) -> bool:
    return not (isinstance(node, cst.Name) and node.value == "False")


def _is_host_move(node: cst.Call) -> bool:
    """Whether ``x.to(...)`` changes the type alone or goes to the host."""
    if not node.args:
        return False
    text = cst.Module([]).code_for_node(node.args[0].value)
    return "cpu" in text or text.startswith(
        ("torch.float", "torch.int", "torch.bf", "torch.half", "torch.long", "dtype", "jnp.")
    )


def _code(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _is_counted(node: cst.For, names: Names) -> bool:
    """Whether a loop repeats: over a range, or a progress bar around one; not over epochs."""
    variable = plain(node.target)
    if "epoch" in variable:
        return False
    found = node.iter
    while isinstance(found, cst.Call) and names.dotted(found.func).rpartition(".")[2] in (
        "tqdm",
        "trange",
        "TQDM",
        "track",
    ):
        if names.dotted(found.func).endswith("trange"):
            return True
        if not found.args:
            return False
        found = found.args[0].value
    return isinstance(found, cst.Call) and names.dotted(found.func) == "range"
