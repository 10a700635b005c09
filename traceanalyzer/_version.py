"""The version, alone in its file so that packaging can read it without importing numpy."""

__version__ = "0.1.0"
