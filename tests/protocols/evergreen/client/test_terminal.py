"""Tests of the terminal's half of a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from invoker.client import EvergreenSession, Talk
from invoker.protocols.evergreen.client.terminal import Terminal
from tests.protocols.evergreen.client.peer import Peer, inner, leaf, sending


async def typed(*lines: str) -> AsyncIterator[str]:
    for line in lines:
        yield line


async def test_pieces_that_are_no_text_are_told_or_written_as_json(
    peer: Peer, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes may upset a terminal."""
    picture, row = (
        leaf("p", b"\x1b[2J", media_type="image/png"),
        leaf("j", b'{"a":"\xc3\xa9"}', media_type="application/json"),
    )
    peer.scripts["MIXED"] = sending(inner("R", "p", "j"), picture, row)
    async with EvergreenSession(peer.target) as session:
        terminal = Terminal(session, Talk(session, "MIXED"))
        await terminal.hold(typed("hi", "/quit", "never"))
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ('{"a": "é"}\n\n', "(4 bytes that are not text)\n")
    assert len(peer.talks[0].actions) == 1
    assert not terminal.has_failed


async def test_interrupt_at_the_prompt_ends_the_session(peer: Peer) -> None:
    """While a line is waited for."""

    async def never() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    async with EvergreenSession(peer.target, extensions=("cancel",)) as session:
        terminal = Terminal(session, Talk(session, "ECHO"))
        holding = asyncio.create_task(terminal.hold(never()))
        await asyncio.sleep(0)
        terminal.interrupt()
        await asyncio.wait_for(holding, 5)
    assert terminal.is_interrupted
    assert not session.is_open


async def test_failed_turn_is_left_out_where_the_session_goes_on(
    peer: Peer, capsys: pytest.CaptureFixture[str]
) -> None:
    """With partial failures; the next turn does not hear of it."""
    peer.accepts = ("partial-failures",)
    status = "application/x-protobuf; type=google.rpc.Status"

    async def fussy(talk, action) -> None:  # type: ignore[no-untyped-def]
        output, told = (one.id for one in action.outputs)
        texts = await talk.texts(action.inputs[0].id)
        await talk.send(leaf(output, "|".join(texts).encode()) if texts[-1] != "bad" else inner(output))
        await talk.send(leaf(told, b"\x08\x03\x12\x02no" if texts[-1] == "bad" else b"", media_type=status))

    peer.scripts["FUSSY"] = fussy
    async with EvergreenSession(peer.target, extensions=("partial-failures",)) as session:
        terminal = Terminal(session, Talk(session, "FUSSY"))
        await terminal.hold(typed("bad", "good"))
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == ("good\n", "error: INVALID_ARGUMENT: no\n")
    assert terminal.has_failed
