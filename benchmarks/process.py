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
    return sum(processor_split_s(pid))


def processor_split_s(pid: int) -> tuple[float, float]:
    """The same, user and system apart."""
    fields, ticks = _stat(pid), os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def switches(pid: int) -> tuple[int, int]:
    """Context switches of all threads that live: those that waited, and those that were preempted."""
    gave, lost = 0, 0
    for file in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):  # the thread ended meanwhile
            numbers = dict(re.findall(r"^(\w+_ctxt_switches):\s+(\d+)", file.read_text(encoding="ascii"), re.MULTILINE))
            gave += int(numbers["voluntary_ctxt_switches"])
            lost += int(numbers["nonvoluntary_ctxt_switches"])
    return gave, lost


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
