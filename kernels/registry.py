"""The operators by name. Listing names costs nothing; an operator is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from traceanalyzer.capture.needs import require_torch
from traceanalyzer.kernels.operator import Operator, check_name

_MODULES = {
    "empty": "traceanalyzer.kernels.empty",
    "vector_add": "traceanalyzer.kernels.vector_add",
    "softmax": "traceanalyzer.kernels.softmax",
    "rms_norm": "traceanalyzer.kernels.rms_norm",
    "matmul": "traceanalyzer.kernels.matmul",
    "msda": "traceanalyzer.kernels.msda.definition",
}


class _Operators(Mapping[str, Operator]):
    """Names are there at once; a value is imported on access, which imports torch (and triton where installed)."""

    def __getitem__(self, name: str) -> Operator:
        module = _MODULES[name]
        require_torch()
        found: Operator = import_module(module).OPERATOR
        return found

    def __contains__(self, name: object) -> bool:
        return name in _MODULES  # Mapping's own would import the module to find out

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


OPERATORS: Mapping[str, Operator] = _Operators()
"""Operator name -> :class:`~traceanalyzer.kernels.operator.Operator`, simplest first."""


def operator(name: str) -> Operator:
    """Return the operator called ``name``.

    Raises :class:`~traceanalyzer.errors.OptionError` for an unknown name, with the nearest known one, and
    :class:`~traceanalyzer.errors.CaptureUnavailable` (exit code 4) where torch is not installed.
    """
    check_name("operator", name, OPERATORS)
    return OPERATORS[name]
