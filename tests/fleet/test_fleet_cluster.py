"""A fleet on a local scheduler with two workers, one of which is killed while it analyses."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from tests.builders import trace
from traceanalyzer.errors import OptionError

pytest.importorskip("pyarrow", reason="pyarrow is not installed (extra fleet)")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed (extra cluster)")

from traceanalyzer.fleet.cluster import Cluster  # noqa: E402
from traceanalyzer.fleet.pool import PoolOptions  # noqa: E402
from traceanalyzer.fleet.run import FleetOptions, run_fleet  # noqa: E402
from traceanalyzer.fleet.scan import TraceSource, sources  # noqa: E402
from traceanalyzer.fleet.store import Results  # noqa: E402
from traceanalyzer.fleet.worker import TraceJob  # noqa: E402


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    ) as made:
        yield made


def _kill_the_worker_of_a_task(address: str, task: str) -> None:
    client = distributed.Client(address, set_as_default=False)
    pids = client.run(os.getpid)
    while True:
        busy = [worker for worker, keys in client.processing().items() if any(task in str(k) for k in keys)]
        if busy and _has_children(pids[busy[0]]):
            os.kill(pids[busy[0]], signal.SIGKILL)
            break
        time.sleep(0.05)
    client.close()


def _has_children(pid: int) -> bool:
    import psutil

    return bool(psutil.Process(pid).children(recursive=True))


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_lost_worker_is_one_fault_and_the_rest_is_analysed(tmp_path, cluster):
    os.mkfifo(tmp_path / "blocks.json")  # whoever reads it waits for ever
    for n in range(6):
        trace().loop(20, 50, 10, 20).write(tmp_path / f"{n}.json")
    slow = TraceSource(str(tmp_path / "blocks.json"), "blocks.json", 0, 0)
    good = [TraceJob(s) for s in sources([str(tmp_path)]) if not s.code]
    threading.Thread(
        target=_kill_the_worker_of_a_task, args=(cluster.scheduler_address, "_analyse"), daemon=True
    ).start()
    with Cluster(PoolOptions(timeout_s=60), cluster.scheduler_address) as runner:
        found = list(runner.run([TraceJob(slow), *good]))
    assert len(found) == 7
    assert [(a.source.file, a.code) for a in found if a.code] == [("blocks.json", "worker_lost")]
    assert all(set(a.tables) >= {"runs", "kernels"} for a in found if not a.code)
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:  # the scheduler is as it was
        assert client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.allowed_failures) == 3


def test_results_are_those_of_one_machine(tmp_path, cluster):
    for n in range(3):
        trace().loop(20 + n, 50, 10, 20).write(tmp_path / f"{n}.json")
    (tmp_path / "bad.json").write_text("{}")
    for name, scheduler in (("there", cluster.scheduler_address), ("here", None)):
        run_fleet([str(tmp_path)], FleetOptions(tmp_path / name, scheduler=scheduler))
    there, here = Results(tmp_path / "there"), Results(tmp_path / "here")
    for table, columns in (
        ("kernels", ["file", "name", "p50_ns"]),
        ("runs", ["file", "kernels"]),
        ("faults", ["file", "code"]),
    ):
        a, b = (sorted(map(str, r.read(table, columns).to_pylist())) for r in (there, here))
        assert a == b and a


def test_an_address_without_a_scheduler_is_one_line(monkeypatch):
    with pytest.raises(OptionError, match="no scheduler answers at 'nonsense://x'"):
        Cluster(PoolOptions(), "nonsense://x")
