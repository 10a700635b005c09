"""Tests of this folder need Triton's interpreter, which must be chosen before a kernel is decorated.

The choice holds for a whole process and would spoil the tests that compile, so ``tests/kernels/test_interpreter.py``
runs each file here in a process of its own. By hand: ``TRITON_INTERPRET=1 pytest tests/kernels/interpreted``.
"""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("TRITON_INTERPRET") == "1" else ["test_*.py"]
