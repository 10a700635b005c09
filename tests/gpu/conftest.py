"""Everything here needs a GPU: marked ``gpu``, and skipped with the reason where torch sees none."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def why_not() -> str:
    """Return why the tests cannot run, empty where they can."""
    for package in ("torch", "triton"):
        if find_spec(package) is None:
            return f"{package} is not installed"
    import torch

    return "" if torch.cuda.is_available() else "torch sees no CUDA or ROCm device on this machine"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lies in this folder, and skip it without a GPU."""
    here = [item for item in items if HERE in item.path.parents]
    reason = why_not() if here else ""
    for item in here:
        item.add_marker(pytest.mark.gpu)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
