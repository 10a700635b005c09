"""What is compared, matched and judged of two runs."""
