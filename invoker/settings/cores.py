"""Finds out how many cores this process may use, from the scheduler and the limit of its container."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """The number of cores, at least 1; a fraction of a core counts as a whole one.

    Args:
        quota: The file of cgroup v2 with the allowed microseconds of CPU, and those of the period.
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        given, period = quota.read_text(encoding="ascii").split()
        return max(1, min(allowed, math.ceil(int(given) / int(period))))
    except (OSError, ValueError):  # the file does not exist, or contains "max"
        return max(1, allowed)
