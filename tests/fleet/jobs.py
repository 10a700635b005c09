"""Folders of traces for the tests: jobs whose ranks are late by design, and files of every kind of fault."""

from __future__ import annotations

from pathlib import Path

from tests.builders import trace

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def write_job(
    folder: Path, world: int, late_rank: int = 1, late_us: int = 100, steps: int = 8, kernels: int = 1
) -> Path:
    """Write one trace a rank; the late rank computes longer and all others wait for it in every collective."""
    folder.mkdir(parents=True, exist_ok=True)
    for rank in range(world):
        builder = trace()
        builder.fields["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": world}
        at = 1000
        for _ in range(steps):
            mine = 400 + (late_us if rank == late_rank else 0)
            each = mine // kernels
            for k in range(kernels):
                builder.call(at - 50, at + k * each, each, name=f"gemm_{k}")
            ends = at + 400 + late_us + 50
            builder.call(at - 20, at + each * kernels, ends - at - each * kernels, name=NCCL, stream=20)
            at = ends + 10
        builder.write(folder / f"r{rank}.json")
    return folder
