"""Offsets beyond 2**31 elements, in memory that is reserved and never touched but for one page."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import triton.language as tl

from traceanalyzer.errors import OptionError
from traceanalyzer.kernels.msda.backward import msda_backward_kernel
from traceanalyzer.kernels.msda.forward import msda_forward_kernel
from traceanalyzer.kernels.msda.levels import Levels
from traceanalyzer.kernels.msda.sampling import MOST_IMAGES, grid, offset_type, size_class
from traceanalyzer.kernels.rows import MOST_ROWS, rows_of

SIDE = 46_342  # SIDE * SIDE is just over 2**31
CONSTANTS = {"HEADS": 1, "CHANNELS": 1, "LEVELS": 1, "POINTS": 1, "COMPUTE": tl.float64}
CONSTANTS |= {"OFFSET": offset_type(SIDE * SIDE)}
BLOCKS = {"BLOCK_QUERIES": 1, "BLOCK_CHANNELS": 1}


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
    msda_forward_kernel[(1, 1)](*arguments, 1, levels.pixels, 16, **CONSTANTS, **BLOCKS)
    assert result.item() == pytest.approx(3.0)


def test_backward_adds_beyond_two_to_the_31_elements(huge):
    levels, location = last_pixel()
    out = (huge[:1], torch.zeros(2), torch.zeros(1))
    given = (torch.full((1,), 2.0), huge[:1], levels.shapes, levels.starts, location, torch.ones(1))
    msda_backward_kernel[(1, 1)](*out, *given, 1, levels.pixels, 16, **CONSTANTS, **BLOCKS)
    assert huge[-1].item() == pytest.approx(2.0)
    assert huge[0].item() == 0


def test_forward_of_the_second_image_reads_beyond_two_to_the_31_elements(huge):
    """An image under 2**31 values has 32-bit offsets inside; where the second begins is 64-bit all the same."""
    side = 40_000  # 1.6e9 values an image
    levels = Levels.of([(side, side)])
    assert offset_type(levels.pixels) is tl.int32
    pixel = 2**31 + 12_345 - levels.pixels  # of the second image
    huge[2**31 + 12_345] = 5.0
    y, x = divmod(pixel, side)
    location = torch.tensor([(x + 0.5) / side, (y + 0.5) / side], dtype=torch.float64)
    locations = torch.cat([torch.zeros(2, dtype=torch.float64), location])
    result = torch.zeros(2)
    arguments = (result, huge[:1], levels.shapes, levels.starts, locations, torch.ones(2))
    constants = CONSTANTS | {"OFFSET": tl.int32}
    msda_forward_kernel[(1, 2)](*arguments, 1, levels.pixels, 16, **constants, **BLOCKS)
    assert result[1].item() == pytest.approx(5.0)


def test_what_a_launch_cannot_take_is_refused():
    with pytest.raises(OptionError, match="batch of 65536"):
        grid(MOST_IMAGES + 1, 1, 1, 1)
    with pytest.raises(OptionError, match="fit in one launch"):
        rows_of(torch.empty((MOST_ROWS + 1, 1), device="meta"))


def test_sizes_that_share_a_configuration_are_those_of_one_power_of_two():
    assert size_class(4, 300, 8) == size_class(1, 1_200, 8) == 16_384
    assert size_class(1, 1, 1) == 16
