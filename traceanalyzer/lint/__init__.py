"""What a benchmark script gets wrong before anything runs: rules over its source text. Nothing of the script is executed."""
