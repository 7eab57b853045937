"""Tests of the connection to a bridge."""

from __future__ import annotations

import grpc
import pytest
import trustme

from invoker.client import Tls
from invoker.client.toolbridge import ToolBridge, ToolCommunicationError
from invoker.errors import Status
from tests.protocols.toolbridge.client.peer import Peer, serve


async def test_metadata_goes_with_each_rpc(peer: Peer) -> None:
    """Of both kinds."""
    async with ToolBridge(peer.target, metadata={"x-snakepit-correlation-id": "c"}) as bridge:
        await bridge.health()
        assert peer.metadata["x-snakepit-correlation-id"] == "c"
        async with bridge.session() as session:
            peer.metadata = {}
            assert await anext(session.stream("count")) == 0
        assert peer.metadata["x-snakepit-correlation-id"] == "c"


async def test_T164_a_bridge_that_asks_for_a_certificate_gets_ours() -> None:
    """Without one there is no connection."""
    authority = trustme.CA()
    own, ours = authority.issue_cert("127.0.0.1"), authority.issue_cert("host.example")
    chain = b"".join(blob.bytes() for blob in own.cert_chain_pems)
    roots = authority.cert_pem.bytes()
    credentials = grpc.ssl_server_credentials([(own.private_key_pem.bytes(), chain)], roots, require_client_auth=True)
    proof = b"".join(blob.bytes() for blob in ours.cert_chain_pems)
    tls = Tls(ca=roots, cert=proof, key=ours.private_key_pem.bytes())
    async with serve(credentials) as peer:
        async with ToolBridge(peer.target, tls=tls) as bridge:
            assert (await bridge.health()).is_serving
        async with ToolBridge(peer.target, tls=Tls(ca=roots)) as bridge:
            with pytest.raises(ToolCommunicationError) as caught:
                await bridge.health()
    assert caught.value.code is Status.UNAVAILABLE


async def test_answers_above_the_clients_limit_are_refused(peer: Peer) -> None:
    """The text says whose limit it is."""
    async with ToolBridge(peer.target, max_output_bytes=1000) as bridge, bridge.session() as session:
        with pytest.raises(ToolCommunicationError, match="max_output_bytes"):
            await session.call("echo", value=bytes(2000))
