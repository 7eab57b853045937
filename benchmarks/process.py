"""What Linux says of a server's process: memory, threads, processor time."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path


def status(pid: int, field: str) -> int:
    """A number of /proc/PID/status: VmRSS and VmHWM in KiB, Threads."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE)
    if found is None:
        raise AssertionError(f"Linux has {field} for every process that lives")
    return int(found[1])


def resident_mib(pid: int) -> float:
    """Resident memory now."""
    return status(pid, "VmRSS") / 1024


def peak_mib(pid: int) -> float:
    """The most that was resident since ``forget_peak``, or since the start."""
    return status(pid, "VmHWM") / 1024


def forget_peak(pid: int) -> None:
    """Let the peak start anew, where the kernel lets us."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def processor_s(pid: int) -> float:
    """Processor time used, user and system."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def group_processor_s(pid: int) -> float:
    """The same of a process and of all that it started, as `benchmarks.servers.serving` starts them: in one group."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it ended meanwhile
            if int(_stat(int(folder.name))[2]) == pid:
                total += processor_s(int(folder.name))
    return total


def _stat(pid: int) -> list[str]:
    """/proc/PID/stat from the state on, which is the third of its fields."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
