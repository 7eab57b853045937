"""`HostSessions` in memory for the tests of sessions.

With a clock that tests set, and a keeper that notes what it is told.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.store import Space
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, Operation, space_of
from invoker.protocols.toolbridge.settings import BridgeSettings

SECOND = 1_000_000_000


class NotingKeeper:
    """Notes what `HostSessions` tells it."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def watch(self, session: HostSession) -> None:
        self.told.append(("watch", session.id))

    def touch(self, session: HostSession) -> None:
        self.told.append(("touch", session.id))

    def idle(self, session: HostSession) -> None:
        self.told.append(("idle", session.id))

    def freed(self, session: HostSession) -> None:
        self.told.append(("freed", session.id))

    async def room(self, session: HostSession, within_s: float) -> None:
        self.told.append((f"room {within_s:g}", session.id))

    def settle(self, session: HostSession) -> None:
        self.told.append(("settle", session.id))


class TestHostSessions(HostSessions):
    """`HostSessions` whose clock stands still unless a test moves ``now``."""

    __test__ = False

    def __init__(self, settings: BridgeSettings) -> None:
        self.now = 1000 * SECOND
        super().__init__(nullcontext(), settings, lambda: self.now)
        self.noted = self.keeper = NotingKeeper()
        self.ended: list[Any] = []


def new_host_sessions(settings: BridgeSettings | None = None) -> TestHostSessions:
    """An empty `HostSessions`."""
    return TestHostSessions(settings or BridgeSettings())


def a_space(session_id: str = "s1", *, ttl_s: float = 60.0, created_ns: int = 1000 * SECOND, **config: int) -> Space:
    """What the store says of a host session's space."""
    about = pb.InitializeSessionRequest(session_id=session_id, config=pb.SessionConfig(**config)).SerializeToString()
    return Space(space_of(session_id), about, ttl_s, created_ns, created_ns, 0, 0, 0)


def known(host_sessions: HostSessions, session_id: str = "s1", **config: int) -> HostSession:
    """A session that `HostSessions` knows."""
    return host_sessions.adopt(a_space(session_id, **config))


def began(host_sessions: HostSessions, session: HostSession, *, is_tool: bool = True) -> Operation:
    """Something that runs in a session."""
    made = Operation(session, is_tool=is_tool)
    host_sessions.begin(made)
    return made
