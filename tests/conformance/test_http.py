"""The HTTP chapters: what the client sends and reads, and that faults of a handler are caught."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from invoker_conformance import select
from invoker_conformance.http import Answer, Connection, Transport
from invoker_conformance.runner import Outcome, Verdict, run
from invoker_conformance.scenario import Failure
from invoker_conformance.target import Address, Target, Unreachable, parse_addresses
from tests.conformance.faulty_http import Handler

CAUGHT = {
    "closes the connection": "keep_alive_and_chunks",
    "ignores chunks": "keep_alive_and_chunks",
    "500 for bad input": "undecodable_body",
    "splits headers": "header_injection",
    "lets headers clash": "output_headers_that_clash",
    "text errors only": "error_bodies",
    "no newline": "error_bodies",
}


async def judged(name: str, *faults: str) -> Outcome:
    """What the suite says of a handler in one scenario."""
    async with Handler(*faults) as handler:
        nowhere, at = parse_addresses([]), parse_addresses([handler.address])
        (outcome,) = await run(Target(nowhere, at, timeout_s=2.0, message_bytes=4 << 20), select(only=name))
    return outcome


@pytest.mark.parametrize("name", [*sorted(set(CAUGHT.values())), "echo_with_defaults", "unsupported_media_type"])
async def test_a_right_handler_passes(name: str) -> None:
    """Without faults the front passes each scenario used below."""
    outcome = await judged(name)
    assert outcome.verdict is Verdict.PASS, outcome.failure


@pytest.mark.parametrize(("fault", "name"), CAUGHT.items())
async def test_a_faulty_handler_is_caught(fault: str, name: str) -> None:
    """A handler with one fault fails the scenario that judges it."""
    outcome = await judged(name, fault)
    assert outcome.verdict is Verdict.FAIL
    assert outcome.failure is not None
    assert outcome.failure.sent.startswith("POST / ")


async def test_observing_scenarios_need_the_grpc_address() -> None:
    """A scenario that reads marks is not provided when only the HTTP address is known."""
    outcome = await judged("other_methods_and_paths")
    assert outcome.verdict is Verdict.NOT_PROVIDED
    assert outcome.reason == "function marks"


async def test_the_function_is_named_in_a_header() -> None:
    """A handler that serves several functions is told which one."""
    async with Handler() as handler:
        host, _, port = handler.address.partition(":")
        transport = Transport(Address(host, int(port), is_shared=True), "square", timeout_s=2.0)
        answer = await transport.exchange("POST", "/", [("Content-Type", "application/json")], b"7")
        assert answer.has(200, "application/json", b"49") is answer


async def test_no_answer_at_all_is_unreachable() -> None:
    """A port where nobody listens is no failure of a requirement."""
    with pytest.raises(Unreachable, match=r"nothing answers at 127\.0\.0\.1:1"):
        await Transport(Address("127.0.0.1", 1, is_shared=False), "", timeout_s=1.0).exchange("POST", "/")


@asynccontextmanager
async def saying(answer: bytes) -> AsyncIterator[Connection]:
    """A connection to a server that says one thing, then ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        address = Address("127.0.0.1", server.sockets[0].getsockname()[1], is_shared=False)
        async with Transport(address, "", timeout_s=2.0).connect() as connection:
            await connection.send_bytes(b"ASK\r\n\r\n", "ASK")
            yield connection


async def test_interim_responses_can_be_seen() -> None:
    """By who waits for one, and by nobody else."""
    final = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"
    async with saying(b"HTTP/1.1 100 Continue\r\n\r\n" + final) as connection:
        assert await connection.interim() == 100
        assert (await connection.answer()).body == b"x"
    async with saying(b"HTTP/1.1 100 Continue\r\n\r\n" + final) as connection:
        answer = await connection.answer()
        assert (answer.status, answer.sent) == (200, "ASK")
        await connection.ends()


async def test_the_answer_to_a_head_has_no_body() -> None:
    """Whatever its length says."""
    async with saying(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") as connection:
        assert (await connection.answer(is_bodiless=True)).body == b""
        await connection.ends()


async def test_more_than_the_end_is_a_failure() -> None:
    """So is an interim response that does not come."""
    async with saying(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nmore") as connection:
        await connection.answer()
        with pytest.raises(Failure, match="met 'more'"):
            await connection.ends()
    async with saying(b"") as connection:
        with pytest.raises(Failure, match="a broken answer"):
            await connection.interim()


def test_an_answer_that_differs_tells_both() -> None:
    """The failure names the request, the response and what was expected."""
    answer = Answer(200, (("Content-Type", "text/plain; charset=utf-8"), ("X-A", "1"), ("x-a", "2")), b"x", "POST / x")
    assert answer.header("X-a") == "1, 2"
    assert answer.has(200, "text/plain", b"x") is answer
    with pytest.raises(Failure) as caught:
        answer.has(500)
    assert caught.value.sent == "POST / x"
    assert caught.value.expected == "500"
    assert "200 text/plain" in caught.value.met
