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
from tests.protocols.toolbridge.desks import TestDesk, a_desk

__all__ = ["count", "desk_with", "emitted", "square"]


def square(x: int) -> int:
    return x * x


def count(n: int) -> Any:
    yield from range(n)


def desk_with(*functions: Any, settings: BridgeSettings | None = None) -> TestDesk:
    """A desk with tools, which notes the calls that have ended in ``ended``."""
    desk = a_desk(settings)
    desk.tools = Tools(read(one) for one in functions or (square, count))
    ended: list[ToolCall] = []
    desk.observers.append(ended.append)
    desk.ended = ended
    return desk


def emitted(value: Any, index: int = 0, key: str = "tool") -> Emitted:
    """What a function gave."""
    return Emitted(key, index, Message(pack(value), media_type=ANY))
