"""A function that cancels every task of the loop ends its own call, and nothing else."""

from __future__ import annotations

import signal
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from invoker.client import CallFailed, SyncRiffClient
from tests.conftest import SLOW
from tests.e2e.process import started

pytestmark = pytest.mark.timeout(30)

JSON = "application/json"
MODULE = """
import asyncio
from collections.abc import AsyncIterator
from typing import NamedTuple
from invoker import function

def cancel():
    for task in asyncio.all_tasks():
        task.cancel()

@function
async def value(x: int) -> int:
    cancel()
    await asyncio.sleep(3600)

@function
async def stream(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    yield 1
    cancel()
    await asyncio.sleep(3600)

class Two(NamedTuple):
    left: AsyncIterator[int]
    right: AsyncIterator[int]

@function
async def two(xs: AsyncIterator[int]) -> Two:
    async def each():
        yield 1
        cancel()
        await asyncio.sleep(3600)
    return Two(each(), each())

@function(isolation="process")
async def apart(x: int) -> int:
    cancel()
    await asyncio.sleep(3600)

@function
async def later(x: int) -> int:
    asyncio.get_running_loop().call_soon(cancel)
    await asyncio.sleep(3600)

@function
async def waits(x: int) -> int:
    await asyncio.sleep(0.05 * x)
    return x

@function
def waits_in_a_thread(x: int) -> int:
    import time
    time.sleep(0.05 * x)
    return x
"""


def over_http(address: str, name: str, value: int) -> tuple[int, bytes]:
    request = urllib.request.Request(f"http://{address}/{name}", str(value).encode())
    try:
        with urllib.request.urlopen(request, timeout=10 * SLOW) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
@pytest.mark.parametrize("driver", ["fast", "aio"])
def test_only_its_own_call_fails(tmp_path: Path, loop: str, driver: str) -> None:
    """Of whatever kind it is; calls that are under way by gRPC and HTTP end well, as does the process."""
    if loop == "uvloop":
        pytest.importorskip("uvloop")
    (tmp_path / "author.py").write_text(MODULE)
    with (
        started("author", "--loop", loop, "--grpc-driver", driver, cwd=tmp_path) as process,
        ThreadPoolExecutor(8) as pool,
    ):
        grpc_address, http_address = process.ready()
        with SyncRiffClient(grpc_address) as client:

            def by_grpc(name: str, value: int) -> list[int]:
                return [one.value for one in client.invoke([[value]], accept=JSON, content_type=JSON, function=name)]

            for name in ("value", "stream", "two", "apart", "later"):
                others = ("waits", "waits_in_a_thread")
                under_way = [pool.submit(by_grpc, one, 10) for one in others]
                under_way += [pool.submit(over_http, http_address, one, 10) for one in others]
                with pytest.raises(CallFailed):
                    by_grpc(name, 1)
                if name in ("value", "apart", "later"):
                    assert over_http(http_address, name, 1)[0] >= 499
                assert [one.result() for one in under_way] == [[10], [10], (200, b"10"), (200, b"10")]
        process.send(signal.SIGTERM)
        assert process.exit_code() == 0
