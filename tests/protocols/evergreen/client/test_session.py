"""Tests of whole sessions against a scripted peer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import CallFailed, ConnectFailed, EvergreenSession, Ref
from invoker.errors import Status
from invoker.message import Message
from tests.protocols.evergreen.client.peer import Peer, Talk, inner, leaf


async def test_answer_comes_in_pieces(peer: Peer) -> None:
    """As they come; and leaving the block half-closes and takes OK for an answer."""
    async with EvergreenSession(peer.target) as session:
        answer = session.act("ECHO", {"prompt": "Hello"})
        assert [piece async for piece in answer] == ["He", "llo"]
    assert peer.talks[0].half_closed.is_set()
    assert not peer.talks[0].cancelled.is_set()


async def test_second_turn_reuses_nodes(peer: Peer) -> None:
    """Only ids travel for what is there, and nothing is sent twice."""
    async with EvergreenSession(peer.target) as session:
        first = session.act("ECHO", {"prompt": "Hello"})
        second = session.act("ECHO", {"prompt": [first.inputs["prompt"], first.output, "Who is winning?"]})
        assert await second.text() == "Hello|Hello|Who is winning?"
    sent = [one for one in peer.talks[0].fragments if one.chunk_fragment.data == b"Hello"]
    assert [one.id for one in sent if one.id != first.output.id] == [first.inputs["prompt"].id]


async def test_inputs_of_all_kinds(peer: Peer) -> None:
    """Text, bytes, JSON, messages with headers, references and sequences of these."""
    seen: list[tuple[str, str, bytes]] = []
    chunks = []

    async def look(talk: Talk, action: object) -> None:
        for one in await talk.whole(talk.actions[0].inputs[0].id):
            chunk = one.chunk_fragment
            chunks.append(chunk)
            seen.append((chunk.metadata.mimetype, chunk.ref, chunk.data))
        await talk.send(inner(talk.actions[0].outputs[0].id))

    peer.scripts["LOOK"] = look
    headers = {"role": "user", "original-file-name": "cat.png", "capture-time": "2026-01-31T12:00:00Z"}
    async with EvergreenSession(peer.target) as session:
        picture = Message(b"\x89PNG", headers, "image/png")
        values = ["a", b"b", {"c": 1}, 4, [1, 2], picture, Ref("data:,x", "text/plain"), [session.put("n"), "m"]]
        assert await session.act("LOOK", {"x": values}).items() == []
    assert seen == [
        ("text/plain", "", b"a"),
        ("application/octet-stream", "", b"b"),
        ("application/json", "", b'{"c":1}'),
        ("application/json", "", b"4"),
        ("application/json", "", b"[1,2]"),
        ("image/png", "", b"\x89PNG"),
        ("text/plain", "data:,x", b""),
        ("text/plain", "", b"n"),
        ("text/plain", "", b"m"),
    ]
    assert (chunks[5].metadata.role, chunks[5].metadata.original_file_name) == ("user", "cat.png")
    assert chunks[5].metadata.capture_time.ToJsonString() == "2026-01-31T12:00:00Z"


async def test_streamed_inputs_travel_as_they_come(peer: Peer) -> None:
    """Leaves that are written, trees that grow, and iterators: the peer has each piece before the next is made."""

    async def words() -> AsyncIterator[str]:
        yield "one"
        talk = await peer.talk()
        await talk.until(lambda: any(one.chunk_fragment.data == b"one" for one in talk.fragments))
        yield "two"

    async with EvergreenSession(peer.target) as session:
        node = session.node("text/markdown", {"role": "user"})
        tree = session.tree()
        answer = session.act("ECHO", {"written": [node], "grown": tree, "iterated": words()})
        await node.write("日"[:1])
        talk = await peer.talk()
        await talk.until(lambda: any(one.id == node.id for one in talk.fragments))
        await node.write("本")
        await node.end()
        await tree.add(node)
        await tree.add({"k": 1}, "last")
        await tree.end()
        assert await answer.text() == '日本|日本|{"k":1}|last|one|two'
    metadata = [one.chunk_fragment.HasField("metadata") for one in talk.fragments if one.id == node.id]
    assert metadata == [True, False, False]


async def test_several_outputs_are_read_in_any_order(peer: Peer) -> None:
    """The second one first, though all of the first, which is above the mark, comes before it."""

    async def both(talk: Talk, action: object) -> None:
        first, second = (one.id for one in talk.actions[0].outputs)
        for seq in range(64):
            await talk.send(leaf(first, bytes(1 << 14), seq=seq, more=True, media_type=None if seq else ""))
        await talk.send(inner(first, seq=64), leaf(second, b"42", media_type="application/json"))

    peer.scripts["BOTH"] = both
    async with EvergreenSession(peer.target, held_bytes=2 << 20) as session:
        answer = session.act("BOTH", outputs=("many", "one"))
        assert await answer["one"].value() == 42
        assert sum([len(piece) async for piece in answer["many"]]) == 1 << 20


async def test_server_is_held_up_while_nobody_reads(peer: Peer) -> None:
    """The call is not read above the mark, whatever else goes on; and read on when there is room again."""
    size, mark = 1 << 16, 1 << 18
    sent = 0

    async def endless(talk: Talk, action: object) -> None:
        nonlocal sent
        id_ = talk.actions[0].outputs[0].id
        while not talk.cancels:
            await talk.send(leaf(id_, bytes(size), seq=sent, more=True, media_type=None if sent else ""))
            sent += 1

    peer.scripts["ENDLESS"] = endless
    async with EvergreenSession(peer.target, held_bytes=4 * mark, extensions=("cancel",)) as session:
        answer = session.act("ENDLESS")
        held = session._inbox.arrivals
        while held.held_bytes < mark:
            session._inbox.grown.clear()
            await session._inbox.grown.wait()
        async with EvergreenSession(peer.target) as other:
            for _ in range(20):
                assert await other.act("ECHO", {"x": "abc"}).text() == "abc"
                assert held.held_bytes <= mark + size
        pieces = aiter(answer)
        for _ in range(1000):
            assert len(await anext(pieces)) == size
        answer.cancel()
        with pytest.raises(CallFailed, match="CANCELLED: the caller cancelled"):
            await anext(pieces)


async def test_too_much_unread_fails_the_session(peer: Peer) -> None:
    """When somebody waits for one output while another is not read at all."""

    async def flood(talk: Talk, action: object) -> None:
        for seq in range(1000):
            id_ = talk.actions[0].outputs[0].id
            await talk.send(leaf(id_, bytes(1 << 16), seq=seq, more=True, media_type=None if seq else ""))

    peer.scripts["FLOOD"] = flood
    async with EvergreenSession(peer.target, held_bytes=1 << 20) as session:
        answer = session.act("FLOOD", outputs=("flood", "never"))
        with pytest.raises(CallFailed, match="RESOURCE_EXHAUSTED: more than 1048576 bytes wait unread"):
            await answer["never"].value()
    assert await asyncio.to_thread(peer.talks[0].cancelled.wait, 5)


async def test_failure_comes_after_what_came_before_it(peer: Peer) -> None:
    """And it reaches everybody who waits on the session."""
    async with EvergreenSession(peer.target) as session:
        waiting = asyncio.create_task(session.act("SILENT").text())
        pieces = aiter(session.act("FAIL"))
        assert await anext(pieces) == "begun"
        for broken in (anext(pieces), waiting):
            with pytest.raises(CallFailed, match="Action Failed: ValueError: boom") as caught:
                await broken
            assert caught.value.status is Status.UNKNOWN
        with pytest.raises(CallFailed, match="boom"):
            session.act("ECHO")


async def test_failure_that_nobody_saw_is_raised_at_the_end(peer: Peer) -> None:
    """An action for its effect must not fail in silence."""
    with pytest.raises(CallFailed, match="boom"):
        async with EvergreenSession(peer.target) as session:
            session.act("FAIL")


async def test_no_connection(peer: Peer) -> None:
    """Is an error of its own, as with riff."""
    with pytest.raises(ConnectFailed):
        async with EvergreenSession("127.0.0.1:1", connect_timeout_s=5):
            raise AssertionError("there is nobody")


async def test_extensions_are_what_the_server_accepted(peer: Peer) -> None:
    """Of those that were asked for."""
    async with EvergreenSession(peer.target, extensions=("cancel", "drop")) as session:
        assert session.extensions == {"cancel"}
        with pytest.raises(RuntimeError, match="not accepted the extension 'drop'"):
            session.drop(session.put("x"))
    assert peer.talks[0].metadata["evergreen-extensions"] == "cancel, drop"
    peer.is_mute = True
    async with EvergreenSession(peer.target, extensions=("cancel",)) as session:
        assert session.extensions == frozenset()
        with pytest.raises(RuntimeError, match="not accepted the extension 'cancel'"):
            session.act("ECHO", {"x": "y"}).cancel()


async def test_cancel_of_an_answer_leaves_the_session(peer: Peer) -> None:
    """By the extension CANCEL; its readers are told at once."""
    async with EvergreenSession(peer.target, extensions=("cancel",)) as session:
        answer = session.act("SILENT")
        reader = asyncio.create_task(answer.text())
        await asyncio.sleep(0)
        answer.cancel()
        with pytest.raises(CallFailed, match="CANCELLED"):
            await reader
        assert await session.act("ECHO", {"x": "still here"}).text() == "still here"
    assert len(peer.talks[0].cancels) == 1


async def test_cancel_of_the_session(peer: Peer) -> None:
    """Wakes who waits, and the end of the block has nothing to say."""
    async with EvergreenSession(peer.target) as session:
        reader = asyncio.create_task(session.act("SILENT").text())
        await peer.talk()
        session.cancel()
        with pytest.raises(CallFailed, match="CANCELLED: the caller cancelled"):
            await reader
    assert await asyncio.to_thread(peer.talks[0].cancelled.wait, 5)


async def test_exception_in_the_block_cancels_the_session(peer: Peer) -> None:
    """It is not taken for a half-close, and goes on to the caller."""

    async def stumble() -> None:
        async with EvergreenSession(peer.target) as session:
            session.act("SILENT")
            await peer.talk()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await stumble()
    assert await asyncio.to_thread(peer.talks[0].cancelled.wait, 5)


async def test_input_that_raises_fails_what_waits_for_it(peer: Peer) -> None:
    """Its node must not look whole; with CANCEL only the action fails."""

    async def broken() -> AsyncIterator[str]:
        yield "a"
        raise ValueError("no more")

    with pytest.raises(CallFailed, match="an input raised ValueError: no more") as caught:
        async with EvergreenSession(peer.target) as session:
            await session.act("ECHO", {"x": broken()}).text()
    assert isinstance(caught.value.__cause__, ValueError)
    async with EvergreenSession(peer.target, extensions=("cancel",)) as session:
        peer.scripts["ECHO_OR_CANCEL"] = peer.scripts["SILENT"]
        with pytest.raises(CallFailed, match="an input raised ValueError: no more"):
            await session.act("ECHO_OR_CANCEL", {"x": broken()}).text()
        assert await session.act("ECHO", {"x": "on"}).text() == "on"


@pytest.mark.parametrize(
    ("fragments", "says"),
    [
        ([leaf("R", b"a", more=True), leaf("R", b"b", seq=1)], "metadata in seq 1"),
        ([leaf("R", b"a"), leaf("R", b"b", seq=1, media_type=None)], "seq 1 beyond its final seq 0"),
        ([leaf("R", b"a", media_type=None)], "without metadata at seq 0"),
        ([leaf("R", b"a", seq=-1)], "negative seq"),
        ([inner("R", "c", more=True), leaf("R", b"", seq=1, media_type=None)], "as a leaf and as an interior"),
        ([inner("R", "R")], "includes itself"),
        ([leaf("R", b"\xff")], "text/plain that cannot be decoded"),
        ([leaf("R", b"{", media_type="application/json")], "application/json that cannot be decoded"),
        ([leaf("R", b"a", more=True)], "never ended after seq 0"),
        ([leaf("R", b"a", more=True), inner("R", seq=2)], "has no seq 1, though later ones came"),
        ([inner("R", "child")], "'child' never came"),
        ([], "never came"),
    ],
)
async def test_E103_server_that_breaks_the_shape_is_told_apart(peer: Peer, fragments: list[object], says: str) -> None:
    """With words for its author, and a status that says it is not our caller's fault."""

    talk_begun = asyncio.Event()

    async def break_it(talk: Talk, action: object) -> None:
        talk_begun.set()
        for one in fragments:
            copy = type(leaf("", b""))()
            copy.CopyFrom(one)  # type: ignore[arg-type]
            copy.id = talk.actions[0].outputs[0].id if copy.id == "R" else copy.id
            copy.child_ids[:] = [talk.actions[0].outputs[0].id if one == "R" else one for one in copy.child_ids]
            await talk.send(copy)

    peer.scripts["BREAK"] = break_it
    with pytest.raises(CallFailed, match=says) as caught:  # noqa: PT012 - by the reader, or when the session is left
        async with EvergreenSession(peer.target) as session:
            reader = asyncio.create_task(_all(session.act("BREAK")))
            await talk_begun.wait()
            session._call.half_close()
            await reader
    assert caught.value.status is Status.INTERNAL


async def _all(answer: object) -> list[object]:
    return [piece async for piece in answer]  # type: ignore[attr-defined]


async def test_everything_is_written_before_anything_is_read(peer: Peer) -> None:
    """Though the peer does not read on before it has answered: who waits to write lets the call be read."""

    async def mirror(talk: Talk, message: pb.SessionMessage) -> None:
        for one in message.node_fragments:
            one.id = talk.actions[0].outputs[0].id
            await talk.send(one)

    async def nothing(talk: Talk, action: object) -> None:
        """All that there is to do happens while messages are read."""

    peer.on_message = mirror
    peer.scripts["MIRROR"] = nothing
    async with EvergreenSession(peer.target, held_bytes=64 << 20) as session:
        node = session.node("application/octet-stream")
        answer = session.act("MIRROR", {"x": node})
        for _ in range(96):
            await node.write(bytes(1 << 19))
        await node.end()
        assert sum([len(piece) async for piece in answer]) == 48 << 20


async def test_inputs_without_names_are_refused(peer: Peer) -> None:
    """A bare value where a mapping belongs is told at once, and the session goes on."""
    async with EvergreenSession(peer.target) as session:
        with pytest.raises(TypeError, match="inputs are a mapping of names to values, not str"):
            session.act("ECHO", "Hello")  # type: ignore[arg-type]
        assert await session.act("ECHO", {"prompt": "Hello"}).text() == "Hello"
