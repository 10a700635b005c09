"""Ascend: the trace_view.json of the CANN profiler."""
