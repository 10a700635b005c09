"""A history of runs in one SQLite file."""
