"""A session that only notes what is sent, for tests of nodes and drafts."""

from __future__ import annotations

from collections.abc import Iterable

from invoker._pb.evergreen import evergreen_pb2 as pb


def parsed(frames: Iterable[bytes]) -> list[pb.NodeFragment]:
    """The fragments in serialised messages, of which each has one."""
    return [one for frame in frames for one in pb.SessionMessage.FromString(frame).node_fragments]


class Noted:
    """What nodes need of a session, without one."""

    def __init__(self) -> None:
        self.sent: list[pb.NodeFragment] = []
        self.rooms = 0

    def send(self, *frames: bytes) -> None:
        """Note their fragments."""
        self.sent += parsed(frames)

    async def room(self) -> None:
        """Count who asks."""
        self.rooms += 1
