"""Pure functions from tables to tables and dataclasses. Nothing here prints, or reads a file."""
