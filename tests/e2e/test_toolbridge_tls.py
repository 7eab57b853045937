"""The tool bridge over mutual TLS: who calls is proved by a handshake, and stands in the audit log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trustme

from invoker import Status
from invoker.client import SyncToolBridge, Tls, ToolCommunicationError
from tests.serving import serving


def tls_of(issued: trustme.LeafCert, authority: trustme.CA) -> Tls:
    """What a client shows with a certificate, and whose servers it believes."""
    chain = b"".join(one.bytes() for one in issued.cert_chain_pems)
    return Tls(ca=authority.cert_pem.bytes(), cert=chain, key=issued.private_key_pem.bytes())


@pytest.fixture
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def settings(tmp_path: Path, authority: trustme.CA) -> dict[str, str]:
    """A server that demands certificates of this authority, and keeps an audit log."""
    issued = authority.issue_cert("127.0.0.1")
    (tmp_path / "cert.pem").write_bytes(b"".join(one.bytes() for one in issued.cert_chain_pems))
    (tmp_path / "key.pem").write_bytes(issued.private_key_pem.bytes())
    (tmp_path / "ca.pem").write_bytes(authority.cert_pem.bytes())
    return {
        "INVOKER_TLS_CERT": str(tmp_path / "cert.pem"),
        "INVOKER_TLS_KEY": str(tmp_path / "key.pem"),
        "INVOKER_TLS_CLIENT_CA": str(tmp_path / "ca.pem"),
        "INVOKER_AUDIT": str(tmp_path / "audit.log"),
    }


@pytest.mark.parametrize("driver", ["fast", "aio"])
@pytest.mark.parametrize("module", ["tests.sync_toolbridge", "functions.conformance_toolbridge"])
def test_T164_the_identity_of_the_handshake_is_in_the_audit_log(
    settings: dict[str, str], authority: trustme.CA, driver: str, module: str
) -> None:
    """Of each kind of call; what a caller says about itself is not believed."""
    said: dict[str, Any] = {"metadata": {"x-invoker-identity": "root", "x-invoker-peer": "ipv4:1.2.3.4:5"}}
    hosts = [tls_of(authority.issue_cert(f"{name}.hosts.example"), authority) for name in ("ann", "bob")]
    with serving(module, env={**settings, "INVOKER_GRPC_DRIVER": driver}) as served:
        for tls in hosts:
            with SyncToolBridge(served.grpc, tls=tls, **said) as bridge, bridge.session() as session:
                assert session.call("add", 1) == 3
                assert list(session.stream("counted", 2)) == [0, 1]
    lines = [json.loads(one) for one in Path(settings["INVOKER_AUDIT"]).read_text().splitlines()]
    assert [(one["via"], one["identity"]) for one in lines] == [
        (via, f"{name}.hosts.example") for name in ("ann", "bob") for via in ("execute", "stream")
    ]
    assert all(one["peer"].startswith("ipv4:127.0.0.1:") for one in lines)


@pytest.mark.parametrize("driver", ["fast", "aio"])
def test_T164_no_certificate_or_a_strangers_fails_the_handshake(
    settings: dict[str, str], authority: trustme.CA, driver: str
) -> None:
    """The rpc is UNAVAILABLE, and no call has a line."""
    stranger = trustme.CA()
    issued = stranger.issue_cert("ann.hosts.example")
    strange = Tls(ca=authority.cert_pem.bytes(), cert=tls_of(issued, stranger).cert, key=tls_of(issued, stranger).key)
    with serving("tests.sync_toolbridge", env={**settings, "INVOKER_GRPC_DRIVER": driver}) as served:
        for tls in (Tls(ca=authority.cert_pem.bytes()), strange):
            with SyncToolBridge(served.grpc, tls=tls) as bridge, pytest.raises(ToolCommunicationError) as caught:
                bridge.health()
            assert caught.value.code is Status.UNAVAILABLE
    path = Path(settings["INVOKER_AUDIT"])
    assert not path.exists() or path.read_text() == ""
