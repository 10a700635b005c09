"""Kernels: real operators to capture. Installed as ``traceanalyzer.kernels``.

Each operator is in its own file (``msda`` in its own folder) with a Triton kernel, a PyTorch reference,
an input maker with named presets, its bytes and flops, and a tolerance by dtype. docs/kernels.md describes
them. Importing this package imports neither torch nor triton; asking for an operator does.
"""

from __future__ import annotations

from traceanalyzer.kernels.operator import Backward, Implementation, Inputs, Operator, Unavailable
from traceanalyzer.kernels.registry import OPERATORS, operator

__all__ = ["OPERATORS", "Backward", "Implementation", "Inputs", "Operator", "Unavailable", "operator"]
