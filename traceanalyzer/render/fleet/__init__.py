"""Answers on a fleet of traces, as text, Markdown and a page."""
