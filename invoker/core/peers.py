"""Describes the peer of a conversation: `Client` for the log, and two metadata names that no peer can set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from invoker.message import Headers

PEER: Final = "x-invoker-peer"
"""The metadata name of the peer's address, whose value is like ``ipv4:192.0.2.1:50000``."""

IDENTITY: Final = "x-invoker-identity"
"""The metadata name of the names in the certificate that the peer has proved to own; no value without a certificate."""

LEFT: Final = 499
"""The HTTP status that is logged when the client left before the response, as nginx does."""

ABNORMAL: Final = 1006
"""The close code that is logged for a WebSocket that ended without a close code (RFC 6455, 7.1.5)."""


class Client(msgspec.Struct, gc=False):
    """A client that has called over HTTP, and the status that it got.

    The transport and the log record share this object, because the status is known only later.

    Attributes:
        address: The address, as `peer_of` gives it.
        field: The name of the number in the log; empty: the log will have no number.
        number: The status of the response, or the code with which a WebSocket was closed; 0 as long as there is none.
    """

    address: str
    field: str = "http_status"
    number: int = 0

    def got(self, number: int) -> None:
        """Note the status that the client got; the first one counts."""
        if not self.number:
            self.number = number


def with_peer(metadata: Headers, address: str, identities: Iterable[bytes] | None) -> Headers:
    """The metadata with the peer's address and identities; entries of these names that the peer sent are dropped."""
    names = ", ".join(one.decode("utf-8", "backslashreplace") for one in identities or ())
    return Headers({**metadata, PEER: address, IDENTITY: names})


def peer_of(address: Any) -> str:
    """The address of a socket's peer as gRPC writes it; "unix:" of a Unix socket, empty if it is unknown."""
    if not isinstance(address, (tuple, list)):
        return "" if address is None else "unix:"
    host, port = address[:2]
    return f"ipv6:[{host}]:{port}" if ":" in host else f"ipv4:{host}:{port}"
