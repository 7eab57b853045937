"""`invoker.telemetry.memory`: memory goes back to the system after a flood, and not before."""

from __future__ import annotations

import asyncio
import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from invoker.core.budget import ProcessBudget
from invoker.execution.bodies.pool import Threads
from invoker.telemetry.memory import MUCH_BYTES, Trimmer, malloc_trim


async def test_memory_is_trimmed_after_a_flood_off_the_loop() -> None:
    """Sixteen times, since what the transport holds is freed later, and never while the callers still hold it."""
    process, threads, asked = ProcessBudget(), Threads(4), list[int]()
    enough = asyncio.Event()
    loop = asyncio.get_running_loop()

    def trim() -> bool:
        asked.append(threading.get_ident())
        if len(asked) == 16:
            loop.call_soon_threadsafe(enough.set)
        return True

    trimmer = Trimmer(process, threads, trim=trim, look_s=0.01)
    trimmer.start()
    share = process.share()
    share.grow(MUCH_BYTES)
    await asyncio.sleep(0.05)
    assert not asked
    share.close()
    await asyncio.wait_for(enough.wait(), 5)
    await asyncio.sleep(0.05)
    assert len(asked) == 16
    assert threading.get_ident() not in asked
    trimmer.stop()
    threads.close()


@pytest.mark.parametrize(("count", "times"), [(40, 2), (20, 0)])
async def test_memory_is_trimmed_once_many_threads_have_ended_their_work(count: int, times: int) -> None:
    """Twice, whatever their values took of the budget; not while they work, and not behind a few."""
    threads, asked = Threads(64), list[int]()
    trimmer = Trimmer(ProcessBudget(), threads, trim=lambda: bool(asked.append(0)), look_s=0.01)
    trimmer.start()
    over = threading.Event()
    for _ in range(count):
        threads.start(over.wait)
    await asyncio.sleep(0.1)
    assert not asked
    over.set()
    for _ in range(500):
        await asyncio.sleep(0.01)
        if len(asked) >= times and not threads.busy:
            break
    await asyncio.sleep(0.1)
    assert len(asked) == times
    trimmer.stop()
    threads.close()


def test_the_c_library_is_asked_or_there_is_none() -> None:
    """glibc has the function; elsewhere nothing happens."""
    blocks = [bytes(100_000) for _ in range(2000)]
    keep = bytes(100_000)
    del blocks
    assert malloc_trim() in ((True, False) if hasattr(ctypes.CDLL(None), "malloc_trim") else (False,))
    assert keep


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_info"), reason="another C library")
@pytest.mark.parametrize("given", [None, "5"])
def test_threads_share_two_arenas_unless_the_environment_says_otherwise(given: str | None, tmp_path: Path) -> None:
    """Else each thread that frees much keeps the end of an arena of its own, which nobody can give back."""
    program = f"""
import ctypes, threading
from invoker.telemetry.memory import share_arenas
share_arenas()
together = threading.Barrier(8)
def take():
    together.wait()
    blocks = [bytes(100_000) for _ in range(50)]
    together.wait()
threads = [threading.Thread(target=take) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
libc = ctypes.CDLL(None)
libc.fopen.restype = ctypes.c_void_p
file = ctypes.c_void_p(libc.fopen({str(tmp_path / "arenas").encode()!r}, b"w"))
libc.malloc_info(0, file)
libc.fclose(file)
"""
    env = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    if given is not None:
        env["MALLOC_ARENA_MAX"] = given
    subprocess.run([sys.executable, "-c", program], env=env, check=True, timeout=60)
    assert (tmp_path / "arenas").read_text().count("<heap ") == int(given or 2)


async def test_nothing_looks_behind_the_stop() -> None:
    """The task is over; a trimmer that was never started can be stopped, too."""
    threads = Threads(1)
    Trimmer(ProcessBudget(), threads).stop()
    trimmer = Trimmer(ProcessBudget(), threads, look_s=3600)
    trimmer.start()
    task = trimmer._task
    assert task is not None
    trimmer.stop()
    await asyncio.wait([task])
    assert task.cancelled()
    threads.close()
