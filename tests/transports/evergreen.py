"""Opens gRPC transports with Evergreen sessions beside riff, and talks to them; for the tests of the transports."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.service.sessions import Evergreen
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.riff.service.method import riff_method
from invoker.transports.grpc.methods import SessionMethod
from tests.transports.riff import KINDS, Call, Riff, form

TRANSPORTS = (*KINDS, "direct-lending")
"""In the last, all functions are sync, and the loop can drain a queue itself."""

SERVICE, METHOD = "evergreen.v2.EvergreenService", "StartSession"
PATH = f"/{SERVICE}/{METHOD}"


def leaf(
    node: str, data: bytes, seq: int = 0, *, more: bool = False, media_type: str = "text/plain"
) -> pb.NodeFragment:
    """A fragment of a leaf; the one with seq 0 has metadata."""
    made = pb.NodeFragment(id=node, seq=seq, continued=more, chunk_fragment=pb.Chunk(data=data))
    if seq == 0:
        made.chunk_fragment.metadata.mimetype = media_type
    return made


def act(name: str, inputs: dict[str, str], outputs: dict[str, str]) -> pb.Action:
    """An action, with node ids by the names of its inputs and outputs."""
    given = [pb.NamedParameter(name=key, id=value) for key, value in inputs.items()]
    wanted = [pb.NamedParameter(name=key, id=value) for key, value in outputs.items()]
    return pb.Action(name=name, inputs=given, outputs=wanted)


def frame(*parts: pb.NodeFragment | pb.Action) -> bytes:
    """A serialised message of fragments and actions."""
    fragments = [one for one in parts if isinstance(one, pb.NodeFragment)]
    actions = [one for one in parts if isinstance(one, pb.Action)]
    return pb.SessionMessage(node_fragments=fragments, actions=actions).SerializeToString()


async def _no_fetch(uri: str, most: int, deliver: Any) -> None:
    raise AssertionError("nothing is fetched here")


class Served(Riff):
    """A transport with riff and Evergreen.

    Args:
        kind: One of ``tests.transports.riff.KINDS``.
        functions: What is served; all sync for "direct".
        session: Settings of sessions.
        sessions: That may run at once.
        more: As for `Riff`.

    Attributes:
        evergreen: Begins the sessions.
    """

    def __init__(
        self, kind: str, *functions: Any, session: EvergreenSettings | None = None, sessions: int = 1000, **more: Any
    ) -> None:
        super().__init__(kind, *functions, **more)
        self.evergreen = Evergreen(self.driver, session or EvergreenSettings(), fetch=_no_fetch, sessions=sessions)
        self._transport["methods"] = (riff_method(), SessionMethod(SERVICE, METHOD, self.evergreen.begin))

    def talk(self, *parts: pb.NodeFragment | pb.Action, channel: grpc.Channel | None = None, **options: Any) -> Talk:
        """Begin a session; what is given goes into its first message."""
        talk = Talk((channel or self.channel).stream_stream(PATH), {"timeout": 20, **options})
        self._calls.append(talk)
        if parts:
            talk.say(*parts)
        return talk


class Talk(Call):
    """One session."""

    def say(self, *parts: pb.NodeFragment | pb.Action) -> Talk:
        """Send one message."""
        self.send(frame(*parts))
        return self

    def hear(self) -> pb.NodeFragment:
        """The first fragment of the next message; StopIteration or ``grpc.RpcError`` at the end."""
        message = pb.SessionMessage.FromString(next(self.rpc))
        assert not message.actions, "E-015"
        return message.node_fragments[0]

    def end(self) -> tuple[dict[str, bytes], grpc.StatusCode, str]:
        """The data of each node up to the end, its code, its text."""
        nodes: dict[str, bytes] = {}
        try:
            for one in self.rpc:
                for fragment in pb.SessionMessage.FromString(one).node_fragments:
                    nodes[fragment.id] = nodes.get(fragment.id, b"") + fragment.chunk_fragment.data
        except grpc.RpcError:
            pass
        return nodes, self.rpc.code(), self.rpc.details()


def upper(x: Iterator[str]) -> Iterator[str]:
    for one in x:
        yield one.upper()


async def aupper(x: AsyncIterator[str]) -> AsyncIterator[str]:
    async for one in x:
        yield one.upper()


def upper_of(kind: str) -> Any:
    """The function, called ``upper`` in each form."""
    aupper.__name__ = "upper"
    return form(kind, upper, aupper)


class Endless:
    """A function that gives for ever, in both forms, and tells how it fares."""

    def __init__(self) -> None:
        self.given = 0
        self.ended = threading.Semaphore(0)
        self.half_closed = 0

    def of(self, kind: str, size: int = 10, pause_s: float = 0.001) -> Any:
        """The form for a kind of transport."""

        def endless() -> Iterator[str]:
            try:
                while True:
                    yield "x" * size
                    self.given += 1
                    time.sleep(pause_s)
            finally:
                self.ended.release()

        async def aendless() -> AsyncIterator[str]:
            try:
                while True:
                    yield "x" * size
                    self.given += 1
                    await asyncio.sleep(pause_s)
            finally:
                self.ended.release()

        aendless.__name__ = "endless"
        return form(kind, endless, aendless)
