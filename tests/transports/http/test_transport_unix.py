"""`invoker.transports.http.transport`: the same transport on a Unix socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
import trustme

from invoker.errors import StartupError
from invoker.transports.http.transport import HttpTransport
from invoker.transports.tls import TlsFiles
from tests.protocols.graphpipe.asking import METADATA_REQUEST
from tests.transports.models import serving_models
from tests.transports.served import Served, Wire


async def echo(x: bytes) -> bytes:
    return x


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "http.sock"


def mode_of(path: Path) -> int | None:
    """Permissions of a socket; None: it is not there."""
    return path.stat().st_mode & 0o777 if path.is_socket() else None


@asynccontextmanager
async def client(path: Path, *, http2: bool = False) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.AsyncHTTPTransport(uds=str(path), http1=not http2, http2=http2)
    async with httpx.AsyncClient(transport=transport, base_url="http://x") as one:
        yield one


@pytest.mark.parametrize("http2", [False, True])
async def test_G015_GT51_the_whole_transport_is_there(path: Path, http2: bool) -> None:
    """Functions, probes, numbers and models, as by TCP, which is there, too."""
    metrics = ("text/plain", b"figures")
    async with Served.at(echo, unix=str(path), metrics=lambda: metrics) as served, client(path, http2=http2) as one:
        assert (await one.post("/", content=b"x")).content == b"x"
        assert (await one.get("/healthz")).content == b"ok\n"
        assert (await one.get("/readyz")).status_code == 200
        assert (await one.get("/metrics")).content == b"figures"
        assert (await one.get("/nowhere")).status_code == 404
        assert (await served.post(b"y")).content == b"y"


async def test_G015_bare_http_1_on_a_unix_socket(path: Path) -> None:
    """Two requests on one connection, and what may not be sent."""
    async with Served.at(echo, unix=str(path), riff={"max_body_bytes": 10}):
        wire = Wire(*await asyncio.open_unix_connection(str(path)))
        for body in ("one", "two"):
            await wire.send(f"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\n{body}")
            assert (await wire.answer())[::2] == (200, body.encode())
        await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 11\r\n\r\n")
        assert (await wire.answer())[0] == 413
        wire.writer.transport.abort()


async def test_G015_there_is_no_tls_on_a_unix_socket(path: Path, tmp_path: Path) -> None:
    """Nobody is in between; its permissions say who may come."""
    both = tmp_path / "both.pem"
    trustme.CA().issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(both)
    files = TlsFiles.of(str(both), str(both), "")
    async with Served.at(echo, unix=str(path), unix_mode="666", tls=files), client(path) as one:
        assert (await one.post("/", content=b"x")).content == b"x"
        assert mode_of(path) == 0o666


async def test_G015_the_file_is_not_there_before_and_after(path: Path) -> None:
    """A socket in use is an error that leaves the port free and the file alone."""
    async with Served.at(echo, unix=str(path)) as served:
        assert mode_of(path) == 0o600
        second = HttpTransport(served.driver, lambda _: None, port=0, unix=str(path))
        with pytest.raises(StartupError, match=rf"{path} for HTTP: .*in use; set INVOKER_HTTP_UNIX"):
            await second.start()
        await second.stop(0)
        async with client(path) as one:
            assert (await one.post("/", content=b"x")).content == b"x"
    assert mode_of(path) is None


async def test_stopping_ends_connections_of_unix_sockets(path: Path) -> None:
    """And a transport that leaves tells them to connect anew, which they cannot there."""
    async with Served.at(echo, unix=str(path)) as served:
        wire = Wire(*await asyncio.open_unix_connection(str(path)))
        for connection in (None, "close"):
            await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nx")
            status, headers, body = await wire.answer()
            assert (status, headers.get("connection"), body) == (200, connection, b"x")
            served.transport.leave()
        assert await wire.ended() == b""
        wire.writer.transport.abort()


async def test_G001_models_answer_there(path: Path) -> None:
    """By their own path."""
    async with serving_models(echo, unix=str(path)), client(path) as one:
        got = await one.post("/graphpipe", content=METADATA_REQUEST)
    assert (got.status_code, got.headers["content-type"]) == (200, "application/octet-stream")
