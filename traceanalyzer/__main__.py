"""``python -m traceanalyzer`` and the console script."""

from __future__ import annotations

from traceanalyzer import interrupts


def main() -> None:
    """Run the command line and end the process."""
    interrupts.install()  # before anything that takes time to import

    import gc
    import os
    import sys

    # One report, then the process ends: looking for cycles among a million rows only costs time.
    gc.disable()
    # closed by the caller (`>&-`): the same as sent nowhere, and -o still works
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - lives as long as the process
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123

    from traceanalyzer.cli import run

    code = run(sys.argv[1:])
    # Nothing is left to close or to remove, and taking a million objects apart is a tenth of a small report.
    os._exit(code)


if __name__ == "__main__":
    main()
