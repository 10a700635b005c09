"""Offsets beyond 2**31 elements, in memory that is reserved and never touched but for one page."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton.language as tl

from traceanalyzer.kernels.msda.backward import msda_backward_kernel
from traceanalyzer.kernels.msda.forward import msda_forward_kernel
from traceanalyzer.kernels.msda.levels import Levels

SIDE = 46_342  # SIDE * SIDE is just over 2**31
CONSTANTS = {"HEADS": 1, "CHANNELS": 1, "LEVELS": 1, "POINTS": 1, "COMPUTE": tl.float64}
BLOCKS = {"BLOCK_ROWS": 1, "BLOCK_CHANNELS": 1}


@pytest.fixture
def huge():
    try:
        storage = np.zeros(SIDE * SIDE, dtype=np.float16)  # calloc: pages appear when written
    except MemoryError:
        pytest.skip("this machine does not promise 4.3 GB of address space")
    return torch.from_numpy(storage)


def last_pixel():
    """Return levels of one huge image and the location of the centre of its last pixel."""
    levels = Levels.of([(SIDE, SIDE)])
    assert levels.pixels > 2**31
    return levels, torch.full((1, 1, 1, 1, 1, 2), (SIDE - 0.5) / SIDE, dtype=torch.float64)


def test_forward_reads_beyond_two_to_the_31_elements(huge):
    levels, location = last_pixel()
    huge[-1] = 3.0
    result = torch.zeros(1)
    # value is passed as a view of one element: the interpreter copies an argument back, the kernel sees a pointer
    arguments = (result, huge[:1], levels.shapes, levels.starts, location, torch.ones(1))
    msda_forward_kernel[(1,)](*arguments, 1, 1, levels.pixels, **CONSTANTS, **BLOCKS)
    assert result.item() == pytest.approx(3.0)


def test_backward_adds_beyond_two_to_the_31_elements(huge):
    levels, location = last_pixel()
    out = (huge[:1], torch.zeros(2), torch.zeros(1))
    given = (torch.full((1,), 2.0), huge[:1], levels.shapes, levels.starts, location, torch.ones(1))
    msda_backward_kernel[(1,)](*out, *given, 1, 1, levels.pixels, **CONSTANTS, **BLOCKS)
    assert huge[-1].item() == pytest.approx(2.0)
    assert huge[0].item() == 0
