"""JAX on any backend: a computation is done when ``block_until_ready`` on its outputs returns."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from traceanalyzer.capture.device import Call, Capability, DeviceAdapter, Profiled
from traceanalyzer.errors import CaptureUnavailable
from traceanalyzer.trace.sidecar import DeviceFacts


class JaxDevice(DeviceAdapter):
    """The default backend of JAX."""

    framework = "jax"
    holds_outputs = True

    def __init__(self) -> None:
        import jax

        self._jax: Any = jax
        platform = jax.default_backend()
        self.kind = {"gpu": "cuda"}.get(platform, platform)

    def facts(self) -> DeviceFacts:
        """Return kind and name of the first device."""
        device = self._jax.devices()[0]
        return DeviceFacts(self.kind, "cpu" if self.kind == "cpu" else str(device.device_kind))

    def lacks(self, capability: Capability) -> str:
        """Return the reason: JAX shows neither streams nor events."""
        if capability is Capability.PROFILER:
            return ""
        return {
            Capability.EVENTS: "JAX gives no access to device events",
            Capability.BLOCKER: "JAX gives no access to the device's stream",
            Capability.CLEAR: "without events there is nothing before which a cache could be cleared",
            Capability.GRAPH: "JAX gives no access to graphs: put the loop inside jit instead",
        }[capability]

    def synchronize(self, outputs: Any = None) -> None:
        """Wait for the outputs; arrays among them are found in any tree."""
        if outputs is not None:
            self._jax.block_until_ready(outputs)
        else:
            self._jax.effects_barrier()

    def versions(self) -> dict[str, str]:
        """Return jax and jaxlib."""
        from importlib.metadata import version

        return {"jax": str(self._jax.__version__), "jaxlib": version("jaxlib")}

    def profile(self, call: Call, calls: int, annotation: str, trace: Path) -> Profiled:
        """Run calls under jax.profiler and keep the Chrome trace it writes."""
        host: list[int] = []
        with tempfile.TemporaryDirectory() as folder:
            with self._jax.profiler.trace(folder):
                outputs = []
                for _ in range(calls):
                    start = self.now_ns()
                    with self._jax.profiler.TraceAnnotation(annotation):
                        outputs.append(call())
                    host.append(self.now_ns() - start)
                self.synchronize(outputs)
            written = sorted(Path(folder).rglob("*.trace.json.gz"))
            if not written:
                return Profiled(host, None)
            partial = trace.with_name(f".{trace.name}.part")
            shutil.copyfile(written[-1], partial)
            partial.replace(trace)
        return Profiled(host, trace)


def jax_device(kind: str = "auto") -> JaxDevice:
    """Return the adapter of JAX's default backend. Raises CaptureUnavailable where another kind is asked for."""
    device = JaxDevice()
    if kind not in ("auto", device.kind):
        raise CaptureUnavailable(
            "no_device", f"JAX runs on {device.kind} here, not on {kind}", hint="set JAX_PLATFORMS, or drop --device"
        )
    return device
