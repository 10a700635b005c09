"""Units: what a run repeats, as comparisons of whole runs need it."""
