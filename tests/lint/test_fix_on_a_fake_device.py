"""--fix against a fake asynchronous device: the mended script prints what the unmended one should have.

The script runs whole, with a torch, jax or tensorflow of the test's own: a launch costs the host 20 us and the device 500 us,
a barrier waits. The clock is the host's, in virtual time.
"""

from __future__ import annotations

import builtins
import types

import pytest

pytest.importorskip("libcst")

from traceanalyzer.lint.engine import fixed_text, lint_text
from traceanalyzer.lint.registry import chosen

DISPATCH, KERNEL, RETURN = 20e-6, 500e-6, 10e-6


class Machine:
    """A host and a device that is behind it."""

    def __init__(self):
        self.now = self.free = 0.0

    def launch(self, *_, **__):
        self.now += DISPATCH
        self.free = max(self.free, self.now) + KERNEL
        return Tensor(self)

    def wait(self, *_):
        self.now = max(self.now, self.free) + RETURN


class Tensor:
    def __init__(self, machine):
        self.machine = machine

    def __matmul__(self, _):
        return self.machine.launch()


def modules(machine, *, present=True):
    def make(*_, **__):
        return Tensor(machine)

    cuda = types.SimpleNamespace(synchronize=machine.wait, is_available=lambda: present)
    torch = types.SimpleNamespace(randn=make, mm=machine.launch, cuda=cuda)
    random = types.SimpleNamespace(normal=make, PRNGKey=lambda _: None)
    jnp = types.SimpleNamespace(dot=machine.launch)
    jax = types.SimpleNamespace(
        jit=lambda f: f, block_until_ready=machine.wait, random=random, numpy=jnp,
    )  # fmt: skip
    devices = types.SimpleNamespace(experimental=types.SimpleNamespace(sync_devices=machine.wait))
    tf = types.SimpleNamespace(
        matmul=machine.launch, random=types.SimpleNamespace(normal=make), test=devices, function=lambda f: f,
    )  # fmt: skip
    clock = types.SimpleNamespace(perf_counter=lambda: machine.now, time=lambda: machine.now)
    return {"torch": torch, "jax": jax, "tensorflow": tf, "time": clock}


def printed(text, **given):
    """Run a script against the fake modules and return the numbers that it prints, in microseconds."""
    found = modules(Machine(), **given)
    numbers = []

    def imported(name, *_, **__):
        return found[name.partition(".")[0]]

    names = {
        "__import__": imported,
        "print": lambda *v: numbers.extend(v),
        "range": range,
        "__build_class__": builtins.__build_class__,
    }
    exec(compile(text, "bench.py", "exec"), {"__builtins__": names, "__name__": "__main__"})
    return [round(n * 1e6, 3) for n in numbers if isinstance(n, float)]


def mended(text, *codes):
    result, used = fixed_text(text, lint_text("bench.py", text, chosen(codes or ("TL10",), ())))
    assert used
    again = lint_text("bench.py", result, chosen(codes or ("TL10",), ()))
    assert fixed_text(result, again) == (result, 0)
    return result


def within(number, low, high):
    return low <= number <= high


TORCH = "import time\nimport torch\nx = torch.randn(9, 9, device='cuda')\n"


def test_torch_a_loop_without_a_barrier():
    text = (
        TORCH
        + "t0 = time.perf_counter()\nfor _ in range(100):  # a comment stays\n    y = torch.mm(x, x)\nprint((time.perf_counter() - t0) / 100)\n"
    )
    assert printed(text) == [20.0]
    assert within(printed(mended(text))[0], 500, 501)
    assert "# a comment stays" in mended(text)


def test_torch_two_regions_do_not_pay_for_each_other():
    one = "t0 = time.time()\ny = x @ x\nt1 = time.time()\nprint(t1 - t0)\n"
    text = TORCH + one + one
    assert printed(text) == [20.0, 20.0]
    assert all(within(n, 520, 531) for n in printed(mended(text, "TL101")))


def test_torch_a_barrier_in_each_turn_is_moved_behind_the_loop():
    text = (
        TORCH
        + "torch.cuda.synchronize()\nt0 = time.perf_counter()\nfor _ in range(100):\n    y = torch.mm(x, x)\n    torch.cuda.synchronize()\n"
        "print((time.perf_counter() - t0) / 100)\n"
    )
    assert within(printed(text)[0], 529, 531)
    assert within(printed(mended(text))[0], 500, 501)


def test_torch_a_warm_up_that_still_runs_when_the_clock_starts():
    text = (
        TORCH
        + "for _ in range(50):\n    torch.mm(x, x)\nt0 = time.perf_counter()\nfor _ in range(10):\n    torch.mm(x, x)\n"
        "torch.cuda.synchronize()\nprint((time.perf_counter() - t0) / 10)\n"
    )
    assert printed(text)[0] > 2000
    assert within(printed(mended(text))[0], 500, 504)


def test_torch_where_there_may_be_no_device_the_barrier_asks_first():
    text = (
        TORCH.replace("'cuda'", "'cuda' if torch.cuda.is_available() else 'cpu'")
        + "t0 = time.perf_counter()\ny = x @ x\nprint(time.perf_counter() - t0)\n"
    )
    assert printed(text) == [20.0]
    assert within(printed(mended(text))[0], 520, 531)
    assert printed(mended(text), present=False) == [20.0]


def test_jax_waits_for_the_result():
    text = (
        "import time\nimport jax\nf = jax.jit(jax.numpy.dot)\nx = jax.random.normal(jax.random.PRNGKey(0), (9, 9))\nt0 = time.perf_counter()\n"
        "y = f(x, x)\nprint(time.perf_counter() - t0)\n"
    )
    assert printed(text) == [20.0]
    assert within(printed(mended(text))[0], 520, 531)


def test_jax_behind_a_loop_is_left_to_a_person():
    text = "import time\nimport jax\nf = jax.jit(jax.numpy.dot)\nt0 = time.perf_counter()\nfor _ in range(9):\n    y = f(x, x)\nprint(time.perf_counter() - t0)\n"
    found = lint_text("bench.py", text, chosen(("TL101",), ()))
    assert [p.edits for p in found.problems] == [()]


def test_tensorflow_waits_for_every_device():
    text = (
        "import time\nimport tensorflow as tf\nx = tf.random.normal((9, 9))\nt0 = time.perf_counter()\nfor _ in range(100):\n    y = tf.matmul(x, x)\n"
        "print((time.perf_counter() - t0) / 100)\n"
    )
    assert printed(text) == [20.0]
    assert within(printed(mended(text))[0], 500, 501)
