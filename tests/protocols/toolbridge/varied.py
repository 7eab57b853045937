"""A host session whose variables the rpcs read and write, in a store of memory on the clock of `HostSessions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.core.frames import SharedFrame
from invoker.core.spaces import MemoryStore, StoreLimits
from invoker.core.steps import Answered, Ask, Close, Send, Step, StoreChanged, Subscribe
from invoker.core.store import Create, Drop, News
from invoker.protocols.toolbridge.host_sessions import space_of
from invoker.protocols.toolbridge.unary import UnarySession
from invoker.protocols.toolbridge.variables import GetSessionVariable, ListSessionVariables, SetSessionVariable
from invoker.protocols.toolbridge.watch import WatchSessionVariables
from tests.protocols.toolbridge.hosts import new_host_sessions


def any_of(value: Any) -> any_pb2.Any:
    """A value as it travels."""
    return any_pb2.Any.FromString(pack(value))


class Talker:
    """A subscriber of the store that runs one rpc."""

    def __init__(self, varied: Varied, session: UnarySession[Any]) -> None:
        self.store, self.session = varied.store, session
        self.sent: list[bytes | SharedFrame] = []
        self.close: Close | None = None

    def answered(self, key: str, value: Any) -> None:
        self.do(self.session.deliver(Answered(key, value)))

    def has_news(self, news: News) -> None:
        """Taken by `tell`."""

    def do(self, steps: Sequence[Step]) -> None:
        for step in steps:
            if isinstance(step, Ask):
                self.store.ask(self, step.key, step.question)
            elif isinstance(step, Send):
                self.sent.append(step.frame)
            elif isinstance(step, Subscribe):
                self.news = News(step.topic, step.names, self.has_news, has_initial=step.has_initial)
                self.store.subscribe(self, self.news)
            else:
                assert isinstance(step, Close)
                self.close = step

    def tell(self) -> list[pb.VariableUpdate]:
        """What a watch sends of what happened."""
        return [pb.VariableUpdate.FromString(one if isinstance(one, bytes) else one.data) for one in self.frames()]

    def frames(self) -> list[bytes | SharedFrame]:
        """What a watch gives its wire for what happened."""
        while (change := self.news.take()) is not None:
            self.do(self.session.deliver(StoreChanged(self.news.space, change)))
        sent, self.sent = self.sent, []
        return sent


class Varied:
    """One session, ``s1``."""

    def __init__(self, limits: StoreLimits | None = None) -> None:
        self.host_sessions = new_host_sessions()
        self.store = MemoryStore(limits, clock=lambda: self.host_sessions.now)
        self.make("s1")

    def make(self, session_id: str) -> None:
        self.run(None, Create(space_of(session_id), 60.0, b""))

    def drop(self, session_id: str = "s1") -> None:
        self.run(None, Drop(space_of(session_id), is_forced=True))

    def run(self, session: Any, question: Any) -> None:
        self.store.ask(Quiet(), "k", question)

    def talk(self, kind: type[UnarySession[Any]], request: Any) -> Talker:
        talker = Talker(self, kind(self.host_sessions))
        talker.do(talker.session.receive(request.SerializeToString()))
        return talker

    def refusal(self, kind: type[UnarySession[Any]], request: Any) -> tuple[Any, pb.ErrorInfo]:
        """The status and the trailer of an rpc that fails."""
        talker = self.talk(kind, request)
        assert talker.sent == []
        assert talker.close is not None
        assert talker.close.error is not None
        ((_, info),) = talker.close.trailers
        assert isinstance(info, bytes)
        return talker.close.error.status, pb.ErrorInfo.FromString(info)

    def get(self, name: str, session_id: str = "s1", *, metadata: bool = False) -> pb.VariableResponse:
        request = pb.GetVariableRequest(session_id=session_id, variable_name=name, include_metadata=metadata)
        (sent,) = self.talk(GetSessionVariable, request).sent
        return pb.VariableResponse.FromString(sent)

    def put(
        self, name: str, *value: Any, create: bool = True, session_id: str = "s1", **more: Any
    ) -> pb.StatusResponse:
        """Set a variable, or delete it when there is no value."""
        request = pb.SetVariableRequest(
            session_id=session_id, variable_name=name, create_if_missing=create, **more
        )  # fmt: skip
        if value:
            request.value.CopyFrom(value[0] if isinstance(value[0], any_pb2.Any) else any_of(value[0]))
        (sent,) = self.talk(SetSessionVariable, request).sent
        return pb.StatusResponse.FromString(sent)

    def listed(self, prefix: str = "", *tags: str, limit: int = 0) -> list[pb.VariableInfo]:
        request = pb.ListVariablesRequest(session_id="s1", prefix=prefix, tags=tags, limit=limit)
        (sent,) = self.talk(ListSessionVariables, request).sent
        return list(pb.ListVariablesResponse.FromString(sent).variables)

    def watch(self, *names: str, initial: bool = False) -> Talker:
        request = pb.WatchVariablesRequest(session_id="s1", variable_names=names, include_initial=initial)
        return self.talk(WatchSessionVariables, request)


class Quiet:
    """A subscriber that needs no answer."""

    def answered(self, key: str, value: Any) -> None:
        """It is not needed."""

    def has_news(self, news: News) -> None:
        """There is none."""
