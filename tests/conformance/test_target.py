"""Addresses of a target, and whether it provides a function."""

from __future__ import annotations

import asyncio

import pytest

from invoker_conformance.riff.probe import Probe
from invoker_conformance.target import Address, Target, Unreachable, parse_addresses
from tests.conformance.faulty import Peer


def test_a_plain_address_serves_every_function() -> None:
    """HOST:PORT is shared, so that a call names its function."""
    addresses = parse_addresses(["localhost:8081"])
    assert addresses.of("square") == Address("localhost", 8081, is_shared=True)
    assert str(addresses) == "localhost:8081"


def test_a_named_address_serves_one_function() -> None:
    """NAME=HOST:PORT comes before the shared address."""
    addresses = parse_addresses(["square=[::1]:1", "10.0.0.1:2"])
    assert addresses.of("square") == Address("::1", 1, is_shared=False)
    assert addresses.of("echo") == Address("10.0.0.1", 2, is_shared=True)
    assert str(addresses) == "10.0.0.1:2, square=[::1]:1"


def test_a_function_without_address_is_nowhere() -> None:
    """Only the named functions are served."""
    addresses = parse_addresses(["square=localhost:1"])
    assert addresses.of("echo") is None
    assert addresses
    assert not parse_addresses([])


@pytest.mark.parametrize(
    "text", ["", "localhost", "localhost:", "=localhost:1", "a=b", "http://localhost:1/x", ":1", "h:0"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    """The text says both forms."""
    with pytest.raises(ValueError, match="neither HOST:PORT nor NAME=HOST:PORT"):
        parse_addresses([text])


async def test_a_function_is_provided_or_not() -> None:
    """An unknown function is told from a known one by the status."""
    async with Peer() as peer:
        target = Target(parse_addresses([peer.address]), parse_addresses([]), timeout_s=5.0, message_bytes=1)
        assert await Probe(target, "square").provides("square")
        assert not await Probe(target, "square").provides("teapot")
        await target.close()


async def test_nobody_at_the_address() -> None:
    """A port where nobody listens is told within the timeout."""
    target = Target(parse_addresses(["127.0.0.1:1"]), parse_addresses([]), timeout_s=0.3, message_bytes=1)
    with pytest.raises(Unreachable, match=r"nothing answers at 127\.0\.0\.1:1"):
        await Probe(target, "square").provides("square")
    await target.close()


async def test_somebody_else_at_the_address() -> None:
    """A listener that speaks no gRPC is told from a target."""

    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with server:
        address = "{}:{}".format(*server.sockets[0].getsockname())
        target = Target(parse_addresses([address]), parse_addresses([]), timeout_s=5.0, message_bytes=1)
        with pytest.raises(Unreachable, match="no gRPC server answers"):
            await Probe(target, "square").provides("square")
        await target.close()
