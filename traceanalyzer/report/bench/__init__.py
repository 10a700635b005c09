"""The table of benchmark results."""
