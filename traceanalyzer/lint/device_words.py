"""The names that tell whether a call works on a device: a framework's operations, models, compilers, and what stays on the host."""

from __future__ import annotations

import re

import libcst as cst

from traceanalyzer.lint.names import plain
from traceanalyzer.lint.vocabulary import HOST_CALLS, HOST_METHODS, HOST_MODULES, MAKERS

__all__ = ["HOST_CALLS", "HOST_METHODS", "MAKERS"]

DEFAULT_DEVICE = re.compile(r"set_default_device\(\s*(?!['\"]cpu)|set_default_tensor_type\(\s*['\"]?torch\.cuda")
"""Tensors are made on a device without being told."""

TENSOR_TYPE = re.compile(r"\b(Tensor|Array|jnp\.ndarray|FloatTensor)\b")
DEVICE_DECORATOR = re.compile(r"\b(jit|pmap|compile|tf\.function|triton\.\w+|autotune)\b")
DEVICE_STRING = re.compile(r"(cuda|xpu|mps|hip|npu|hpu|gpu|tpu)(:\d+)?$")
ASKS_FOR_DEVICE = re.compile(r"cuda|\bgpu\b|\bxpu\b|use_gpu|on_gpu|has_gpu|device", re.I)
ASKS_FOR_HOST = re.compile(r"\bnot\b|==\s*['\"]cpu|is_cpu|!=\s*['\"]cuda", re.I)
"""A condition whose first branch is for machines, or for tensors, without a device."""

HOST_VARIABLE = re.compile(r"(^|_)(cpu|np|numpy|host)$|^(cpu|np|numpy|host)_", re.I)
DTYPE = re.compile(
    r"^(torch\.(float|int|bfloat|bf|half|long|double|bool|complex|uint|qint|channels|contiguous)|dtype|jnp\.|np\.)|dtype$|memory_format"
)

HOST_ATTRIBUTES = frozenset(
    {"shape", "device", "dtype", "ndim", "size", "config", "name", "__name__", "training", "sharding", "nbytes"}
)
"""Attributes of a tensor or model that are values of the host."""

TO_DEVICE = re.compile(r"(^|_)to_(cuda|gpu|device)$", re.I)
"""A function of any origin that moves what it is given to the device."""

TO_HOST = frozenset({"cpu", "numpy", "tolist", "item", "device_get", "asarray_host"})
VIEWS = frozenset(
    {
        "view",
        "detach",
        "copy",
        "values",
        "items",
        "get",
        "pop",
        "requires_grad_",
        "eval",
        "train",
        "parameters",
        "stride",
    }
)
"""Methods whose value lies where their object lies, and that start no work."""

HOST_FUNCTION = re.compile(r"(print|len|str|repr|type|isinstance|hasattr|id|log|info|debug|warning)$")

COMPILERS = frozenset(
    {
        "torch.compile", "jax.jit", "jax.pmap", "jax.vmap", "jax.grad", "jax.value_and_grad", "torch.jit.script", "torch.jit.trace",
        "torch.cuda.make_graphed_callables", "tensorflow.function", "torch.func.vmap", "torch.vmap", "jax.named_call",
        "torch.nn.parallel.DistributedDataParallel", "torch.nn.DataParallel",
    }
)  # fmt: skip
"""What they return works on the device when it is called."""

FRAMEWORK_WORK = re.compile(
    r"torch\.(?![\w.]*(?:\._|_object$|empty_cache$|memory\w*$|device\w*$|stream$))(?!cuda|npu|mtia|hpu|xpu|mps|backends|utils|profiler|nn\.Module|jit|hub|onnx|export|testing|serialization|futures|multiprocessing|random|version|"
    r"set_|get_|is_|manual_seed|Size|Generator|Stream|Event|finfo|iinfo|distributions|optim|accelerator|cpu|load|save|_\w|fx|library|autograd\.profiler|"
    r"distributed\.|[A-Z])[\w.]+$"
    r"|jax\.(numpy|lax|nn|scipy|random|image|ops)\.[\w.]+$"
    r"|tensorflow\.(matmul|nn|linalg|math|signal|image|reduce_\w+|add|multiply|tensordot|einsum|transpose|concat|random)\b[\w.]*$"
    r"|cupy\.(?!cuda|asnumpy|get_|show_)[\w.]+$"
)
"""A framework's own operations."""

MODEL_NAME = re.compile(
    r"_?(?:compiled_|ref_|my_|base_|student_|teacher_|opt_|ddp_|jit_|fp\d+_|bf16_|test_|forward_|triton_|torch_|fused_)?"
    r"(?:model|net|network|module|layer|encoder|decoder|unet|vae|backbone|critic|discriminator|criterion|loss_fn|attn|attention|mlp|kernel|"
    r"transformer|forward|backward|fwd|bwd|forward_backward|fwd_bwd|train_step|matmul|gemm|softmax|layernorm|layer_norm|rmsnorm|rms_norm|conv|conv2d|"
    r"flash_attn\w*|scaled_dot_product_attention)"
    r"(?:_?(?:fp\d+|fp8\w*|bf16|int\d|fn|func|opt|compiled|fwd|bwd|ref|\d+|cuda|gpu|ema|pt|torch|triton|kernel|without_ddp))*$",
    re.I,
)
"""What such names stand for works on the device in a file that uses one."""

OPAQUE_KEYWORDS = frozenset({"verbose", "stream", "show", "conf", "imgsz", "use_tqdm", "callbacks"})
"""A call with such an argument is of a program's whole step."""

_STEPPERS = re.compile(r"(^|[._])(opt|optim|optimizer|optimiser|scaler|trainer|engine|model_engine)\w*\.step$")

HOST_NAME = re.compile(
    r"compil(?!ed)|serializ|autotun|tune|bench|profil|\bparse|tokeniz|cache|lookup|load|save|export|import|download|upload|read|write|store|fetch|log|print|"
    r"report|plot|draw|init|setup|create|build|make|prepare|config|register|count|summar|info|memory|hook|trace|measure|evaluat|dispatch|wait|lock|"
    r"hash|fill|drain|(^|_)(get|set|is|has|check|find|list|add|use|to|as|from|select|patch|wrap|free|release|update|collect|empty|clear|reset|start|stop|"
    r"assert\w*|expect|enter|exit|close|open|terminate|kill|join|send|recv|connect|request|query|schedule|sleep|seed|name|str|dict)(_|$)",
    re.I,
)
"""A function with such a name compiles, reads, keeps books or measures by itself; with tensors as arguments too."""

OPAQUE_NAME = re.compile(
    r"render|draw|visuali|display|infer|predict|detect|generat|transcri|translat|(^|_)(encode|decode|chat|complete|fit|search|segment|run|solve|process|simulate|sample|sampler|"
    r"test|validate|eval|nms|non_max_suppression|main|benchmark|pipe|pipeline|execute|call|rollout|play|train|apply_fn|accuracy|metric\w*)(_|$|\d)|"
    r"post_?process|callback|collate|imwrite|imshow|accuracy",
    re.I,
)
"""A whole step of a program: it may fetch its result itself. Taken for neither work nor a barrier, unless it is defined in the file."""

MEASURES = re.compile(
    r"bench|time|timing|latency|measure|perf|speed|profile|throughput|warm|n_?iter|num_iter|iters|repeat|reps\b|n_?runs|trials",
    re.I,
)
CPU_FUNCTION = re.compile(r"(^|_)(cpu|onnx|ort|tflite|openvino)(_|$)", re.I)


def is_step(name: str, method: str) -> bool:
    """Return whether a call is a step of training: ``loss.backward()``, ``optimizer.step()``, ``graph.replay()``."""
    if method == "forward":
        owner = name.rpartition(".")[0].rpartition(".")[2]
        return owner == "self" or bool(MODEL_NAME.match(owner))
    return method in ("backward", "replay", "all_reduce", "apply_gradients") or bool(_STEPPERS.search(name))


def is_host_module(name: str) -> bool:
    """Return whether a name is of a module, or is a function, that starts no work."""
    parts = name.split(".")
    if name.startswith(("torch.distributed.", "torch.nn.functional.")):
        return False
    return any(".".join(parts[:n]) in HOST_MODULES for n in range(1, len(parts) + 1))


def has_opaque_keyword(node: cst.Call) -> bool:
    """Return whether a call has an argument that only a whole step of a program takes."""
    return any(a.keyword is not None and a.keyword.value in OPAQUE_KEYWORDS for a in node.args)


def is_opaque(node: cst.Call) -> bool:
    """Return whether a call may wait for its own result: ``model.generate()``, ``pipe(prompt)``, ``self.pipeline.forward()``."""
    name = plain(node.func)
    own, owner = name.rpartition(".")[2], name.rpartition(".")[0].rpartition(".")[2]
    return (
        has_opaque_keyword(node)
        or bool(OPAQUE_NAME.search(own))
        or (own == "forward" and bool(OPAQUE_NAME.search(owner)))
    )
