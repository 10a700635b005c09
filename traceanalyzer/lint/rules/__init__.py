"""One rule a file; its examples are its tests."""
