"""ROCm: rpd, rocprofv3 and rocprof, as databases and as JSON."""
