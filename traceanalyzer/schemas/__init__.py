"""JSON Schema files of what this project writes."""
