"""Renderers of benchmark tables."""
