"""Plays conversations of Evergreen: what a client sends, and what functions and the driver bring about."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from google.protobuf import duration_pb2, struct_pb2

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.core.steps import Finished
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace
from tests.protocols.evergreen.conversation import Conversation
from tests.protocols.evergreen.notation import A


def emit(key: str, value: Any, index: int = 0) -> Callable[[Conversation], Any]:
    return lambda c: c.emit(key, value, index)


def finish(key: str, error: Any = None) -> Callable[[Conversation], Any]:
    return lambda c: c.finish(key, error) if key in c.invocations else c.tell(Finished(key, error))


def wants(key: str, index: int = 0, *, waits: bool = False) -> Callable[[Conversation], Any]:
    return lambda c: c.wants(key, index, waits=waits)


def fetched(data: bytes = b"", *, last: bool = True, error: Any = None) -> Callable[[Conversation], Any]:
    return lambda c: c.fetched(data, last=last, error=error) if c.fetches else None


def drop(node: str) -> pb.Action:
    return A("DROP", {"node": node})


def cancel(output: str) -> pb.Action:
    return A("CANCEL", {"output": output})


def ttl(node: str, seconds: float) -> pb.Action:
    config = duration_pb2.Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9))
    return A("SET_TTL", {"node": node}, configs=[config])


def struct(**fields: Any) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(fields)
    return made


class _Clock:
    """Stands still until a scenario moves it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def played(
    offered: Sequence[Any], acts: Sequence[Any], *, models: Any = None, extensions: str = "", **settings: Any
) -> Scenario:
    """Play a conversation: a list is one message of parts, bytes are a frame, a number lets so many seconds pass."""

    def scenario(trace: Trace) -> None:
        clock = _Clock()
        c = Conversation(
            *offered, models=models, extensions=extensions, clock=clock if extensions else None, **settings
        )
        trace.write(f"headers {trace.shown(c.session.headers)}")
        c.session = trace.session(c.session, reads=pb.SessionMessage.FromString, writes=pb.SessionMessage.FromString)  # type: ignore[assignment]
        for act in acts:
            if isinstance(act, (int, float)):
                clock.now += act
                _ = c.elapse() if c.timer is not None else None
            elif isinstance(act, bytes):
                c.receive(act)
            elif isinstance(act, list):
                c.send(*act)
            elif act is HALF_CLOSE:
                c.half_close()
            else:
                _ = act(c) if callable(act) else c.tell(act)
        trace.write(f"stalled {trace.shown(c.session.stalled)} held {c.session.graph.held}")

    return scenario
