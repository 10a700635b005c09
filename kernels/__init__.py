"""Kernels: real operators to capture. Installed as ``traceanalyzer.kernels``.

Each kernel will stand in its own file with a PyTorch reference, an input maker with named presets, its bytes
and flops, and a tolerance by dtype. None is here yet; :data:`PLANNED` names them.
"""

from __future__ import annotations

PLANNED = ("empty", "vector_add", "softmax", "rms_norm", "matmul", "msda")
"""Operators to come, in order of work."""
