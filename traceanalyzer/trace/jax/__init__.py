"""JAX and XLA: the Chrome JSON and the XPlane file that ``jax.profiler`` writes."""
