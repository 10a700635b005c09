"""The CUDA adapter's own logic, on a stand-in for torch: which stream a graph is captured on, what a failure leaves behind."""

from __future__ import annotations

import contextlib
import sys
import types

import pytest

pytest.importorskip("torch")

from traceanalyzer.capture import api
from traceanalyzer.capture.frameworks import pytorch
from traceanalyzer.capture.frameworks.pytorch import TorchCuda


class Stand:
    """As much of torch as the adapter asks for; ``log`` is what was asked, in order."""

    def __init__(self, *, capture_fails: str = "", current: str = "default") -> None:
        self.log: list[str] = []
        self.stream = current
        self.mode = 0
        self.capture_fails = capture_fails
        self._C = types.SimpleNamespace(
            _cuda_endAllocateToPool=lambda index, pool: self.log.append(f"pool ended {index} {pool}")
        )
        self.cuda = self

    # torch.cuda
    def current_stream(self):
        return self._stream(self.stream)

    def default_stream(self):
        return self._stream("default")

    def _stream(self, name):
        class Stream(str):
            def wait_stream(self, other):
                """Nothing to wait for here."""

        return Stream(name)

    def Stream(self):
        return self._stream("side")

    @contextlib.contextmanager
    def _on(self, stream):
        before, self.stream = self.stream, str(stream)
        try:
            yield
        finally:
            self.stream = before

    def __getattr__(self, name):
        raise AttributeError(name)

    def graph_pool_handle(self):
        return "pool"

    def synchronize(self, *_):
        self.log.append("synchronize")

    def get_sync_debug_mode(self):
        return self.mode

    def set_sync_debug_mode(self, mode):
        self.mode = mode

    def CUDAGraph(self):
        stand = self

        class Graph:
            def capture_begin(self, pool):
                stand.log.append(f"begin on {stand.stream} into {pool}")

            def capture_end(self):
                stand.log.append("end")
                if stand.capture_fails:
                    raise RuntimeError(stand.capture_fails)

            def reset(self):
                stand.log.append("reset")

            def replay(self):
                stand.log.append(f"replay on {stand.stream}")

        return Graph()


def adapter(**kind):
    stand = Stand(**kind)
    stand.stream_context = stand._on
    device = object.__new__(TorchCuda)
    device._torch = types.SimpleNamespace(cuda=_with_stream(stand), _C=stand._C)
    device._module, device._index, device._cache, device._cycles_per_ns = stand, 0, None, 0.0
    return device, stand


def _with_stream(stand):
    names = (
        "current_stream",
        "default_stream",
        "Stream",
        "graph_pool_handle",
        "get_sync_debug_mode",
        "set_sync_debug_mode",
        "CUDAGraph",
    )
    return types.SimpleNamespace(**{n: getattr(stand, n) for n in names}, stream=stand._on)


def test_a_graph_is_captured_on_a_side_stream_and_replayed_on_the_current_one():
    device, stand = adapter()
    replay = device.graph(lambda: stand.log.append(f"call on {stand.stream}"), 2)
    assert stand.log[:3] == ["call on side"] * 3, "the warm-up that torch asks for"
    assert stand.log[4:] == ["begin on side into pool", "call on side", "call on side", "end"]
    replay()
    assert stand.log[-1] == "replay on default" and stand.stream == "default"


def test_where_the_current_stream_is_no_default_one_the_graph_is_captured_there():
    """autograd runs a backward on the stream of its forward: the capture must be on that very stream."""
    device, stand = adapter(current="own")
    device.graph(lambda: stand.log.append(f"call on {stand.stream}"), 1)
    assert "begin on own into pool" in stand.log and stand.stream == "own"


def test_a_call_that_fails_in_the_capture_leaves_neither_stream_nor_pool_behind():
    device, stand = adapter(capture_fails="capture was invalidated")
    calls = []

    def call():
        calls.append(stand.stream)
        if len(calls) > 4:
            raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.raises(RuntimeError, match="not permitted when stream is capturing"):
        device.graph(call, 3)
    assert stand.log[-4:] == ["end", "pool ended 0 pool", "reset", "synchronize"]
    assert stand.stream == "default" and stand.mode == 0


def test_a_capture_that_only_its_end_shows_as_failed_is_given_up_too():
    device, stand = adapter(capture_fails="capture was invalidated")
    with pytest.raises(RuntimeError, match="invalidated"):
        device.graph(lambda: None, 3)
    assert "pool ended 0 pool" in stand.log and stand.stream == "default"


def test_a_call_that_synchronises_is_refused_before_any_capture_begins():
    device, stand = adapter()

    def call():
        if stand.mode == "error":
            raise RuntimeError("called a synchronizing CUDA operation")

    with pytest.raises(RuntimeError, match="synchronizing"):
        device.graph(call, 3)
    assert not [x for x in stand.log if x.startswith("begin")] and stand.mode == 0


def test_peak_memory_leaves_out_the_buffer_that_is_cleared():
    device, stand = adapter()
    stand.max_memory_allocated = lambda index: 300 << 20
    assert device.peak_memory_bytes() == 300 << 20
    device._cache = object()
    assert device.peak_memory_bytes() == 44 << 20


@pytest.mark.parametrize(
    "error", [AssertionError("return_mode"), TypeError("return_mode"), RuntimeError("0 active drivers")]
)
def test_a_do_bench_that_cannot_answer_leaves_it_to_our_own_loop(monkeypatch, error):
    def do_bench(*_, **__):
        raise error

    monkeypatch.setitem(sys.modules, "triton.testing", types.SimpleNamespace(do_bench=do_bench))
    assert adapter()[0].do_bench(lambda: None) is None


def test_do_bench_readings_become_nanoseconds(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.testing", types.SimpleNamespace(do_bench=lambda *_, **__: [0.01, 0.02]))
    assert adapter()[0].do_bench(lambda: None) == [10_000.0, 20_000.0]


def test_a_device_may_be_named_by_its_number(monkeypatch):
    made = []
    monkeypatch.setattr(pytorch, "available", lambda kind: kind in ("cuda", "cpu"))
    monkeypatch.setitem(pytorch._KINDS, "cuda", made.append)
    monkeypatch.setattr("torch.cuda.current_device", lambda: 3)
    for kind in ("cuda:1", "cuda", "auto"):
        pytorch.torch_device(kind)
    assert made == [1, 3, 3]


def tensor(kind, index):
    return types.SimpleNamespace(device=types.SimpleNamespace(type=kind, index=index))


@pytest.mark.parametrize(
    ("tensors", "device"),
    [
        ([], ""), ([tensor("cpu", None)], "cpu"), ([tensor("cpu", None), tensor("cuda", 0)], "cuda"),
        ([tensor("cuda", 1)], "cuda:1"), ([tensor("mps", 0)], "mps"),
    ],
)  # fmt: skip
def test_the_tensors_say_which_device_is_measured(tensors, device):
    assert api._torch_kind(tensors) == device
