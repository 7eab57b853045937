"""The methods that a gRPC transport serves: a table of bidirectional methods, and how each begins a conversation.

Their messages are serialised. A transport depends on nothing else of the protocols. `CallMethod` is for calls of one
invocation each, which every transport runs in the way that suits it best. Calls of other methods always run on the
loop: `LoopMethod` is for calls that ask the store, or open any number of invocations; `SessionMethod` is for sessions
that store what they receive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

from invoker.core.session import CallSession
from invoker.core.steps import Close
from invoker.execution.loop.reactor import Reactor
from invoker.execution.loop.sessions import SessionWire
from invoker.message import EMPTY, Headers
from invoker.traces import REQUEST_ID, request_id_of
from invoker.transports.grpc.loopcall import Listener
from invoker.transports.grpc.settings import UNCHECKED, GrpcSettings

OnClose: TypeAlias = Callable[[Close], None]
"""Called once, with the ending of a conversation."""

ResponseHeaders: TypeAlias = tuple[tuple[str, str], ...]
"""Initial metadata of a response."""


class CallWire(SessionWire, Protocol):
    """A call as the wire of a session."""

    over: Callable[[], None]
    """Called once, when the session is over and the peer has taken nearly all that the session wrote."""


Begin: TypeAlias = Callable[[CallWire, Headers, OnClose, float | None], Listener]
"""Begins a conversation, from its wire, the call's metadata, a callback for its ending, and its deadline (monotonic) or
None."""


@dataclass(frozen=True, slots=True)
class CallMethod:
    """A call is one invocation, which runs in a thread of its own or on the loop (see `CallSession`).

    Attributes:
        service: Full name.
        name: The name of the method.
        session: Makes the session of one call from the call's metadata.
        kind: Maps the metadata of a call to a key; clients tend to send calls with the same key in the same way.
        knows_peer: Whether the peer's address and identities are added to the metadata; see `invoker.core.peers`.
        max_message_bytes: The largest message that the session accepts, which it checks itself; 0: the limit in the
            transport's settings applies.
        takes_one: Whether the peer sends only one frame; then the transport does not wait for the half-close.
        reactor: Runs the session of a call on the loop.
        path: The method's path in HTTP/2.
    """

    service: str
    name: str
    session: Callable[[Headers], CallSession]
    kind: Callable[[Headers], str] = lambda _: ""
    knows_peer: bool = False
    max_message_bytes: int = 0
    takes_one: bool = False
    reactor: Callable[..., Reactor] = Reactor
    path: str = field(init=False)

    def __post_init__(self) -> None:
        _set_path(self)


@dataclass(frozen=True, slots=True)
class LoopMethod:
    """A call is a session on the loop, whose frames are never joined.

    Attributes:
        service: Full name.
        name: The name of the method.
        session: Makes the session of one call from the call's metadata.
        reactor: Runs the session.
        knows_peer: As for a `CallMethod`.
        max_message_bytes: As for a `CallMethod`.
        takes_one: As for a `CallMethod`.
        path: As of a `CallMethod`.
    """

    service: str
    name: str
    session: Callable[[Headers], Any]
    reactor: Callable[..., Listener] = Reactor
    knows_peer: bool = False
    max_message_bytes: int = 0
    takes_one: bool = False
    path: str = field(init=False)

    def __post_init__(self) -> None:
        _set_path(self)


@dataclass(frozen=True, slots=True)
class SessionMethod:
    """A call is a session of many invocations, whose frames may be joined (see `invoker.transports.grpc.outbox`).

    Attributes:
        service: Full name.
        name: The name of the method.
        begin: Begins one session.
        path: As of a `CallMethod`.
    """

    service: str
    name: str
    begin: Begin
    path: str = field(init=False)
    max_message_bytes: ClassVar[int] = 0

    def __post_init__(self) -> None:
        _set_path(self)


Method: TypeAlias = CallMethod | LoopMethod | SessionMethod


def _set_path(method: Method) -> None:
    """Compute the path once, because each call asks for it."""
    object.__setattr__(method, "path", f"/{method.service}/{method.name}")


def largest_message(methods: Iterable[Method]) -> int:
    """Bytes of the largest message that one of the methods declares; 0 if none declares one."""
    return max((one.max_message_bytes for one in methods), default=0)


def checked_bytes(method: Method, settings: GrpcSettings) -> int:
    """The size limit that a call checks for each message of a method; grpcio checks only the largest of all methods."""
    return UNCHECKED if method.max_message_bytes else settings.max_message_bytes


def metadata_of(pairs: Iterable[tuple[str, Any]] | None) -> Headers:
    """The text metadata of a call; the values of a repeated name are joined by commas."""
    texts: dict[str, str] = {}
    for name, value in pairs or ():
        if isinstance(value, str):
            texts[name] = f"{texts[name]}, {value}" if name in texts else value
    return Headers(texts) if texts else EMPTY


def repeated_id(metadata: Headers) -> ResponseHeaders:
    """The response headers that repeat the caller's id of its request; none if the id is malformed (H-153)."""
    sent = request_id_of(metadata)
    return ((REQUEST_ID, sent),) if sent else ()
