"""No GraphPipe scenario passes with every server: each fails with one that refuses all, or with one that is mute."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from invoker_conformance import Scenario, select
from invoker_conformance.graphpipe.build import Number, References, Table, assemble, text
from invoker_conformance.graphpipe.requests import tensor_table
from invoker_conformance.graphpipe.tensors import INT64, numbers
from invoker_conformance.runner import Verdict, run
from invoker_conformance.target import ModelFacts, Target, parse_addresses

REFUSAL = bytes(assemble(Table({1: References([Table({0: Number("q", 14), 1: text("refused")})])})))
NOTHING = bytes(assemble(Table({0: References([tensor_table(numbers(INT64, (), (0,)))])})))


def quietly(transport: Any, talks: dict[asyncio.StreamWriter, Any]) -> Any:
    """A transport that notes its conversations, and does not mind their ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks[writer] = asyncio.current_task()
        with suppress(EOFError, OSError, ValueError, asyncio.LimitOverrunError):
            await transport(reader, writer)

    return serve


@asynccontextmanager
async def serving(unix: str, *, refuses: bool) -> AsyncIterator[tuple[str, str]]:
    """HTTP, also on a Unix socket, and a bare socket: marks are 0, all else is refused, or not answered at all."""
    talks: dict[asyncio.StreamWriter, Any] = {}

    async def http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := (await reader.readuntil(b"\r\n\r\n")).decode("latin-1"):
            is_mark = "/graphpipe/marks" in head
            if is_mark or refuses:
                code = "" if is_mark else "X-GraphPipe-Error: 14\r\n"
                body = NOTHING if is_mark else REFUSAL
                writer.write(
                    f"HTTP/1.1 {200 if is_mark else 500} x\r\nContent-Type: application/octet-stream\r\n"
                    f"Content-Length: {len(body)}\r\n{code}\r\n".encode()
                    + (b"" if head.startswith("HEAD") else body)
                )
            sizes = [line[15:] for line in head.split("\r\n") if line.lower().startswith("content-length:")]
            await reader.readexactly(int(sizes[0]) if sizes else 0)

    async def socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while len(prefix := await reader.readexactly(4)) and refuses:
            writer.write(struct.pack("<I", len(REFUSAL)) + REFUSAL)
            await reader.readexactly(struct.unpack("<I", prefix)[0])

    servers = [await asyncio.start_server(quietly(transport, talks), "127.0.0.1", 0) for transport in (http, socket)]
    servers.append(await asyncio.start_unix_server(quietly(http, talks), unix))
    try:
        first, second = (f"127.0.0.1:{server.sockets[0].getsockname()[1]}" for server in servers[:2])
        yield first, second
    finally:
        for server in servers:
            server.close()
        for writer in talks:
            writer.transport.abort()
        await asyncio.gather(*talks.values())


async def unmoved(scenarios: list[Scenario], unix: str, *, refuses: bool) -> list[Scenario]:
    """Those of these scenarios that do not fail with such a server."""
    async with serving(unix, refuses=refuses) as (http, tcp):
        models = ModelFacts(tcp=tcp, http_unix=unix, limit_bytes=1 << 16, timeout_s=0.05, most=2, is_root=True)
        target = Target(
            parse_addresses([]), parse_addresses([http]), timeout_s=0.1, message_bytes=1 << 20, models=models
        )
        try:
            outcomes = await run(target, scenarios)
        finally:
            await target.close()
    return [outcome.scenario for outcome in outcomes if outcome.verdict is not Verdict.FAIL]


@pytest.mark.timeout(30)
async def test_every_scenario_fails_with_a_server_that_does_nothing(tmp_path: Path) -> None:
    """Neither one answer to everything nor silence passes for any of them."""
    every = [each for each in select(protocol="graphpipe") if each.name != "errors_with_status_200"]
    left = await unmoved(every, str(tmp_path / "first"), refuses=True)
    assert len(left) < 10
    assert not await unmoved(left, str(tmp_path / "second"), refuses=False)
