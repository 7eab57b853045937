"""Tools and calls for the tests of what calls them."""

from __future__ import annotations

from typing import Any

from invoker.author.reader import read
from invoker.codecs.anyvalue import ANY, pack
from invoker.core.steps import Emitted
from invoker.message import Message
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.toolcall import ToolCall
from invoker.protocols.toolbridge.tools import Tools
from tests.protocols.toolbridge.hosts import TestHostSessions, new_host_sessions


def square(x: int) -> int:
    return x * x


def count(n: int) -> Any:
    yield from range(n)


def host_sessions_with(*functions: Any, settings: BridgeSettings | None = None) -> TestHostSessions:
    """`HostSessions` with tools, which notes the calls that have ended in ``ended``."""
    host_sessions = new_host_sessions(settings)
    host_sessions.tools = Tools(read(one) for one in functions or (square, count))
    ended: list[ToolCall] = []
    host_sessions.observers.append(ended.append)
    host_sessions.ended = ended
    return host_sessions


def emitted(value: Any, index: int = 0, key: str = "tool") -> Emitted:
    """What a function gave."""
    return Emitted(key, index, Message(pack(value), media_type=ANY))
