"""The doctor: one file per rule, each with its documentation, thresholds, check and examples."""
