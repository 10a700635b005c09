"""Frameworks: which one made a value, and the adapter for it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from traceanalyzer.capture.device import DeviceAdapter
from traceanalyzer.errors import CaptureUnavailable, OptionError


@dataclass(frozen=True)
class Adapter:
    """A framework: the package that has to be installed, the packages that make its arrays, and ``module:function`` of its device."""

    package: str
    arrays_of: tuple[str, ...]
    place: str


_ADAPTERS = {
    "pytorch": Adapter("torch", ("torch",), "pytorch:torch_device"),
    "jax": Adapter("jax", ("jax", "jaxlib"), "jax:jax_device"),
    "tensorflow": Adapter("tensorflow", ("tensorflow",), "tensorflow:tensorflow_device"),
}
FRAMEWORKS = tuple(_ADAPTERS)
_FRAMEWORK_OF = {package: name for name, adapter in _ADAPTERS.items() for package in adapter.arrays_of}
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
    """Return the framework whose arrays are in the values, empty where there are none. Imports nothing."""
    for value in values:
        for leaf in leaves(value):
            for base in type(leaf).__mro__:
                name = _FRAMEWORK_OF.get(base.__module__.split(".", 1)[0])
                if name is not None:
                    return name
    return ""


def loaded() -> list[str]:
    """Return the frameworks that this process has imported."""
    return [f for f in FRAMEWORKS if _ADAPTERS[f].package in sys.modules]


def open_device(framework: str, kind: str = "auto") -> DeviceAdapter:
    """Return the adapter for a framework. Raises CaptureUnavailable where the framework or the device is missing."""
    if framework not in FRAMEWORKS:
        raise OptionError(
            "unknown_framework", f"no framework is called '{framework}'", hint=f"there are: {', '.join(FRAMEWORKS)}"
        )
    adapter = _ADAPTERS[framework]
    module, _, function = adapter.place.partition(":")
    try:
        device: DeviceAdapter = getattr(import_module(f"{__name__}.{module}"), function)(kind)
    except ImportError:
        extra = "install the extra: pip install -e '.[capture]'" if framework == "pytorch" else f"install {framework}"
        raise CaptureUnavailable(
            f"no_{adapter.package}", f"capture needs {adapter.package}, which is not installed", hint=extra
        ) from None
    return device
