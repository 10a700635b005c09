"""``python -m traceanalyzer`` and the console script."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line."""
    from traceanalyzer.cli import cli

    # One report, then the process ends: looking for cycles among a million rows only costs time.
    gc.disable()
    try:
        cli(prog_name="traceanalyze")
    except BrokenPipeError:
        # `| head` closed the pipe: not an error of ours; keep Python from complaining at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
