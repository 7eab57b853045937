"""Tests of secured connections."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest
import trustme

from invoker.client import ConnectFailed, RiffClient, Tls
from invoker.connect.tls import open_channel
from tests.protocols.riff.client.peer import serve


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


def credentials(authority: trustme.CA, host: str, *, mutual: bool = False) -> grpc.ServerCredentials:
    cert = authority.issue_cert(host)
    chain = b"".join(blob.bytes() for blob in cert.cert_chain_pems)
    roots = authority.cert_pem.bytes() if mutual else None
    return grpc.ssl_server_credentials([(cert.private_key_pem.bytes(), chain)], roots, require_client_auth=mutual)


async def test_trusted_authority_by_path(authority: trustme.CA, tmp_path: Path) -> None:
    """As a file and as bytes."""
    ca = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(ca))
    async with serve(credentials(authority, "127.0.0.1")) as peer:
        for given in (ca, str(ca), authority.cert_pem.bytes()):
            async with RiffClient(peer.target, tls=Tls(ca=given)) as client:
                assert await client.invoke([["a"]]).value() == "a"


async def test_other_authority_is_no_connection(authority: trustme.CA) -> None:
    """Nothing is sent to whoever cannot prove who he is."""
    async with serve(credentials(authority, "127.0.0.1")) as peer:
        async with RiffClient(peer.target, tls=Tls(ca=trustme.CA().cert_pem.bytes())) as client:
            with pytest.raises(ConnectFailed):
                await client.invoke([["a"]]).collect()
        assert not peer.starts


async def test_server_name_is_expected_in_the_certificate(authority: trustme.CA) -> None:
    """When the host that is dialled has another one."""
    async with serve(credentials(authority, "functions.example")) as peer:
        tls = Tls(ca=authority.cert_pem.bytes(), server_name="functions.example")
        async with RiffClient(peer.target, tls=tls) as client:
            assert await client.invoke([["a"]]).value() == "a"
        async with RiffClient(peer.target, tls=Tls(ca=authority.cert_pem.bytes())) as client:
            with pytest.raises(ConnectFailed):
                await client.invoke([["a"]]).collect()


async def test_client_shows_its_certificate(authority: trustme.CA) -> None:
    """mTLS."""
    own = authority.issue_cert("caller@example.org")
    chain = b"".join(blob.bytes() for blob in own.cert_chain_pems)
    tls = Tls(ca=authority.cert_pem.bytes(), cert=chain, key=own.private_key_pem.bytes())
    secured = serve(credentials(authority, "127.0.0.1", mutual=True))
    async with secured as peer, RiffClient(peer.target, tls=tls) as client:
        assert await client.invoke([["a"]]).value() == "a"


def test_certificate_without_key_is_refused() -> None:
    """And the other way round."""
    with pytest.raises(ValueError, match="both cert and key"):
        Tls(cert="cert.pem")
    with pytest.raises(ValueError, match="both cert and key"):
        Tls(key="key.pem")


async def test_each_channel_has_a_connection_of_its_own_and_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clients of one target do not share one, nor do they ask the proxy of the environment; more options count."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)

    async def who(_: bytes, context: grpc.aio.ServicerContext) -> bytes:
        sent = dict(context.invocation_metadata() or ())
        return f"{context.peer()} {str(sent['user-agent']).split()[0]}".encode()

    server = grpc.aio.server()
    handlers = {"Who": grpc.unary_unary_rpc_method_handler(who)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("Test", handlers),))
    target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    more = ("grpc.primary_user_agent", "tester")
    async with open_channel(target, None, 1 << 20, more) as one, open_channel(target, None, 1 << 20, more) as two:
        said = [await channel.unary_unary("/Test/Who")(b"", timeout=5) for channel in (one, one, two)]
    await server.stop(None)
    assert {one.split()[1] for one in said} == {b"tester"}
    assert said[0] == said[1] != said[2]
