"""How many cores this process may use: the cores that the scheduler allows, and the share of its container."""

from __future__ import annotations

import math
import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """The number of cores, at least 1; a fraction of a core counts as a whole one.

    Args:
        quota: File with microseconds of CPU and of the period they are for, as Linux shows it (cgroup v2).
    """
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        given, period = quota.read_text(encoding="ascii").split()
        return max(1, min(allowed, math.ceil(int(given) / int(period))))
    except (OSError, ValueError):  # the file does not exist, or contains "max"
        return max(1, allowed)
