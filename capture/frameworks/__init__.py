"""Frameworks: which one made a value, and the adapter for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from traceanalyzer.capture.device import Device
from traceanalyzer.errors import CaptureUnavailable, OptionError

FRAMEWORKS = ("pytorch", "jax", "tensorflow")
_MODULES = {"torch": "pytorch", "jax": "jax", "jaxlib": "jax", "tensorflow": "tensorflow"}
_PACKAGES = {"pytorch": "torch", "jax": "jax", "tensorflow": "tensorflow"}
_DEEPEST = 8


def leaves(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yield what a tree of tuples, lists, dicts and dataclasses holds, to a bounded depth."""
    if depth < _DEEPEST:
        if isinstance(value, dict):
            for v in value.values():
                yield from leaves(v, depth + 1)
            return
        if isinstance(value, (list, tuple)):
            for v in value:
                yield from leaves(v, depth + 1)
            return
        if hasattr(value, "__dataclass_fields__"):
            for name in value.__dataclass_fields__:
                yield from leaves(getattr(value, name), depth + 1)
            return
    yield value


def framework_of(*values: Any) -> str:
    """Return the framework whose arrays stand in the values, empty where none does. Imports nothing."""
    for value in values:
        for leaf in leaves(value):
            for base in type(leaf).__mro__:
                name = _MODULES.get(base.__module__.split(".", 1)[0])
                if name is not None:
                    return name
    return ""


def loaded() -> list[str]:
    """Return the frameworks that this process has imported."""
    return [f for f in FRAMEWORKS if _PACKAGES[f] in sys.modules]


def open_device(framework: str, kind: str = "auto") -> Device:
    """Return the adapter for a framework. Raises CaptureUnavailable where the framework or the device is missing."""
    if framework not in FRAMEWORKS:
        raise OptionError(
            "unknown_framework", f"no framework is called '{framework}'", hint=f"there are: {', '.join(FRAMEWORKS)}"
        )
    try:
        return _opener(framework)(kind)
    except ImportError:
        extra = "install the extra: pip install -e '.[capture]'" if framework == "pytorch" else f"install {framework}"
        raise CaptureUnavailable(
            f"no_{_PACKAGES[framework]}", f"capture needs {_PACKAGES[framework]}, which is not installed", hint=extra
        ) from None


def _opener(framework: str) -> Callable[[str], Device]:
    if framework == "pytorch":
        from traceanalyzer.capture.frameworks.pytorch import torch_device

        return torch_device
    if framework == "jax":
        from traceanalyzer.capture.frameworks.jax import jax_device

        return jax_device
    from traceanalyzer.capture.frameworks.tensorflow import tensorflow_device

    return tensorflow_device
