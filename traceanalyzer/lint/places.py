"""Where a value lies: on a device, on the host, or unknown. What is called with a value on a device works there.

A clock around a call is only wrong where the call starts work on a device. The evidence is in the text: ``x.cuda()``,
``device=...``, ``torch.compile(f)``, a triton kernel's ``kernel[grid](...)``, a framework's own operation, a model by its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import libcst as cst

from traceanalyzer.lint import device_words as words
from traceanalyzer.lint.names import Names, plain
from traceanalyzer.strenum import StrEnum

MOST_DEPTH = 40
"""Nested expressions below this are not looked into: their place is unknown."""


class CodePlace(StrEnum):
    """Of a value. ``CALLABLE``: calling it works on the device. ``CPU``, ``NAME``: the name of the host, of another device."""

    DEVICE = "device"
    HOST = "host"
    CALLABLE = "callable"
    CPU = "cpu"
    NAME = "name"
    UNKNOWN = ""


class CodePlaces:
    """The places of a file's variables, in the order of its text. Read a file twice: what is set further down is known the second time."""

    def __init__(self, names: Names, text: str) -> None:
        self.names = names
        self.file: dict[str, CodePlace] = {}
        self.returns: dict[str, CodePlace] = {}
        self._scopes: list[dict[str, CodePlace]] = [{}]
        self._parameters: list[set[str]] = [set()]
        self._functions: list[str] = []
        self._judged: dict[cst.CSTNode, tuple[bool, CodePlace]] = {}
        self._host_branches = 0
        self._always_device = bool(names.modules & {"jax", "cupy"}) and "torch" not in names.modules
        self._makes_on_device = bool(words.DEFAULT_DEVICE.search(text))
        self._kernels = bool(names.modules & {"triton", "numba", "cupy", "warp", "cutlass"})

    # -- scopes ----------------------------------------------------------------------------------------

    def again(self) -> None:
        """Begin a second reading, with what the first one found of attributes, module variables and functions."""
        self._scopes, self._parameters, self._functions = [{}], [set()], []
        self._judged.clear()

    def enter(self, node: cst.FunctionDef) -> None:
        """Begin a function's body."""
        known: dict[str, CodePlace] = {}
        names: set[str] = set()
        parameters = node.params
        for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
            names.add(parameter.name.value)
            if parameter.annotation is not None and words.TENSOR_TYPE.search(_code(parameter.annotation.annotation)):
                known[parameter.name.value] = CodePlace.DEVICE
        if any(words.DEVICE_DECORATOR.search(_code(d.decorator)) for d in node.decorators):
            self.file[node.name.value] = CodePlace.CALLABLE
        self._scopes.append(known)
        self._parameters.append(names)
        self._functions.append(node.name.value)

    def leave(self) -> None:
        """End a function's body."""
        self._scopes.pop()
        self._parameters.pop()
        self._functions.pop()

    def returned(self, node: cst.BaseExpression) -> None:
        """Take what a function returns for the value of its calls."""
        if self._functions and (place := self.of(node)) is not CodePlace.UNKNOWN:
            self.returns[self._functions[-1]] = place

    def assign(self, target: cst.BaseExpression, value: cst.BaseExpression) -> None:
        """Let a variable, or each of several, be where its value is."""
        if isinstance(target, cst.Tuple | cst.List):
            parts = [e.value for e in target.elements]
            values = [e.value for e in value.elements] if isinstance(value, cst.Tuple | cst.List) else []
            for i, part in enumerate(parts):
                self.assign(part, values[i] if len(values) == len(parts) else value)
            return
        name = plain(target)
        if not name or isinstance(target, cst.Subscript):
            return
        place = self.of(value)
        self._scopes[-1][name] = place
        if "." in name or len(self._scopes) == 1:
            self.file[name] = place

    def moved(self, name: str, place: CodePlace) -> None:
        """Let a module be where a statement of its own moves it: ``model.to(device)``."""
        self._scopes[-1][name] = place

    def lookup(self, name: str) -> CodePlace:
        """Return where a dotted name lies: its own place, or that of what it is an attribute of."""
        if words.HOST_VARIABLE.search(name):
            return CodePlace.HOST
        while name:
            for known in (*reversed(self._scopes), self.file):
                if name in known:
                    return known[name]
            name, _, attribute = name.rpartition(".")
            if attribute in words.HOST_ATTRIBUTES:
                return CodePlace.HOST
        return CodePlace.UNKNOWN

    @contextmanager
    def host_branch(self, is_one: bool) -> Iterator[None]:
        """Read a branch that is taken where there is no device."""
        self._host_branches += is_one
        yield
        self._host_branches -= is_one

    @property
    def on_host(self) -> bool:
        """Whether the function that is being read says by its name, or the branch by its condition, that it runs on the host."""
        return self._host_branches > 0 or any(words.CPU_FUNCTION.search(f) for f in self._functions)

    # -- expressions -----------------------------------------------------------------------------------

    def of(self, node: cst.CSTNode, depth: int = 0) -> CodePlace:
        """Return where the value of an expression lies."""
        if depth > MOST_DEPTH:
            return CodePlace.UNKNOWN
        if isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            name = plain(node)
            if name:
                return self.lookup(name)
            return (
                self.of(node.value, depth + 1) if isinstance(node, cst.Subscript | cst.Attribute) else CodePlace.UNKNOWN
            )
        if isinstance(node, cst.Call):
            return self.judge(node, depth)[1]
        if isinstance(node, cst.SimpleString):
            text = node.raw_value
            return (
                CodePlace.CPU
                if text == "cpu"
                else CodePlace.NAME
                if words.DEVICE_STRING.match(text)
                else CodePlace.UNKNOWN
            )
        if isinstance(node, cst.Lambda):
            return CodePlace.CALLABLE if self._works(node.body, depth) else CodePlace.UNKNOWN
        parts: Sequence[cst.CSTNode] = ()
        if isinstance(node, cst.Tuple | cst.List | cst.Set | cst.Dict):
            parts = [e.value for e in node.elements]
        elif isinstance(node, cst.BinaryOperation):
            parts = [node.left, node.right]
        elif isinstance(node, cst.UnaryOperation):
            parts = [node.expression]
        elif isinstance(node, cst.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
            parts = [node.elt]
        return _together([self.of(p, depth + 1) for p in parts])

    def judge(self, node: cst.Call, depth: int = 0) -> tuple[bool, CodePlace]:
        """Return whether a call starts work on a device, and where its value lies."""
        if node not in self._judged:
            works, place = self._judge(node, depth)
            self._judged[node] = (works and not self.on_host, place)
        return self._judged[node]

    def _judge(self, node: cst.Call, depth: int) -> tuple[bool, CodePlace]:
        name = self.names.dotted(node.func)
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        own = method or name.rpartition(".")[2]
        given = [self.of(a.value, depth + 1) for a in node.args]
        arguments = _together(given)
        if isinstance(node.func, cst.Subscript):
            return self._kernels, CodePlace.UNKNOWN
        made = self._made(node, name, own, arguments, depth)
        if made is not None:
            return False, made
        if (
            words.HOST_FUNCTION.match(own)
            or (method and own in words.VIEWS)
            or name in words.HOST_CALLS
            or words.is_host_module(name)
        ):
            passed = own in words.VIEWS or own in ("zip", "enumerate", "list", "tuple", "deepcopy", "next", "iter")
            return False, _together([arguments, self._owner(node, depth)]) if passed else CodePlace.HOST
        if name.startswith("torch.distributed."):
            return CodePlace.DEVICE in given and own.startswith(("all_", "reduce")) and not own.endswith(
                "_object"
            ), CodePlace.UNKNOWN
        framework = words.FRAMEWORK_WORK.match(name)
        if framework is not None:
            on_host = arguments is CodePlace.HOST and not self._always_device
            return not on_host, CodePlace.HOST if on_host else CodePlace.DEVICE
        callee = self.lookup(plain(node.func)) if plain(node.func) else self.of(node.func, depth + 1)
        if method and callee is CodePlace.UNKNOWN:
            callee = self._owner(node, depth)
        if callee is CodePlace.HOST:
            return False, CodePlace.HOST
        if callee in (CodePlace.DEVICE, CodePlace.CALLABLE):
            if words.has_opaque_keyword(node) or "pipe" in own or (method and words.OPAQUE_NAME.search(method)):
                return False, CodePlace.UNKNOWN
            if method in words.HOST_METHODS or words.HOST_NAME.search(own):
                return False, CodePlace.DEVICE if method in words.VIEWS else CodePlace.HOST
            return True, CodePlace.DEVICE
        if own in self.returns and words.HOST_NAME.search(own):
            return False, self.returns[own]
        if method in words.HOST_METHODS or words.HOST_NAME.search(own) or own[:1].isupper():
            return False, self.returns.get(own, CodePlace.UNKNOWN)
        if words.is_opaque(node):
            return False, self.returns.get(own, CodePlace.UNKNOWN)
        if arguments is not CodePlace.HOST and (words.MODEL_NAME.match(own) or words.is_step(name, method)):
            return True, CodePlace.DEVICE
        if CodePlace.DEVICE in given:
            return True, self.returns.get(own, CodePlace.DEVICE)
        return self._is_measured(node, name), self.returns.get(own, CodePlace.UNKNOWN)

    def _made(self, node: cst.Call, name: str, own: str, arguments: CodePlace, depth: int) -> CodePlace | None:
        """Return where a value lies that a call makes or moves; None for every other call."""
        if own in ("cuda", "xpu") or words.TO_DEVICE.search(own):
            return CodePlace.DEVICE
        if own in words.TO_HOST:
            return CodePlace.HOST
        if own == "to":
            target = node.args[0].value if node.args else None
            text = _code(target) if target is not None else ""
            if words.DTYPE.search(text) or target is None:
                return self._owner(node, depth)
            return CodePlace.HOST if self.of(target, depth + 1) is CodePlace.CPU else CodePlace.DEVICE
        if own == "device":
            return CodePlace.CPU if arguments is CodePlace.CPU else CodePlace.NAME
        if own == "partial":
            return CodePlace.CALLABLE if arguments in (CodePlace.DEVICE, CodePlace.CALLABLE) else CodePlace.UNKNOWN
        if name in words.COMPILERS or (own in ("jit", "compile") and node.args and not words.is_host_module(name)):
            return CodePlace.CALLABLE if arguments is not CodePlace.HOST else CodePlace.HOST
        if name in words.MAKERS:
            device = next((a.value for a in node.args if a.keyword is not None and a.keyword.value == "device"), None)
            if device is not None:
                return CodePlace.HOST if self.of(device, depth + 1) is CodePlace.CPU else CodePlace.DEVICE
            if own.endswith("_like"):
                return arguments
            on_device = self._makes_on_device or not name.startswith("torch.")
            return CodePlace.DEVICE if on_device else CodePlace.HOST
        if name.startswith("torch.nn.") and own[:1].isupper():
            return CodePlace.UNKNOWN if self._makes_on_device else CodePlace.HOST
        return None

    def _owner(self, node: cst.Call, depth: int) -> CodePlace:
        return self.of(node.func.value, depth + 1) if isinstance(node.func, cst.Attribute) else CodePlace.UNKNOWN

    def _is_measured(self, node: cst.Call, name: str) -> bool:
        """Whether a parameter is called in a function that measures what it is given: ``def bench(fn): ... fn()``."""
        if not isinstance(node.func, cst.Name) or not any(name in p for p in self._parameters):
            return False
        words_of_it = [*self._functions, *(p for names in self._parameters for p in names)]
        return any(words.MEASURES.search(w) for w in words_of_it)

    def _works(self, node: cst.CSTNode, depth: int) -> bool:
        if isinstance(node, cst.Call):
            return self.judge(node, depth + 1)[0] or any(self._works(a.value, depth + 1) for a in node.args)
        if isinstance(node, cst.Tuple | cst.List):
            return any(self._works(e.value, depth + 1) for e in node.elements)
        if isinstance(node, cst.BinaryOperation):
            return any(self.of(p, depth + 1) is CodePlace.DEVICE for p in (node.left, node.right))
        return False


def _together(places: Sequence[CodePlace]) -> CodePlace:
    """Return the place of what is made of several: on a device if any is there, on the host only if all that are known are."""
    for place in (CodePlace.DEVICE, CodePlace.CALLABLE):
        if place in places:
            return place
    known = {p for p in places if p is not CodePlace.UNKNOWN}
    if known == {CodePlace.CPU}:
        return CodePlace.CPU
    if CodePlace.NAME in known and known <= {CodePlace.CPU, CodePlace.NAME}:
        return CodePlace.NAME
    return CodePlace.HOST if known and CodePlace.UNKNOWN not in places else CodePlace.UNKNOWN


_EMPTY = cst.Module([])


def _code(node: cst.CSTNode) -> str:
    name = plain(node)
    return name or re.sub(r"\s+", " ", _EMPTY.code_for_node(node))
