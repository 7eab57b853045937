"""Memory, threads and processor time of a server's process, from Linux's /proc."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path


def status(pid: int, field: str) -> int:
    """Return a number of /proc/PID/status, such as VmRSS and VmHWM (in KiB) or Threads."""
    text = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    found = re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE)
    if found is None:
        raise AssertionError(f"/proc/{pid}/status has no {field}: the process has ended")
    return int(found[1])


def resident_mib(pid: int) -> float:
    """Return the resident memory of a process."""
    return status(pid, "VmRSS") / 1024


def peak_mib(pid: int) -> float:
    """Return the peak of resident memory since ``forget_peak``, or since the start of the process."""
    return status(pid, "VmHWM") / 1024


def forget_peak(pid: int) -> None:
    """Reset the peak of resident memory, if the kernel allows it."""
    with suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def processor_s(pid: int) -> float:
    """Return the seconds of processor time of a process, user and system together."""
    return sum(processor_split_s(pid))


def processor_split_s(pid: int) -> tuple[float, float]:
    """Return the seconds of processor time of a process, as a pair of user and system time."""
    fields, ticks = _stat(pid), os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks, int(fields[12]) / ticks


def switches(pid: int) -> tuple[int, int]:
    """Return the voluntary and the involuntary context switches of all living threads of a process."""
    gave, lost = 0, 0
    for file in Path(f"/proc/{pid}/task").glob("*/status"):
        with suppress(OSError):  # the thread has ended
            numbers = dict(re.findall(r"^(\w+_ctxt_switches):\s+(\d+)", file.read_text(encoding="ascii"), re.MULTILINE))
            gave += int(numbers["voluntary_ctxt_switches"])
            lost += int(numbers["nonvoluntary_ctxt_switches"])
    return gave, lost


def group_processor_s(pid: int) -> float:
    """Return the seconds of processor time of all processes in a group; each server is started in its own group."""
    total = 0.0
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if int(_stat(int(folder.name))[2]) == pid:
                total += processor_s(int(folder.name))
    return total


def _stat(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat from the third one on, which is the state."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
