"""Attacks on the transports of GraphPipe: whoever sends what he should not harms nobody but himself."""

from __future__ import annotations

import asyncio
import math
import socket
import struct
import time
import types
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any, NamedTuple

import numpy as np
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ResponseReceived
from h2.settings import SettingCodes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from invoker import function
from invoker.protocols import graphpipe
from invoker.protocols.graphpipe.service.framed import FramedTransport
from invoker.protocols.graphpipe.service.inferences import Inferences
from invoker.tensors import Code
from invoker.tensors.arrays import to_array
from tests.conftest import SLOW
from tests.fuzz.tensors_answers import said
from tests.fuzz.tensors_attacks import REQUESTS, changed
from tests.protocols.graphpipe.asking import METADATA_REQUEST, ask, code_of, received, values
from tests.tensors.samples import fixture
from tests.transports.models import exchanged, inferring, serving_models
from tests.transports.served import Wire, until


class Scores(NamedTuple):
    total: NDArray[np.float64]
    doubled: NDArray[np.float64]


def double(x: NDArray[Any]) -> NDArray[Any]:
    return x * 2


@asynccontextmanager
async def opened(served: Any = double, **settings: Any) -> AsyncIterator[tuple[FramedTransport, str, int]]:
    """A bare socket on a free port."""
    async with inferring(served, **settings) as inferences:
        transport = FramedTransport(inferences, "127.0.0.1:0")
        host, _, port = (await transport.start()).rpartition(":")
        try:
            yield transport, host, int(port)
        finally:
            await transport.stop(0)


def reset(writer: asyncio.StreamWriter) -> None:
    """Leave without a farewell: the peer gets a reset."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("requests", [0, 1, 5])
async def test_G018_a_reset_leaves_nothing_of_a_connection(requests: int) -> None:
    """Whether it was idle, had been answered, or had more under way."""
    async with opened() as (transport, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        if requests == 1:
            assert values(await exchanged(reader, writer, ask([1]))) == [[2]]
        for _ in range(requests - 1):
            writer.write(struct.pack("<I", len(ask([1]))) + ask([1]))
        await until(lambda: bool(transport._connections))
        reset(writer)
        await until(lambda: not transport._connections)


def test_G018_a_reset_is_no_error_of_ours_on_uvloop_either() -> None:
    """Whose transports complain otherwise than asyncio's when they are lost."""
    uvloop = pytest.importorskip("uvloop")

    async def attack() -> None:
        async with opened() as (transport, host, port):
            for number in range(20):
                _, writer = await asyncio.open_connection(host, port)
                writer.write(struct.pack("<I", len(ask([1]))) + ask([1]))
                if number % 2:
                    writer.write_eof()
                await turns(number // 2)
                reset(writer)
            await until(lambda: not transport._connections)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(attack())


async def test_G013_a_client_of_HTTP2_that_leaves_is_waited_for_no_longer() -> None:
    """Although it had taken nothing of its responses, for which there was no window."""
    async with serving_models(double) as served, served.wire() as wire:
        client = H2Connection(H2Configuration(client_side=True))
        client.initiate_connection()
        client.update_settings({SettingCodes.INITIAL_WINDOW_SIZE: 0})
        for stream in (1, 3, 5):
            head = {":method": "POST", ":path": "/graphpipe", ":scheme": "http", ":authority": "localhost"}
            client.send_headers(stream, list(head.items()))
            client.send_data(stream, METADATA_REQUEST, end_stream=True)
        await wire.send(client.data_to_send())
        heads = 0
        while heads < 3:  # their responses have begun
            heads += sum(isinstance(one, ResponseReceived) for one in client.receive_data(await wire.reader.read(9999)))
        wire.writer.transport.abort()
        await until(lambda: not served.transport.connections.open)


@pytest.mark.parametrize(
    "head", [b"\0\0", struct.pack("<I", 60 << 20), struct.pack("<I", 60 << 20) + bytes(50)], ids=len
)
async def test_G014_a_message_has_to_come_at_a_speed(head: bytes) -> None:
    """What was announced buys no time, only what has come."""
    async with opened(body_s=0.05, bytes_per_s=1000) as (_, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(head)
        async with asyncio.timeout(SLOW):
            assert await reader.read() == b""
        writer.close()


async def test_G014_a_message_that_has_not_begun_may_wait() -> None:
    """An idle connection is kept; so is one whose message comes slowly, and not too slowly."""
    async with opened(body_s=0.05, bytes_per_s=1) as (_, host, port):
        reader, writer = await asyncio.open_connection(host, port)
        await asyncio.sleep(0.1)
        whole = struct.pack("<I", len(ask([1]))) + ask([1])
        for part in (whole[:20], whole[20:]):
            writer.write(part)
            await asyncio.sleep(0.1)
        (size,) = struct.unpack("<I", await reader.readexactly(4))
        assert values(await reader.readexactly(size)) == [[2]]
        writer.close()


@pytest.mark.parametrize("fault", ["it takes too long", "it fails"])
async def test_G073_G079_rows_of_no_bytes_are_fed_no_longer_than_the_function_runs(fault: str) -> None:
    """The rest of them is not fed; others are answered meanwhile."""

    @function(options=[graphpipe.Rows()])
    def same(x: NDArray[np.float64]) -> NDArray[np.float64]:
        if fault == "it fails":
            raise ValueError("no")
        time.sleep(0.001)
        return x

    async with inferring(same, double, timeout_s=0.3) as one:
        bombing = asyncio.ensure_future(one.infer(one.first, bytearray(ask(np.zeros((65_536, 0)))), transport="test"))
        beside = await one.infer(one.models["double"], bytearray(ask([1])), transport="test")
        assert values(beside) == [[2]]
        code = Code.FUNCTION_FAILED if fault == "it fails" else Code.TIMEOUT
        assert code_of(await bombing) is code


@pytest.mark.parametrize("rows", [65_537, 2**40])
async def test_G073_very_many_rows_of_no_bytes_are_refused(rows: int) -> None:
    """A request of 100 bytes would keep a function busy until its deadline; nothing is fed (G-073)."""
    fed = []

    @function(options=[graphpipe.Rows()])
    def same(x: NDArray[np.float64]) -> NDArray[np.float64]:
        fed.append(x)
        return x

    async with inferring(same) as one:
        response = await one.infer(one.first, bytearray(ask(np.zeros((rows, 0)))), transport="test")
    assert code_of(response) is Code.TOO_LARGE
    assert not fed


# Batches and rows: everybody gets what he would get alone.


def scored(x: NDArray[np.float64], bias: NDArray[np.float64] | None = None) -> Scores:
    """Row by row, as functions for batches are; it does not like what is below zero, nor 13."""
    if (x < 0).any():
        raise ValueError("below zero")
    if len(x) and x.flat[0] == 13:
        return Scores(x.sum(axis=-1)[:-1], x)  # a row is missing
    return Scores(x.reshape(len(x), -1).sum(axis=1) + (0 if bias is None else bias), x * 2)


KINDS = st.fixed_dictionaries(
    {
        "rows": st.integers(0, 5),
        "rest": st.sampled_from([(), (1,), (2,), (2, 2)]),
        "value": st.sampled_from([1.0, 2.0, 3.0, -1.0, 13.0]),
        "dtype": st.sampled_from(["f8", "f8", "f8", "f4"]),
        "has_bias": st.booleans(),
        "config": st.sampled_from([b"", b"", b"x"]),
        "outputs": st.sampled_from([(), (), ("doubled",), ("doubled", "total", "doubled"), ("none",)]),
        "is_broken": st.sampled_from([False] * 5 + [True]),
        "waits": st.integers(0, 3),
        "leaves": st.sampled_from([None] * 5 + [0, 1, 2, 20]),
    }
)
"""Of requests."""


def buffer_of(kind: dict[str, Any], number: int) -> bytes:
    """Of one of these, with numbers that nobody else has."""
    shape = (kind["rows"], *kind["rest"])
    values = np.full(shape, kind["value"], kind["dtype"])
    if kind["value"] == 1.0:
        values += np.arange(values.size).reshape(shape) + 100 * number
    inputs = [values, np.full(kind["rows"], float(number))] if kind["has_bias"] else [values]
    buffer = ask(*inputs, config=kind["config"], output_names=kind["outputs"])
    return buffer[:-7] if kind["is_broken"] else buffer


def read(response: Any) -> Any:
    """What a client reads, errors without their text, which may tell of places."""
    found = received(response)
    return [to_array(one).tolist() for one in found.tensors], [one.code for one in found.errors]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(KINDS, min_size=1, max_size=12), st.sampled_from([2, 4, 7]))
def test_G076_G077_G101_in_a_batch_each_gets_what_it_would_get_alone(kinds: list[dict[str, Any]], most: int) -> None:
    """Whatever comes together, in whatever order: values, errors, sizes, configs, outputs, and clients that leave."""
    together = function(batch_max=most, batch_wait_ms=1)(function_like(scored))

    async def ask_all(one: Inferences, buffers: list[bytes]) -> list[Any]:
        async def ask_one(buffer: bytes, kind: dict[str, Any]) -> Any:
            await turns(kind["waits"])
            asking = asyncio.ensure_future(one.infer(one.first, bytearray(buffer), transport="test"))
            if kind["leaves"] is None:
                return read(await asking)
            await turns(kind["leaves"])
            asking.cancel()
            await asyncio.wait([asking])
            return None

        return await asyncio.gather(*map(ask_one, buffers, kinds))

    async def check() -> None:
        buffers = [buffer_of(kind, number) for number, kind in enumerate(kinds)]
        async with inferring(together) as one:
            found = await ask_all(one, buffers)
        async with inferring(scored) as one:
            alone = [read(await one.infer(one.first, bytearray(buffer), transport="test")) for buffer in buffers]
        for kind, one_of_many, by_itself in zip(kinds, found, alone, strict=True):
            assert one_of_many == (by_itself if kind["leaves"] is None else None)

    asyncio.run(check())


async def turns(count: int) -> None:
    """Of the loop."""
    for _ in range(count):
        await asyncio.sleep(0)


def function_like(served: Any) -> Any:
    """The same function as another object, which bears options of its own."""
    made = types.FunctionType(served.__code__, served.__globals__, "together", served.__defaults__)
    made.__annotations__ = dict(served.__annotations__)
    return made


def whole(x: NDArray[np.float64], y: NDArray[np.int64]) -> NDArray[np.float64]:
    return x * y.reshape(-1, *[1] * (x.ndim - 1))


@function(options=[graphpipe.Rows()])
def rowed(x: NDArray[np.float64], y: int) -> NDArray[np.float64]:
    return x * y


@function(options=[graphpipe.Rows()])
def streamed(x: Iterator[NDArray[np.float64]], y: Iterator[int]) -> Iterator[NDArray[np.float64]]:
    for one, times in zip(x, y, strict=True):
        yield one * times


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.integers(0, 3), max_size=3), st.integers(0, 9))
def test_G073_rows_give_what_the_whole_gives(rest: list[int], rows: int) -> None:
    """Of any shape, called for each row or once with all of them."""
    x = np.arange(rows * math.prod(rest), dtype=float).reshape(rows, *rest)
    buffer = ask(x, np.arange(rows))

    async def check() -> None:
        async with inferring(whole, rowed, streamed) as one:
            found = [await one.infer(model, bytearray(buffer), transport="test") for model in one.models.values()]
        first, *others = [read(response) for response in found]
        assert first[1] == []
        if rows:  # of none nobody knows the shape of a row
            assert others == [first, first]
        else:
            assert [len(one[0][0]) for one in others] == [0, 0]

    asyncio.run(check())


# One connection, many requests.


@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.booleans(),
    st.lists(st.none() | st.integers(0, 2**32), min_size=1, max_size=12),
    st.lists(st.integers(1, 2000), max_size=8),
)
def test_G012_G016_G101_what_came_before_harms_nothing(is_http: bool, seeds: list[int | None], cuts: list[int]) -> None:
    """Good requests and broken ones in any order, all sent at once and in pieces of any size, are answered in order."""
    buffers = [
        ask([float(number)]) if seed is None else changed(Random(seed), fixture(REQUESTS[seed % len(REQUESTS)])) or b"x"
        for number, seed in enumerate(seeds)
    ]
    head = "POST /graphpipe HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n"
    sent = b"".join(
        (head.format(len(one)).encode() if is_http else struct.pack("<I", len(one))) + one for one in buffers
    )

    async def check(wire: Wire) -> None:
        rest = sent
        for cut in cuts:
            await wire.send(rest[:cut])
            rest = rest[cut:]
        await wire.send(rest)
        for number, seed in enumerate(seeds):
            if is_http:
                _, _, answer = await wire.answer()
            else:
                (size,) = struct.unpack("<I", await wire.reader.readexactly(4))
                answer = await wire.reader.readexactly(size)
            if seed is None:
                assert values(answer) == [[2.0 * number]]
            else:
                assert said(answer) in range(21)

    async def run() -> None:
        if is_http:
            async with serving_models(double) as served, served.wire() as wire:
                await check(wire)
        else:
            async with opened() as (_, host, port):
                wire = Wire(*await asyncio.open_connection(host, port))
                await check(wire)
                wire.writer.transport.abort()

    asyncio.run(run())
