"""Tests of variables."""

from __future__ import annotations

import asyncio

import pytest

from invoker.client.toolbridge import MISSING, Change, ToolExecutionError, ToolSession
from tests.protocols.toolbridge.client.peer import NOW, Peer

AT = NOW.ToDatetime().replace(tzinfo=None)


async def test_a_variable_is_set_read_described_and_deleted(session: ToolSession, peer: Peer) -> None:
    """None is a value; a variable that is not there is none."""
    variables = session.variables
    assert await variables.get("x") is MISSING
    assert await variables.get("x", 3) == 3
    assert await variables.describe("x") is None
    await variables.set("x", [1, 2], tags={"env": "prod"}, created_by="python")
    request = peer.last("SetSessionVariable")
    assert (dict(request.metadata.tags), request.metadata.created_by) == ({"env": "prod"}, "python")
    assert await variables.get("x") == [1, 2]
    await variables.set("x", None)
    assert not peer.last("SetSessionVariable").HasField("metadata")
    assert await variables.get("x", 3) is None
    known = await variables.describe("x")
    assert known is not None
    assert (known.value, known.type, known.created_by, known.tags) == (None, "integer", "elixir", {"a": "b"})
    assert known.created_at.replace(tzinfo=None) == AT
    await variables.delete("x")
    assert await variables.get("x") is MISSING


async def test_a_variable_that_is_not_there_is_made_only_if_asked(session: ToolSession) -> None:
    """And cannot be deleted."""
    with pytest.raises(ToolExecutionError) as caught:
        await session.variables.set("x", 1, create=False)
    assert caught.value.code == "variable_not_found"
    with pytest.raises(ToolExecutionError):
        await session.variables.delete("x")


async def test_variables_are_listed(session: ToolSession, peer: Peer) -> None:
    """By prefix and tags."""
    for name in ("b", "ab", "aa"):
        await session.variables.set(name, 1)
    rows = await session.variables.list("a", tags=["env=prod", "team"], limit=5)
    assert [(row.name, row.type, row.size_bytes) for row in rows] == [("aa", "integer", 9), ("ab", "integer", 9)]
    request = peer.last("ListSessionVariables")
    assert (list(request.tags), request.limit) == (["env=prod", "team"], 5)


async def test_changes_are_watched(session: ToolSession, peer: Peer) -> None:
    """Until the watch is left."""
    async with session.variables.watch("x", "y", initial=False) as watch:
        await session.variables.set("x", 1)
        await session.variables.set("x", 2)
        await session.variables.delete("x")
        changes = [await anext(watch) for _ in range(3)]
    assert [(one.name, one.operation, one.value) for one in changes] == [
        ("x", "set", 1),
        ("x", "update", 2),
        ("x", "delete", None),
    ]
    assert all(isinstance(one, Change) for one in changes)
    request = peer.last("WatchSessionVariables")
    assert (list(request.variable_names), request.include_initial) == (["x", "y"], False)
    await asyncio.to_thread(peer.cancelled.wait, 5)
    assert peer.cancelled.is_set()
