"""Request/reply over HTTP: headers, limits, connections. Catalogue 2.11."""

from __future__ import annotations

import asyncio
import json

from invoker_conformance.http import Answer
from invoker_conformance.riff import frames
from invoker_conformance.riff.frames import JSON, OCTETS, TEXT
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import scenario

_AS_JSON = ("Content-Type", JSON)
_AS_TEXT = ("Content-Type", TEXT)
_WANT_JSON = ("Accept", JSON)


async def _respond(probe: Probe, headers: dict[str, str]) -> Answer:
    wanted = frames.to_json({"payload": "x", "headers": headers})
    return await probe.post(wanted, _AS_JSON, ("Accept", TEXT))


@scenario("RT-81", "R-148", "R-139", function="respond")
async def status_chosen_by_the_function(probe: Probe) -> None:
    """X-Http-Status sets the status and is removed, however it is spelt; an invalid one is answered with 500."""
    for name, status in (("X-Http-Status", 201), ("x-http-status", 404), ("X-HTTP-STATUS", 599)):
        answer = (await _respond(probe, {name: str(status), "X-Other": "1"})).has(status, TEXT, b"x")
        if answer.header("x-http-status") is not None or answer.header("x-other") != "1":
            raise answer.failure("the header X-Other without X-Http-Status")
    for invalid in ("99", "600", "teapot", "", "2e2"):
        (await _respond(probe, {"X-Http-Status": invalid})).has(500)


@scenario("RT-82", "R-152", function="respond")
async def header_injection(probe: Probe) -> None:
    """CR or LF in an output header is refused with 5xx and never splits the response."""
    for headers in ({"X-A": "1\r\nX-Evil: 1"}, {"X-A": "1\nX-Evil: 1"}, {"X-A: 1\r\nX-Evil": "1"}):
        answer = (await _respond(probe, headers)).is_server_error()
        if answer.header("x-evil") is not None:
            raise answer.failure("5xx without the header X-Evil")


@scenario("R-152", function="respond")
async def output_headers_that_clash(probe: Probe) -> None:
    """Output headers never replace Content-Type, and hop-by-hop names and Content-Length are dropped."""
    clashing = {"Content-Type": "text/csv", "Content-Length": "99", "Keep-Alive": "timeout=5", "Upgrade": "h3"}
    answer = (await _respond(probe, {**clashing, "Transfer-Encoding": "gzip", "X-Other": "1"})).has(200, TEXT, b"x")
    left = [name for name, value in clashing.items() if answer.header(name) == value]
    if left or answer.header("x-other") != "1" or "gzip" in (answer.header("transfer-encoding") or ""):
        raise answer.failure(f"X-Other only, without {left}")


@scenario("R-151", function="headers")
async def request_headers_reach_the_function(probe: Probe) -> None:
    """The function gets every header but Content-Type and Accept, repeated ones joined; X-Http-* cannot be forged."""
    sent = [_AS_TEXT, _WANT_JSON, ("X-Custom", "yes"), ("X-Many", "1"), ("X-Many", "2"), ("X-Http-Method", "FORGED")]
    answer = (await probe.post(b"x-custom", *sent, path="/?a=1")).has(200, JSON)
    seen = json.loads(answer.body)
    got = {name.lower(): value for name, value in seen["all"].items()}
    wanted = {"x-many": "1, 2", "x-http-method": "POST", "x-http-path": "/", "x-custom": "yes"}
    wrong = {name: got.get(name) for name, value in wanted.items() if got.get(name) != value}
    if seen["found"] != "yes" or wrong or {"content-type", "accept"} & got.keys() or "a=1" not in got["x-http-query"]:
        raise answer.failure(f"{wanted}, x-http-query with a=1, neither content-type nor accept; wrong: {wrong}")


@scenario("R-154", function="octets")
async def body_over_the_limit(probe: Probe) -> None:
    """A body above the limit is answered with 413, with a length or in chunks; the next request works."""
    size = probe.target.message_bytes + 1024 * 1024
    (await probe.post(bytes(size), ("Content-Type", OCTETS))).has(413)
    async with probe.transport.connect() as connection:
        await connection.send("POST", "/", [("Content-Type", OCTETS)], [bytes(64 * 1024)] * (size // (64 * 1024) + 1))
        (await connection.answer()).has(413)
    (await probe.post(b"x", ("Content-Type", OCTETS))).has(200, OCTETS, b"x")


@scenario("RT-83", "R-154", function=("delay", "marks"))
async def disconnect_cancels(probe: Probe) -> None:
    """When the HTTP client leaves, the function is cancelled."""
    watch = await probe.watch("delay.calls", "delay.failed")
    async with probe.transport.connect() as connection:
        await connection.send("POST", "/", [_AS_JSON], b"30")
        await watch.reaches("delay.calls", 1)
    await watch.reaches("delay.failed", 1)


@scenario("R-155", function="octets")
async def keep_alive_and_chunks(probe: Probe) -> None:
    """Several requests on one connection, with a length or in chunks, each get their answer."""
    async with probe.transport.connect() as connection:
        for body in (b"one", [b"t", b"w", b"o"], b"", b"three"):
            await connection.send("POST", "/", [("Content-Type", OCTETS)], body)
            whole = b"".join(body) if isinstance(body, list) else body
            (await connection.answer()).has(200, OCTETS, whole)


@scenario("R-155", "R-125", function="echo")
async def parallel_requests(probe: Probe) -> None:
    """Fifty requests at the same time each get their own body back."""

    async def one(number: int) -> None:
        (await probe.post(b"%d" % number, _AS_JSON, _WANT_JSON)).has(200, JSON, b"%d" % number)

    async with asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(one(number))
