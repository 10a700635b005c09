"""The comparison report: its data and how it is built."""
