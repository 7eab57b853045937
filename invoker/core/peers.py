"""Who the peer of a conversation is, where its protocol asks for it: two names of the metadata that no peer can set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from invoker.message import Headers

__all__ = ["IDENTITY", "PEER", "peer_of", "with_peer"]

PEER: Final = "x-invoker-peer"
"""The address, as ``ipv4:192.0.2.1:50000``."""

IDENTITY: Final = "x-invoker-identity"
"""The names of the certificate that the peer has proved to own; empty without one."""


def with_peer(metadata: Headers, address: str, identities: Iterable[bytes] | None) -> Headers:
    """The metadata with these two; what the peer sent by their names is lost."""
    names = ", ".join(one.decode("utf-8", "backslashreplace") for one in identities or ())
    return Headers({**metadata, PEER: address, IDENTITY: names})


def peer_of(address: Any) -> str:
    """The address of a socket's peer as gRPC writes it; "unix:" of a Unix socket, empty where nobody knows it."""
    if not isinstance(address, (tuple, list)):
        return "" if address is None else "unix:"
    host, port = address[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
