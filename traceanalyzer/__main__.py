"""``python -m traceanalyzer`` and the console script."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Run the command line and end the process."""
    from traceanalyzer.cli import cli

    # One report, then the process ends: looking for cycles among a million rows only costs time.
    gc.disable()
    # closed by the caller (`>&-`): the same as sent nowhere, and -o still works
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - lives as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123
    code: object = 0
    try:
        cli(prog_name="traceanalyze")
    except SystemExit as ended:
        code = ended.code
    except BrokenPipeError:
        _pipe_closed()
    if code is not None and not isinstance(code, int):
        sys.exit(str(code))
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        _pipe_closed()
    # Nothing is left to close or to remove, and taking a million objects apart is a tenth of a small report.
    os._exit(code or 0)


def _pipe_closed() -> None:
    # `| head` has enough: not an error of ours; keep Python from complaining at exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
