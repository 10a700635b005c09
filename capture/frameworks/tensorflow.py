"""TensorFlow: the barrier is ``tf.test.experimental.sync_devices``."""

from __future__ import annotations

from typing import Any

from traceanalyzer.capture.device import Capability, DeviceAdapter
from traceanalyzer.errors import CaptureUnavailable
from traceanalyzer.trace.sidecar import DeviceFacts


class TensorFlowDevice(DeviceAdapter):
    """The devices TensorFlow sees; the barrier covers all of them."""

    framework = "tensorflow"

    def __init__(self) -> None:
        import tensorflow as tf

        self._tf = tf
        gpus = tf.config.list_logical_devices("GPU")
        self.kind = "cuda" if gpus and tf.test.is_built_with_cuda() else "rocm" if gpus else "cpu"

    def facts(self) -> DeviceFacts:
        """Return the kind."""
        return DeviceFacts(self.kind, "cpu" if self.kind == "cpu" else "GPU (TensorFlow)")

    def lacks(self, capability: Capability) -> str:
        """Return the reason: TensorFlow shows neither streams nor events."""
        return {
            Capability.EVENTS: "TensorFlow gives no access to device events",
            Capability.BLOCKER: "TensorFlow gives no access to the device's stream",
            Capability.CLEAR: "without events there is nothing before which a cache could be cleared",
            Capability.GRAPH: "TensorFlow gives no access to device graphs",
            Capability.PROFILER: "TensorFlow's profiler writes no Chrome trace",
        }[capability]

    def synchronize(self, outputs: Any = None) -> None:
        """Wait for every device."""
        self._tf.test.experimental.sync_devices()

    def versions(self) -> dict[str, str]:
        """Return tensorflow's version."""
        return {"tensorflow": str(self._tf.__version__)}


def tensorflow_device(kind: str = "auto") -> TensorFlowDevice:
    """Return the adapter. Raises CaptureUnavailable where another kind than TensorFlow's is asked for."""
    device = TensorFlowDevice()
    if kind not in ("auto", device.kind):
        raise CaptureUnavailable(
            "no_device", f"TensorFlow runs on {device.kind} here, not on {kind}", hint="drop --device"
        )
    return device
