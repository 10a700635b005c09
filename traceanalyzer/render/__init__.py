"""Renderers: a finished report in, text out. Nothing here computes a number."""
