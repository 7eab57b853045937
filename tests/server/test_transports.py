"""The transports of a server."""

from __future__ import annotations

import httpx
import pytest

from invoker.errors import StartupError
from invoker.server.building import build
from invoker.server.table import TABLE


def config(**more):
    return TABLE.configured(host="127.0.0.1", grpc_port=0, port=0, **more)


async def test_each_path_of_the_http_transport_has_its_service():
    """GraphPipe answers its own, and riff what is left."""
    server = build(config(protocols=("http", "graphpipe")), "functions.square:square")
    await server.start()
    async with httpx.AsyncClient(base_url=f"http://{server.http_address}", trust_env=False) as client:
        assert (await client.get("/graphpipe")).json()["Name"] == "square"
        assert (await client.post("/", content=b"7")).text == "49"
    assert server.ports == {int(server.http_address.rpartition(":")[2])}
    await server.stop(drain_s=0)


async def test_R006_an_http_port_that_is_taken_stops_the_start():
    """And the gRPC transport closes again."""
    first = build(config(protocols=("http",)), "functions.square:square")
    await first.start()
    port = int(first.http_address.rpartition(":")[2])
    second = build(TABLE.configured(host="127.0.0.1", grpc_port=0, port=port), "functions.square:square")
    with pytest.raises(StartupError, match=str(port)):
        await second.start()
    await second.stop(drain_s=0)
    await first.stop(drain_s=0)


async def test_H096_a_mounted_server_opens_no_transport():
    """What is for gRPC alone is not started; there are no addresses."""
    server = build(config(), "functions.square:square", is_mounted=True)
    await server.start()
    assert (server.grpc_address, server.http_address, server.ports) == ("", "", set())
    assert not server.lends
    assert "riff" not in server.ready_block()
    server.leave()
    assert server.application.app.is_closing
    await server.stop(drain_s=0)
