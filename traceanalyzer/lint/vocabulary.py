"""The names that decide: clocks, barriers, transfers that wait, calls that stay on the host."""

from __future__ import annotations

import re

CLOCKS = frozenset(
    {
        "time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns", "time.perf_counter_ns",
        "time.monotonic_ns", "timeit.default_timer",
    }
)  # fmt: skip
"""Functions that read the host's clock."""

REPEATERS = frozenset({"timeit.timeit", "timeit.repeat", "timeit.Timer"})
"""Functions that read the host's clock around calls of their first argument."""

COARSE_CLOCKS = {
    "time.time": "time.perf_counter",
    "time.time_ns": "time.perf_counter_ns",
    "time.process_time": "time.perf_counter",
}
"""Clocks that are no clock for a benchmark, and what takes their place: the first two may step, the last stops while it waits."""

BARRIERS = {
    "torch.cuda.synchronize": "torch-cuda",
    "torch.xpu.synchronize": "torch-xpu",
    "torch.mps.synchronize": "torch-mps",
    "torch.accelerator.synchronize": "torch",
    "jax.block_until_ready": "jax",
    "jax.device_get": "jax",
    "jax.effects_barrier": "jax",
    "tensorflow.test.experimental.sync_devices": "tensorflow",
    "cupy.cuda.Device.synchronize": "cupy",
    "cupy.cuda.runtime.deviceSynchronize": "cupy",
}
"""Functions that wait for a device, with the framework whose work they wait for."""

WAITING_METHODS = frozenset({"block_until_ready", "synchronize", "item", "cpu", "numpy", "tolist", "wait", "result"})
"""Methods that return only when the device has done the work behind their object."""

WAITING_NAME = re.compile(
    r"(^|_)sync(hroni[sz]e)?(_(devices?|gpu|cuda|all|stream|default_stream|if_\w+))?$|barrier$|block_until_ready|(^|_)wait(_|$)|device_get",
    re.I,
)
"""A function of any origin with such a name is taken to wait: its author says so."""

FETCHING = frozenset(
    {
        "torch.allclose", "torch.equal", "torch.testing.assert_close", "torch.save", "torch.nonzero", "torch.unique", "torch.masked_select",
        "numpy.testing.assert_allclose", "ray.get", "jax.device_get", "torch.testing.assert_allclose",
    }
)  # fmt: skip
"""Functions that need the value of a result."""

FETCHED_IN = re.compile(
    r"block_until_ready|\.item\(|\bnp\.(asarray|array)|\bnumpy\.(asarray|array)|device_get|\.cpu\(|synchronize"
)
"""A function that is handed on and waits: ``tree_map(lambda x: x.block_until_ready(), out)``."""

WARM_NAME = re.compile(r"warm|compile(?![dr])|burn", re.I)
"""Of a call or a result that warms up. What is `compiled` is called later, and `torch.compiler` compiles nothing."""
COMPILES_LATER = frozenset({"torch.compile", "jax.jit"})
"""Compile at the first call of what they return, so that they warm up nothing."""

HOST_CALLS = frozenset(
    {
        "print", "len", "range", "enumerate", "zip", "min", "max", "sum", "sorted", "list", "dict", "set", "tuple", "str", "repr", "int", "open",
        "isinstance", "getattr", "hasattr", "format", "round", "abs", "map", "filter", "iter", "next", "super", "type", "vars", "id", "exit", "input",
        "any", "all", "divmod", "pow", "hash", "callable", "bool", "bytes", "reversed", "setattr", "slice",
    }
)  # fmt: skip
"""Built-in functions: no work of a device."""

HOST_MODULES = frozenset(
    {
        "os", "sys", "json", "math", "random", "time", "timeit", "logging", "pathlib", "argparse", "subprocess", "gc", "re", "csv", "itertools",
        "functools", "collections", "contextlib", "copy", "statistics", "datetime", "shutil", "glob", "pickle", "numpy", "pandas", "matplotlib", "tqdm",
        "psutil", "threading", "multiprocessing", "queue", "requests", "yaml", "rich", "tabulate", "sklearn", "scipy", "PIL", "cv2", "wandb", "socket",
        "asyncio", "aiohttp", "httpx", "openai", "transformers.AutoTokenizer", "datasets", "pynvml", "inspect", "warnings", "traceback", "signal",
        "tempfile", "urllib", "hashlib", "struct", "string", "uuid", "types", "typing", "platform", "concurrent", "torch.utils", "torch.profiler",
        "torch.manual_seed", "torch.device", "torch.no_grad", "torch.inference_mode", "torch.set_grad_enabled", "torch.enable_grad", "torch.distributed",
        "torch.load", "torch.jit.load", "torch.cuda.is_available", "torch.cuda.Event", "torch.cuda.Stream", "torch.cuda.stream",
        "torch.cuda.empty_cache", "torch.cuda.reset_peak_memory_stats", "torch.cuda.max_memory_allocated", "torch.cuda.memory_allocated",
        "torch.cuda.nvtx", "torch.cuda.set_device", "torch.cuda.current_stream", "torch.backends", "torch.autocast", "torch.amp", "torch.compile",
        "torch.hub", "torch.nn", "torch.cuda.device_count", "torch.cuda.get_device_name", "torch.cuda.get_device_properties", "torch.export",
        "torch.onnx", "torch._dynamo", "torch.dtype", "torch.is_tensor", "torch.Generator", "jax.jit", "jax.random.PRNGKey", "jax.random.key",
        "jax.devices", "jax.profiler", "jax.config", "jax.vmap", "jax.grad", "torch.version", "torch.library", "torch.fx", "torch.optim",
    }
)  # fmt: skip
"""Modules (and functions) whose calls start no work that a clock would have to wait for."""

HOST_METHODS = frozenset(
    {
        "squeeze", "unsqueeze", "t", "transpose", "permute", "expand", "flatten", "unflatten", "chunk", "narrow", "unbind",
        "append", "extend", "add", "update", "items", "keys", "values", "format", "join", "split", "strip", "write", "read", "close", "info", "debug",
        "warning", "error", "eval", "train", "parameters", "named_parameters", "state_dict", "load_state_dict", "add_argument", "parse_args", "get",
        "pop", "sort", "index", "count", "copy", "startswith", "endswith", "replace", "encode", "decode", "size", "dim", "numel", "element_size",
        "set_postfix", "set_description", "set_epoch", "log", "flush", "is_set", "start", "stop", "tic", "toc", "reset", "sleep", "element_spec",
        "batch_decode", "apply_chat_template", "from_pretrained", "requires_grad_", "record", "elapsed_time", "query", "enter_context", "mkdir", "exists",
        "submit", "tokenize", "detach", "data_ptr", "stride", "set", "shape", "isoformat", "savefig", "plot", "to_csv", "to_json", "lower", "upper",
        "__enter__", "__exit__", "create_task", "put", "get_nowait", "step_info", "dump", "dumps", "load", "loads", "seed", "manual_seed", "view",
        "register_forward_hook", "register_buffer", "modules", "children", "insert", "clear", "remove", "discard", "setdefault", "fromkeys",
    }
)  # fmt: skip
"""Methods that start no work of a device."""

MAKERS = frozenset(
    {
        "torch.randn", "torch.rand", "torch.randint", "torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.arange", "torch.tensor",
        "torch.from_numpy", "torch.randn_like", "torch.rand_like", "torch.linspace", "jax.random.normal", "jax.random.uniform", "jax.device_put",
        "torch.normal", "torch.randperm", "torch.eye", "jax.numpy.ones", "jax.numpy.zeros", "tensorflow.random.normal", "tensorflow.random.uniform",
    }
)  # fmt: skip
"""Functions that make an input."""

MOVERS = frozenset({"cuda", "to", "pin_memory"})
"""Methods that may move data to the device."""

CHECKS = re.compile(
    r"allclose|assert_close|assert_allclose|isclose|array_equal|assert_equal|assert_array|torch\.equal|max_abs|max_diff|max_err|abs_err|rel_err|"
    r"\berror\b.*max\(|mismatch|opcheck|gradcheck|\.equal\(|cosine_similarity|is_correct|check_correct|verify|validate|correctness",
    re.I,
)
"""Something in the file compares results."""
