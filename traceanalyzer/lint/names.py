"""Dotted names with the module's own imports resolved: ``pc()`` after ``from time import perf_counter as pc``."""

from __future__ import annotations

import libcst as cst

_SHORT = {"tf": "tensorflow", "jnp": "jax.numpy", "np": "numpy", "cp": "cupy", "plt": "matplotlib", "pd": "pandas"}


class Names(cst.CSTVisitor):
    """The imports of a module, wherever in it they are."""

    def __init__(self) -> None:
        super().__init__()
        self.aliases: dict[str, str] = dict(_SHORT)
        self.modules: set[str] = set()

    def visit_Import(self, node: cst.Import) -> None:
        for alias in node.names:
            name = _text(alias.name)
            self.modules.add(name.split(".")[0])
            if alias.asname is not None:
                self.aliases[_text(alias.asname.name)] = name
            else:
                self.aliases.setdefault(name.split(".")[0], name.split(".")[0])

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if node.module is None or node.relative:
            return
        module = _text(node.module)
        self.modules.add(module.split(".")[0])
        if isinstance(node.names, cst.ImportStar):
            return
        for alias in node.names:
            name = _text(alias.name)
            self.aliases[_text(alias.asname.name) if alias.asname is not None else name] = f"{module}.{name}"

    def dotted(self, node: cst.CSTNode) -> str:
        """Return the name of what is called, its first part resolved; empty where it has none (the result of a call)."""
        name = _text(node)
        if not name:
            return ""
        first, dot, rest = name.partition(".")
        return self.aliases.get(first, first) + dot + rest


def _text(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        owner = _text(node.value)
        return f"{owner}.{node.attr.value}" if owner else ""
    return ""


def plain(node: cst.CSTNode) -> str:
    """Return a variable's name (``t0``, ``self.start``, ``events`` of ``events[i]``), empty for any other expression."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        owner = plain(node.value)
        return f"{owner}.{node.attr.value}" if owner else ""
    if isinstance(node, cst.Subscript):
        return plain(node.value)
    return ""
