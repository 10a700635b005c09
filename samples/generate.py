"""Makes the samples with the project's own simulator, and the golden reports beside them.

Usage: python samples/generate.py [--check]. The bytes are the same on every machine; --check writes nothing and
fails when a file on disk differs.
"""

from __future__ import annotations

import csv
import io
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
DEMO = HERE.parent / "traceanalyzer" / "demo" / "cpu_bound_loop.json"
"""The sample that is part of every installation, for ``traceanalyze demo``."""
sys.path.insert(0, str(HERE.parent))

import numpy as np  # noqa: E402

import traceanalyzer as ta  # noqa: E402
from tests.kineto_writer import document, to_json  # noqa: E402
from tests.queue_sim import Machine  # noqa: E402
from traceanalyzer.render.json_v1 import render_json  # noqa: E402
from traceanalyzer.render.screen import render_screen  # noqa: E402


def machine(**settings: int | float) -> Machine:
    """Return a machine with a seeded jitter of 3 %."""
    return Machine(**{"gap": 1000, "jitter": 0.03, **settings}, rng=np.random.default_rng(20261130))  # type: ignore[arg-type]


def cpu_bound_loop() -> Machine:
    """A 10 us kernel dispatched every 40 us from Python: the queue is always empty."""
    m = machine()
    for _ in range(60):
        start = m.now
        m.launch("triton_poi_fused_add_mul_0", 10_000, host_cost=40_000, call=5000, api="cuLaunchKernel")
        m.host.append(type(m.host[0])("op", "triton_poi_fused_add_mul_0", start + 8000, m.now))
    m.sync()
    return m


def gpu_bound_loop() -> Machine:
    """A 45 us kernel dispatched every 10 us: the queue fills and stays full."""
    m = machine()
    for _ in range(60):
        m.launch(
            "void gemm_kernel<float, 128, 64>(float const*, float const*, float*)", 45_000, host_cost=10_000, call=3000
        )
    m.sync()
    return m


def sync_in_loop() -> Machine:
    """A 12 us kernel with a synchronise in every iteration: each reading is a sum."""
    m = machine()
    for _ in range(50):
        m.launch("softmax_kernel", 12_000, host_cost=20_000, call=4000)
        m.sync()
    return m


def graph_replay() -> Machine:
    """A graph of eight short kernels, replayed every 60 us: the replay itself is CPU-bound."""
    m = machine()
    nodes = [(f"graph_node_{i}", 3000 + 500 * i) for i in range(8)]
    for _ in range(20):
        m.graph(nodes, host_cost=60_000, call=9000, node_gap=800)
    m.sync()
    return m


def do_bench_clear() -> Machine:
    """A clear of 85 us before each 9 us kernel, between event records: the clear hides the dispatch."""
    m = machine()
    for _ in range(40):
        m.launch("Memset (Device)", 85_000, host_cost=6000, call=3000, kind="memset", api="cudaMemsetAsync")
        m.record()
        m.launch("triton_poi_fused_add_mul_0", 9000, host_cost=40_000, call=5000, api="cuLaunchKernel")
        m.record()
    m.sync()
    return m


SAMPLES: dict[str, Callable[[], Machine]] = {
    f.__name__: f for f in (cpu_bound_loop, gpu_bound_loop, sync_in_loop, graph_replay, do_bench_clear)
}


def files() -> dict[Path, str]:
    """Return every file of this folder that is made, with its text."""
    made: dict[Path, str] = {}
    index = io.StringIO()
    table = csv.writer(index, lineterminator="\n")
    table.writerow(["file", "simulated", "what", "queue"])
    for name, simulate in SAMPLES.items():
        m = simulate()
        settings = {
            "latency_ns": m.latency,
            "gap_ns": m.gap,
            "record_cost_ns": m.record_cost,
            "sync_cost_ns": m.sync_cost,
            "jitter": m.jitter,
        }
        path = HERE / f"{name}.json"
        made[path] = to_json(document(m, simulated=True, simulator=settings))
        with tempfile.TemporaryDirectory() as folder:
            fresh = Path(folder) / path.name
            fresh.write_text(made[path], encoding="utf-8")
            report = ta.analyze(fresh)
        if path.name == DEMO.name:
            made[DEMO] = made[path]
        golden = HERE / "golden" / name
        made[golden.with_suffix(".txt")] = render_screen(report.data)
        made[golden.with_suffix(".md")] = report.to_markdown()
        # every threshold of every rule would change these files whenever one is tuned
        made[golden.with_suffix(".json")] = render_json(replace(report.data, thresholds={}))
        table.writerow([path.name, "yes", " ".join((simulate.__doc__ or "").split()), report.data.devices[0].queue])
    made[HERE / "index.csv"] = index.getvalue()
    shown = made[HERE / "golden" / "cpu_bound_loop.txt"].rstrip()
    readme = HERE.parent / "README.md"
    # the report that README shows is the one this code makes
    made[readme] = re.sub(
        r"(?s)(```text\n).*?(\n```)", lambda m: m[1] + shown + m[2], readme.read_text(encoding="utf-8"), count=1
    )
    return made


def main() -> None:
    """Write the samples and their reports, or compare them."""
    stale = []
    for path, text in files().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in sys.argv:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8")
    print(f"{'stale' if '--check' in sys.argv else 'written'}: {', '.join(stale) or 'nothing'}")
    sys.exit(1 if stale and "--check" in sys.argv else 0)


if __name__ == "__main__":
    main()
