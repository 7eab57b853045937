"""One run of a sync function over each driver that it may have: in the wire's own thread, whole, and by a hop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from invoker.errors import InvocationError
from tests.execution.loopcalls import FakeCall
from tests.execution.memory import driver_of
from tests.execution.wholes import WholeCall
from tests.execution.wires import LIMIT_S, Call, direct_driver

Got = tuple[list[tuple[int, bytes]], InvocationError | None]
Run = Callable[..., Got]


def directly(fn: Any, *data: bytes, outputs: int = 2) -> Got:
    call = Call(direct_driver(fn)).start(*["application/json"] * outputs)
    for payload in data:
        call.data(payload)
    error = call.half_close().end()
    return [(index, payload) for index in range(outputs) for payload in call.payloads(index)], error


def wholly(fn: Any, *data: bytes, outputs: int = 2) -> Got:
    call = WholeCall(direct_driver(fn)).start(*["application/json"] * outputs)
    for payload in data:
        call.data(payload)
    error = call.end()
    return [(index, payload) for index in range(outputs) for payload in call.payloads(index)], error


def in_thread(fn: Any, *data: bytes, outputs: int = 2) -> Got:
    async def run() -> Got:
        peer = FakeCall(driver_of(fn)).start(*["application/json"] * outputs)
        for payload in data:
            peer.data(payload)
        error = await asyncio.wait_for(peer.half_close().end(), LIMIT_S)
        await peer.driver.left(LIMIT_S)
        peer.driver.threads.close()
        return [(index, payload) for index in range(outputs) for payload in peer.payloads(index)], error

    return asyncio.run(run())


sync_drivers = pytest.mark.parametrize("run", [directly, wholly, in_thread])
