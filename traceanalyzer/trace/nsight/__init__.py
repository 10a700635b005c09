"""Nsight Systems: the SQLite database that ``nsys export --type sqlite`` writes."""
