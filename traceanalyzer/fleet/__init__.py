"""Many traces: each analysed in a process of its own, their numbers kept as tables, and questions asked of the tables."""
