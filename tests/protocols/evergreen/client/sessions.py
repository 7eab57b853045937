"""A session that only notes what is sent, for tests of nodes and drafts."""

from __future__ import annotations

from invoker._pb.evergreen import evergreen_pb2 as pb


class Noted:
    """What nodes need of a session, without one."""

    def __init__(self) -> None:
        self.sent: list[pb.NodeFragment] = []
        self.rooms = 0

    def send(self, *fragments: pb.NodeFragment) -> None:
        """Note them."""
        self.sent.extend(fragments)

    async def room(self) -> None:
        """Count who asks."""
        self.rooms += 1
