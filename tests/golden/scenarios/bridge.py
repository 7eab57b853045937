"""One process of the tool bridge, and the rpcs that are played in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from google.protobuf import any_pb2

from invoker import Field
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.core.limits import LimitReached
from invoker.core.spaces import MemoryStore, StoreLimits
from invoker.core.steps import Answered, Ask, Await, Close, StoreChanged, Subscribe
from invoker.core.store import News
from invoker.errors import (
    CallError,
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    FunctionError,
    InternalError,
    InvocationError,
    LimitExceeded,
    Overloaded,
    ProtocolViolation,
    ShuttingDown,
    Status,
    StatusError,
    UnacceptedType,
)
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.execute import ExecuteTool
from invoker.protocols.toolbridge.sessions import InitializeSession
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.stream import StreamTool
from tests.golden.recorder import HALF_CLOSE, Recorded, Trace
from tests.golden.stillness import NOW_S
from tests.protocols.toolbridge.calls import host_sessions_with

SECOND = 1_000_000_000


def square(x: int) -> int: ...
def count(n: int) -> Iterator[int]: ...
def greet(name: str, *, polite: bool = False, times: Annotated[int, Field(ge=1, le=9)] = 1) -> str: ...
def many(*xs: int) -> list[int]: ...
def keyed(first: str, **rest: Any) -> dict[str, Any]: ...
def blob(data: bytes) -> bytes: ...
def nothing() -> None: ...


class World:
    """One process: `HostSessions`, a store on its clock, and the rpcs that are played in it.

    Args:
        trace: Where it is written.
        limits: Of the store.
        settings: Of the bridge.
    """

    def __init__(self, trace: Trace, limits: StoreLimits | None = None, **settings: Any) -> None:
        self.trace = trace
        self.host_sessions = host_sessions_with(
            square, count, greet, many, keyed, blob, nothing, settings=BridgeSettings(**{"ttl_s": 60.0, **settings})
        )
        self.host_sessions.now = NOW_S * SECOND
        self.host_sessions.capabilities = ("streaming", "batch")
        self.store = MemoryStore(limits, clock=lambda: self.host_sessions.now)

    def ask(self, kind: Any, request: Any, answers: Any = (), **given: Any) -> Talk:
        """Play an rpc: the store answers at once, and ``answers`` come in their turn."""
        self.trace.write(kind.__name__)
        talk = Talk(self, kind(self.host_sessions, **given), kind, type(request))
        talk.receive(request if isinstance(request, bytes) else request.SerializeToString(deterministic=True))
        talk.give(*answers)
        return talk

    def init(self, session_id: str = "s1", **fields: Any) -> None:
        self.ask(InitializeSession, pb.InitializeSessionRequest(session_id=session_id, **fields))

    def note(self) -> None:
        """Write down what `HostSessions` knows."""
        host_sessions = self.host_sessions
        self.trace.write(
            f"noted {host_sessions.noted.told} created {host_sessions.created} "
            f"expired {host_sessions.expired} chunks {host_sessions.chunks}"
        )
        for call in host_sessions.ended:
            self.trace.write(f"ended {call.asked.tool_id} {call.via} {self.trace.shown(call.error)}")
        for one in host_sessions.sessions.values():
            self.trace.write(f"session {one.id} operations {len(one.operations)} gone {self.trace.shown(one.gone)}")


class Talk:
    """One rpc, and its guest of the store."""

    def __init__(self, world: World, session: Any, kind: Any, asks: Any = bytes) -> None:
        answers = {ExecuteTool: pb.ToolCallResponse, StreamTool: pb.ToolStreamChunk}
        writes = answers.get(kind) or getattr(kind, "answers", None)
        self._world = world
        reads = getattr(asks, "FromString", None)
        self._session: Recorded = world.trace.session(
            session, reads=reads, writes=writes.FromString if writes else None, trailers=pb.ErrorInfo.FromString
        )
        self._news: News | None = None
        self.is_closed = False
        self.agent: Any = None

    def receive(self, frame: Any) -> None:
        self._do(self._session.half_close() if frame is HALF_CLOSE else self._session.receive(frame))

    def give(self, *events: Any) -> None:
        for event in events:
            self._do(self._session.deliver(event))

    def answered(self, key: str, value: Any) -> None:
        """As a guest of the store."""
        self._do(self._session.deliver(Answered(key, value)))

    def has_news(self, news: News) -> None:
        """Taken by `tell`."""

    def tell(self) -> None:
        """Deliver what happened in the store."""
        while self._news is not None and (change := self._news.take()) is not None:
            self._do(self._session.deliver(StoreChanged(self._news.space, change)))

    def _do(self, steps: Any) -> None:
        for step in steps:
            if isinstance(step, Ask):
                self._world.store.ask(self, step.key, step.question)
            elif isinstance(step, Subscribe):
                self._news = News(step.topic, step.names, self.has_news, has_initial=step.has_initial)
                self._world.store.subscribe(self, self._news)
            elif isinstance(step, Close):
                self.is_closed = True
            elif isinstance(step, Await) and step.key == "agent":
                self.agent = step.begin()


def anys(*values: Any) -> list[any_pb2.Any]:
    """Values as they travel."""
    return [any_pb2.Any.FromString(pack(one)) for one in values]


def errors() -> list[InvocationError]:
    """Made in each scenario, since some tell when they were made."""
    return [
        FunctionError("boom"), Cancelled("gone"), ShuttingDown("bye"), DeadlineExceeded("late"), Overloaded("full"),
        LimitExceeded("long"),
        InternalError("secret"), DecodeError(" is odd"), CallError("args"), EncodeError("odd"),
        ProtocolViolation("x"),
        UnacceptedType("a/b"), StatusError(Status.NOT_FOUND, "no row"), StatusError(Status.PERMISSION_DENIED, "no"),
        BridgeError(Kind.VALIDATION, "no", field="x"), BridgeError(Kind.EXHAUSTED, "no more", code="llm"),
        LimitReached("full", code="concurrency", scope="function", limit=1),
        LimitReached("fast", code="rate", scope="function", limit=1),
    ]  # fmt: skip
