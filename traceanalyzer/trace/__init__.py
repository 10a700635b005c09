"""Reading: from the bytes of a trace file to linked, columnar tables."""
