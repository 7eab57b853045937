"""Who the peer of a conversation is."""

from __future__ import annotations

from invoker.core.peers import IDENTITY, PEER, with_peer
from invoker.message import Headers


def test_T167_a_peer_cannot_say_who_it_is() -> None:
    """What it sends by these names is replaced; the rest stays."""
    made = with_peer(Headers({PEER: "me", IDENTITY: "root", "a": "b"}), "ipv4:192.0.2.1:5", (b"host", b"\xff"))
    assert dict(made) == {"a": "b", PEER: "ipv4:192.0.2.1:5", IDENTITY: "host, \\xff"}
    assert with_peer(Headers({IDENTITY: "root"}), "unix:", None)[IDENTITY] == ""
