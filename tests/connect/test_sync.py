"""`invoker.connect.sync`: a sync client is made of an async one, with its parameters and its texts."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator
from typing import Any, Self

import pytest

from invoker.client import evergreen, federated, riff, toolbridge
from invoker.connect.portal import Portal
from invoker.connect.sync import SyncClient, SyncIterator, SyncPart, blocking, giving, opening, soon
from invoker.protocols.evergreen.client.sync import SyncLeafNode, SyncOutput, SyncTreeNode
from invoker.protocols.toolbridge.client.streams import Stream

PAIRS = [
    (riff.RiffClient, riff.SyncRiffClient),
    (evergreen.EvergreenSession, evergreen.SyncEvergreenSession),
    (toolbridge.ToolBridge, toolbridge.SyncToolBridge),
    (toolbridge.ToolSession, toolbridge.SyncToolSession),
    (toolbridge.Variables, toolbridge.SyncVariables),
    (toolbridge.Agent, toolbridge.SyncAgent),
    (Stream, toolbridge.SyncStream),
    (riff.Call, riff.SyncCall),
    (evergreen.Answer, evergreen.SyncAnswer),
    (evergreen.OutputNode, SyncOutput),
    (evergreen.LeafNode, SyncLeafNode),
    (evergreen.TreeNode, SyncTreeNode),
    (federated.FederatedClient, federated.SyncFederatedClient),
]
# `invoke` does what `call` does, a description is for our command line, and nodes call the others.
ASYNC_ONLY = {riff.RiffClient: {"call", "describe"}, evergreen.EvergreenSession: {"room", "send"}}


class Things:
    """An async client."""

    def __init__(self, name: str, *, fails: bool = False) -> None:
        self.name, self.fails = name, fails
        self.seen: list[Any] = []

    async def __aenter__(self) -> Self:
        if self.fails:
            raise OSError("nobody is there")
        self.seen.append(threading.current_thread().name)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self.seen.append(kind)

    async def count(self, first: int, /, *more: int, factor: int = 1) -> int:
        """How many."""
        return factor * (first + len(more))

    def part(self, name: str) -> str:
        """A part."""
        asyncio.get_running_loop()
        return self.name + name

    async def below(self, end: int) -> AsyncIterator[int]:
        """The numbers below another one."""
        for number in range(end):
            yield number

    def cancel(self) -> None:
        """End everything."""
        self.seen.append(threading.current_thread().name)


class SyncThings(SyncClient[Things]):
    """The sync one."""

    @opening(Things)
    def __init__(self, source: Things) -> None:
        super().__init__(source)

    count = blocking(Things.count)
    doubled = blocking(Things.count, lambda portal, found: (portal.is_open, 2 * found))
    part = giving(Things.part, SyncPart[str])
    name_of = giving(Things.part)
    below = giving(Things.below, SyncIterator[int])
    cancel = soon(Things.cancel)

    def _taken(self, argument: Any) -> Any:
        return 5 if argument == "five" else argument


def test_methods_take_and_give_what_those_of_the_async_client_do() -> None:
    with SyncThings("a") as things:
        assert things.count(1, 2, 3, factor=10) == 30
        assert things.doubled(2) == (True, 4)
        assert things.part("b")._source == things.name_of("b") == "ab"
        assert list(things.below(3)) == [0, 1, 2]
        assert things.count("five", factor="five") == 25
        things.cancel()
    assert things._source.seen == ["invoker-client", "invoker-client", None]
    assert (things.count.__doc__, list(inspect.signature(SyncThings).parameters)) == ("How many.", ["name", "fails"])
    with pytest.raises(TypeError, match="nope"):
        SyncThings("a", nope=1)  # type: ignore[call-arg]


def test_it_is_open_within_its_block_only() -> None:
    """It can be opened again, and closed twice; the error of the block reaches the async client."""
    things = SyncThings("a")
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not open; use it as `with SyncThings"):
            things.count(1)
        with things, things:
            things.count(1)
        things.close()
    with pytest.raises(ZeroDivisionError), things:
        raise ZeroDivisionError
    assert things._source.seen[-1] is ZeroDivisionError


def test_one_that_cannot_be_opened_leaves_no_thread() -> None:
    before = threading.active_count()
    with pytest.raises(OSError, match="nobody"), SyncThings("a", fails=True):
        raise AssertionError("it is open")
    assert threading.active_count() == before


@pytest.mark.parametrize(("source", "made"), PAIRS, ids=lambda one: one.__name__)
def test_a_sync_client_has_each_method_of_the_async_one(source: type, made: type) -> None:
    """With the same parameters; what is not needed without a loop is listed above."""
    public = {name for name, value in vars(source).items() if callable(value) and not name.startswith("_")}
    there = {name for name in dir(made) if not name.startswith("_")}
    missing = public - there - ASYNC_ONLY.get(source, set())
    assert not missing
    for name in public & there:
        expected, met = (list(inspect.signature(getattr(one, name)).parameters) for one in (source, made))
        assert met == expected or name == "close", name


def test_a_portal_is_a_loop_of_its_own() -> None:
    portal = Portal()
    try:
        assert blocking(Things.count)(_part(portal), 1) == 1
    finally:
        portal.close()


def _part(portal: Portal) -> SyncPart[Things]:
    return SyncPart(portal, Things("a"))
