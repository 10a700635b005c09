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


class Place(StrEnum):
    """Of a value. ``CALLABLE``: calling it works on the device. ``CPU``, ``NAME``: the name of the host, of another device."""

    DEVICE = "device"
    HOST = "host"
    CALLABLE = "callable"
    CPU = "cpu"
    NAME = "name"
    UNKNOWN = ""


class Places:
    """The places of a file's variables, in the order of its text. Read a file twice: what is set further down is known the second time."""

    def __init__(self, names: Names, text: str) -> None:
        self.names = names
        self.file: dict[str, Place] = {}
        self.returns: dict[str, Place] = {}
        self._scopes: list[dict[str, Place]] = [{}]
        self._parameters: list[set[str]] = [set()]
        self._functions: list[str] = []
        self._judged: dict[cst.CSTNode, tuple[bool, Place]] = {}
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
        known: dict[str, Place] = {}
        names: set[str] = set()
        parameters = node.params
        for parameter in (*parameters.posonly_params, *parameters.params, *parameters.kwonly_params):
            names.add(parameter.name.value)
            if parameter.annotation is not None and words.TENSOR_TYPE.search(_code(parameter.annotation.annotation)):
                known[parameter.name.value] = Place.DEVICE
        if any(words.DEVICE_DECORATOR.search(_code(d.decorator)) for d in node.decorators):
            self.file[node.name.value] = Place.CALLABLE
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
        if self._functions and (place := self.of(node)) is not Place.UNKNOWN:
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

    def moved(self, name: str, place: Place) -> None:
        """Let a module be where a statement of its own moves it: ``model.to(device)``."""
        self._scopes[-1][name] = place

    def lookup(self, name: str) -> Place:
        """Return where a dotted name lies: its own place, or that of what it is an attribute of."""
        if words.HOST_VARIABLE.search(name):
            return Place.HOST
        while name:
            for known in (*reversed(self._scopes), self.file):
                if name in known:
                    return known[name]
            name, _, attribute = name.rpartition(".")
            if attribute in words.HOST_ATTRIBUTES:
                return Place.HOST
        return Place.UNKNOWN

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

    def of(self, node: cst.CSTNode, depth: int = 0) -> Place:
        """Return where the value of an expression lies."""
        if depth > MOST_DEPTH:
            return Place.UNKNOWN
        if isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            name = plain(node)
            if name:
                return self.lookup(name)
            return self.of(node.value, depth + 1) if isinstance(node, cst.Subscript | cst.Attribute) else Place.UNKNOWN
        if isinstance(node, cst.Call):
            return self.judge(node, depth)[1]
        if isinstance(node, cst.SimpleString):
            text = node.raw_value
            return Place.CPU if text == "cpu" else Place.NAME if words.DEVICE_STRING.match(text) else Place.UNKNOWN
        if isinstance(node, cst.Lambda):
            return Place.CALLABLE if self._works(node.body, depth) else Place.UNKNOWN
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

    def judge(self, node: cst.Call, depth: int = 0) -> tuple[bool, Place]:
        """Return whether a call starts work on a device, and where its value lies."""
        if node not in self._judged:
            works, place = self._judge(node, depth)
            self._judged[node] = (works and not self.on_host, place)
        return self._judged[node]

    def _judge(self, node: cst.Call, depth: int) -> tuple[bool, Place]:
        name = self.names.dotted(node.func)
        method = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        own = method or name.rpartition(".")[2]
        given = [self.of(a.value, depth + 1) for a in node.args]
        arguments = _together(given)
        if isinstance(node.func, cst.Subscript):
            return self._kernels, Place.UNKNOWN
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
            return False, _together([arguments, self._owner(node, depth)]) if passed else Place.HOST
        if name.startswith("torch.distributed."):
            return Place.DEVICE in given and own.startswith(("all_", "reduce")) and not own.endswith(
                "_object"
            ), Place.UNKNOWN
        framework = words.FRAMEWORK_WORK.match(name)
        if framework is not None:
            on_host = arguments is Place.HOST and not self._always_device
            return not on_host, Place.HOST if on_host else Place.DEVICE
        callee = self.lookup(plain(node.func)) if plain(node.func) else self.of(node.func, depth + 1)
        if method and callee is Place.UNKNOWN:
            callee = self._owner(node, depth)
        if callee is Place.HOST:
            return False, Place.HOST
        if callee in (Place.DEVICE, Place.CALLABLE):
            if words.has_opaque_keyword(node) or "pipe" in own or (method and words.OPAQUE_NAME.search(method)):
                return False, Place.UNKNOWN
            if method in words.HOST_METHODS or words.HOST_NAME.search(own):
                return False, Place.DEVICE if method in words.VIEWS else Place.HOST
            return True, Place.DEVICE
        if own in self.returns and words.HOST_NAME.search(own):
            return False, self.returns[own]
        if method in words.HOST_METHODS or words.HOST_NAME.search(own) or own[:1].isupper():
            return False, self.returns.get(own, Place.UNKNOWN)
        if words.is_opaque(node):
            return False, self.returns.get(own, Place.UNKNOWN)
        if arguments is not Place.HOST and (words.MODEL_NAME.match(own) or words.is_step(name, method)):
            return True, Place.DEVICE
        if Place.DEVICE in given:
            return True, self.returns.get(own, Place.DEVICE)
        return self._is_measured(node, name), self.returns.get(own, Place.UNKNOWN)

    def _made(self, node: cst.Call, name: str, own: str, arguments: Place, depth: int) -> Place | None:
        """Return where a value lies that a call makes or moves; None for every other call."""
        if own in ("cuda", "xpu") or words.TO_DEVICE.search(own):
            return Place.DEVICE
        if own in words.TO_HOST:
            return Place.HOST
        if own == "to":
            target = node.args[0].value if node.args else None
            text = _code(target) if target is not None else ""
            if words.DTYPE.search(text) or target is None:
                return self._owner(node, depth)
            return Place.HOST if self.of(target, depth + 1) is Place.CPU else Place.DEVICE
        if own == "device":
            return Place.CPU if arguments is Place.CPU else Place.NAME
        if own == "partial":
            return Place.CALLABLE if arguments in (Place.DEVICE, Place.CALLABLE) else Place.UNKNOWN
        if name in words.COMPILERS or (own in ("jit", "compile") and node.args and not words.is_host_module(name)):
            return Place.CALLABLE if arguments is not Place.HOST else Place.HOST
        if name in words.MAKERS:
            device = next((a.value for a in node.args if a.keyword is not None and a.keyword.value == "device"), None)
            if device is not None:
                return Place.HOST if self.of(device, depth + 1) is Place.CPU else Place.DEVICE
            if own.endswith("_like"):
                return arguments
            on_device = self._makes_on_device or not name.startswith("torch.")
            return Place.DEVICE if on_device else Place.HOST
        if name.startswith("torch.nn.") and own[:1].isupper():
            return Place.UNKNOWN if self._makes_on_device else Place.HOST
        return None

    def _owner(self, node: cst.Call, depth: int) -> Place:
        return self.of(node.func.value, depth + 1) if isinstance(node.func, cst.Attribute) else Place.UNKNOWN

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
            return any(self.of(p, depth + 1) is Place.DEVICE for p in (node.left, node.right))
        return False


def _together(places: Sequence[Place]) -> Place:
    """Return the place of what is made of several: on a device if any is there, on the host only if all that are known are."""
    for place in (Place.DEVICE, Place.CALLABLE):
        if place in places:
            return place
    known = {p for p in places if p is not Place.UNKNOWN}
    if known == {Place.CPU}:
        return Place.CPU
    if Place.NAME in known and known <= {Place.CPU, Place.NAME}:
        return Place.NAME
    return Place.HOST if known and Place.UNKNOWN not in places else Place.UNKNOWN


_EMPTY = cst.Module([])


def _code(node: cst.CSTNode) -> str:
    name = plain(node)
    return name or re.sub(r"\s+", " ", _EMPTY.code_for_node(node))
