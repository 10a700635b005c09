"""The user's own line at an instant: the innermost Python frame whose file is not of the language or of a library.

Frames are named ``path(line): function``. PyTorch takes the folders of ``sys.path`` off the path, so that a library's file begins
with the library's name; what lies deeper in a folder of packages shows that folder.
"""

from __future__ import annotations

import re
import sys

_FRAME = re.compile(r"^(?P<path>[^()<>]*\.py)\((?P<line>\d+)\): ")
_LIBRARY_FOLDERS = re.compile(
    r"(?:^|[\\/])(?:site-packages|dist-packages|lib(?:64)?[\\/]python[\d.]*|torchinductor_[^\\/]*)[\\/]"
)
_LIBRARIES = frozenset({
    "torch", "torchvision", "torchaudio", "torchao", "torchrec", "triton", "transformers", "accelerate",
    "diffusers", "datasets", "deepspeed", "vllm", "sglang", "xformers", "flash_attn", "flashinfer", "aiter",
    "sgl_kernel", "apex", "megatron", "transformer_engine", "lightning", "pytorch_lightning", "lightning_fabric",
    "torchmetrics", "numpy", "scipy", "pandas", "PIL", "cv2", "timm", "peft", "trl", "bitsandbytes", "tqdm", "jax",
    "jaxlib", "flax", "tensorflow", "keras", "sklearn", "einops", "ray", "uvicorn", "fastapi", "starlette", "anyio",
    "IPython", "ipykernel", "traitlets", "tornado", "jupyter_client", "nest_asyncio", "wandb", "hydra", "omegaconf",
    "pydantic", "requests", "urllib3", "click", "typer", "fire", "absl", "huggingface_hub", "safetensors",
    "tokenizers", "sentencepiece", "torch_geometric", "dgl", "mmcv", "mmengine", "mmdet", "detectron2", "pytest",
    "_pytest", "pluggy", "nvtx", "cupy", "numba", "cuda", "tensorrt", "onnxruntime", "onnx", "networkx", "sympy",
    "filelock", "packaging", "yaml", "matplotlib", "h5py", "joblib", "zmq",
})  # fmt: skip


def is_users(frame: str) -> bool:
    """Return whether a Python frame of this name is of the user's own code."""
    found = _FRAME.match(frame[:1024])
    if found is None or _LIBRARY_FOLDERS.search(found["path"]):
        return False
    first, _, rest = found["path"].replace("\\", "/").partition("/")
    if not rest:
        first = first.removesuffix(".py")
        return first not in sys.stdlib_module_names
    return first not in _LIBRARIES and first not in sys.stdlib_module_names


def short_line(frame: str) -> str:
    """Return base name and line of a frame, without folder and function: ``train.py:76``."""
    found = _FRAME.match(frame)
    if found is None:
        return ""
    name = re.split(r"[\\/]", found["path"])[-1]
    return f"{name}:{found['line']}"
