"""A process that is told to end does so where the system gives it no more threads."""

from __future__ import annotations

import signal
from itertools import product
from pathlib import Path

import pytest

from invoker.client import SyncRiffClient
from tests.e2e.process import started
from tests.e2e.stopping import invoke

pytestmark = pytest.mark.timeout(20)

CROWDED = """
import asyncio, threading, time
from collections.abc import AsyncIterator, Iterator
from invoker import function

def none(*args, **kwargs):
    raise RuntimeError("can't start new thread")

def crowd():
    for name in ("_start_new_thread", "_start_joinable_thread"):
        if hasattr(threading, name):
            setattr(threading, name, none)

@function
async def loops(values: AsyncIterator[int]) -> AsyncIterator[int]:
    async for value in values:
        crowd()
        yield value
        await asyncio.sleep(0.3)
        yield value

@function
def threads(values: Iterator[int]) -> Iterator[int]:
    for value in values:
        crowd()
        yield value
        time.sleep(0.3)
        yield value

@function(isolation="process")
def apart(values: Iterator[int]) -> Iterator[int]:
    for value in values:
        yield value
        time.sleep(0.3)
        yield value
"""


ONE, TWO = [signal.SIGTERM], [signal.SIGTERM, signal.SIGTERM]


@pytest.mark.parametrize(
    ("driver", "name", "numbers"),
    [
        *product(("fast", "aio"), ("loops", "threads", "apart"), (ONE, TWO)),
        *product(("fast", "aio"), ("loops",), ([signal.SIGINT],)),
    ],
)
def test_R024_the_end_needs_no_new_thread(tmp_path: Path, driver, name, numbers):
    """Where the system gives no more of them, what runs ends well all the same, and the process with it.

    SIGINT is SIGTERM by another number, whatever runs: one function shows that it is heard.
    """
    (tmp_path / "crowded.py").write_text(CROWDED)
    with started("crowded", "--grpc-driver", driver, cwd=tmp_path, env={"INVOKER_LAME_DUCK_S": "0.2"}) as process:
        address, _ = process.ready()
        with SyncRiffClient(address) as client:
            if name == "apart":
                assert list(invoke(client, "loops", [1])) == [1, 1]
            got = invoke(client, name, [7])
            assert next(got) == 7
            for number in numbers:
                process.send(number)
            assert list(got) == [7]
            assert process.exit_code() == 0
