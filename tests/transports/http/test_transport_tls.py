"""`transports.http.transport` behind TLS: both versions of HTTP, client certificates, and plain text on such a port."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import httpx
import pytest
import trustme

from invoker.transports.tls import TlsFiles
from tests.transports.served import Served


async def echo(x: bytes) -> bytes:
    return x


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


def files_of(authority: trustme.CA, folder: Path, *, client_ca: bool = False) -> TlsFiles:
    issued = authority.issue_cert("127.0.0.1", "localhost")
    cert, key, root = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
    cert.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
    key.write_bytes(issued.private_key_pem.bytes())
    root.write_bytes(authority.cert_pem.bytes())
    files = TlsFiles.of(str(cert), str(key), str(root) if client_ca else "")
    assert files is not None
    return files


def trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


@pytest.mark.parametrize("http2", [False, True])
async def test_tls_serves_both_versions(authority: trustme.CA, tmp_path: Path, http2: bool) -> None:
    """HTTP/2 by ALPN, HTTP/1.1 for who does not ask for it."""
    async with Served.at(echo, tls=files_of(authority, tmp_path)) as served:
        base = f"https://{served.address}"
        async with httpx.AsyncClient(http2=http2, verify=trusting(authority), base_url=base, trust_env=False) as client:
            response = await client.post("/", content=b"x")
    assert (response.http_version, response.content) == ("HTTP/2" if http2 else "HTTP/1.1", b"x")


async def test_H054_a_websocket_behind_tls_is_one_of_http_1(authority: trustme.CA, tmp_path: Path) -> None:
    """Who asks for both versions gets HTTP/2, which does not offer it; a browser then asks for HTTP/1.1 alone."""
    async with Served.at(echo, tls=files_of(authority, tmp_path)) as served:
        host, _, port = served.address.rpartition(":")
        for wanted, got in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1")):
            context = trusting(authority)
            context.set_alpn_protocols(wanted)
            reader, writer = await asyncio.open_connection(host, int(port), ssl=context)
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == got
            if got == "http/1.1":
                writer.write(
                    b"GET /echo/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
                    b"\x82\x81\0\0\0\0x\x88\x80\0\0\0\0"
                )
                answer = await reader.read()
                assert answer.startswith(b"HTTP/1.1 101 ")
                assert answer.endswith(b"\x88\x00")
            writer.transport.abort()


async def test_mtls_demands_a_client_certificate(authority: trustme.CA, tmp_path: Path) -> None:
    """Of the right authority; nobody else gets an answer."""
    async with Served.at(echo, tls=files_of(authority, tmp_path, client_ca=True)) as served:

        async def ask(issuer: trustme.CA | None) -> bytes:
            context = trusting(authority)
            if issuer is not None:
                issuer.issue_cert("client@example.org").configure_cert(context)
            base = f"https://{served.address}"
            async with httpx.AsyncClient(verify=context, base_url=base, trust_env=False) as client:
                return (await client.post("/", content=b"x")).content

        assert await ask(authority) == b"x"
        for stranger in (None, trustme.CA()):
            with pytest.raises(httpx.TransportError):
                await ask(stranger)


async def test_plain_text_on_a_tls_port_ends(authority: trustme.CA, tmp_path: Path) -> None:
    """Without a word in the log above INFO."""
    async with Served.at(echo, tls=files_of(authority, tmp_path)) as served, served.wire() as wire:
        await wire.send("POST / HTTP/1.1\r\nHost: localhost\r\n", "\r\n")
        assert b"HTTP" not in await wire.ended()
