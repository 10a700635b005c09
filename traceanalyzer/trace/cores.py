"""How many processes may read a trace: one a core that this process may use, and one alone where it must not fork."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

JOBS_VARIABLE = "TRACEANALYZER_JOBS"
"""Environment variable for the number of processes; the option ``--jobs`` comes before it."""
MOST_JOBS = 8
"""No more are used without being asked for: then the process that hands the text out is what takes time."""


def processes(jobs: int) -> int:
    """Return how many processes may decode a trace; ``jobs`` is what was asked for, 0 for nothing.

    One where processes cannot be made in a moment (other systems than Linux), and where threads run: a copy of a process with
    threads may hold a lock that nobody will release.
    """
    if sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return jobs or _of_environment() or min(usable_cores(), MOST_JOBS)


def _of_environment() -> int:
    found = os.environ.get(JOBS_VARIABLE, "")
    return min(int(found), 1024) if found.isdecimal() and len(found) < 6 else 0


def usable_cores() -> int:
    """Return how many cores this process may use: by its affinity, and by the quota of its control groups."""
    try:
        cores = len(os.sched_getaffinity(0))
    except (AttributeError, OSError):
        cores = os.cpu_count() or 1
    return max(1, min(cores, _quota()))


def _quota() -> int:
    """Return the cores that the control groups of this process allow, rounded up; a large number without a limit."""
    most = 1 << 16
    for line in _text(Path("/proc/self/cgroup")).splitlines():
        _, controllers, group = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            root = Path("/sys/fs/cgroup")
            folder = root / group.lstrip("/")
            for place in (folder, *folder.parents):
                if place == root or root in place.parents:
                    most = min(most, _ceil_ratio(*[*_text(place / "cpu.max").split(), "", ""][:2]))
        elif "cpu" in controllers.split(","):
            for place in (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup/cpu") / group.lstrip("/")):
                quota, period = (_text(place / f"cpu.cfs_{word}_us") for word in ("quota", "period"))
                most = min(most, _ceil_ratio(quota.strip(), period.strip()))
    return most


def _ceil_ratio(quota: str, period: str) -> int:
    if quota.isdecimal() and period.isdecimal() and int(period):
        return max(1, -(-int(quota) // int(period)))
    return 1 << 16


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
