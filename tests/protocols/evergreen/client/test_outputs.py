"""Tests of the ways to read an output, against a scripted peer."""

from __future__ import annotations

import pytest

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.client import EvergreenSession, Ref
from tests.protocols.evergreen.client.peer import Peer, Talk, inner, leaf, sending

END_OF_TURN = "application/x-protobuf; type=EndOfTurn"


async def test_text_that_is_cut_within_a_sign(peer: Peer) -> None:
    """E-040: where a fragment ends means nothing, and no piece is empty."""
    data = "日本 é".encode()
    pieces = [leaf("R", data[at : at + 1], seq=at, more=True, media_type=None if at else "") for at in range(len(data))]
    pieces[0].chunk_fragment.metadata.mimetype = "text/plain"
    peer.scripts["CUT"] = sending(*pieces, inner("R", seq=len(data)))
    async with EvergreenSession(peer.target) as session:
        found = [piece async for piece in session.act("CUT")]
    assert found == ["日", "本", " ", "é"]


MIXED = (
    inner("R", "t", "j", "e", "b", more=True),
    inner("R", "r", seq=1),
    leaf("t", b"text", role="model"),
    leaf("j", b'{"a":', media_type="application/json", more=True),
    leaf("j", b"1}", seq=1, media_type=None),
    leaf("e", b"", media_type=END_OF_TURN),
    leaf("b", b"\x89P", media_type="image/png", more=True),
    leaf("b", b"NG", seq=1, media_type=None),
    pb.NodeFragment(id="r", chunk_fragment=pb.Chunk(metadata=pb.ChunkMetadata(mimetype="a/b"), ref="data:,x")),
)


async def test_leaves_of_several_types(peer: Peer) -> None:
    """Decoded by their media types; pieces as early as these allow; markers in the messages only."""
    peer.scripts["MIXED"] = sending(*MIXED)
    reference = Ref("data:,x", "a/b")
    async with EvergreenSession(peer.target) as session:
        assert await session.act("MIXED").items() == ["text", {"a": 1}, b"\x89PNG", reference]
    async with EvergreenSession(peer.target) as session:
        pieces = [piece async for piece in session.act("MIXED")]
        assert pieces == ["text", {"a": 1}, b"\x89P", b"NG", reference]
    async with EvergreenSession(peer.target) as session:
        messages = [message async for message in session.act("MIXED").messages()]
    assert [one.media_type for one in messages] == ["text/plain", "application/json", END_OF_TURN, "image/png", "a/b"]
    assert messages[0].headers["role"] == "model"


async def test_messages_come_when_they_are_whole(peer: Peer) -> None:
    """Not when the output is."""

    async def two(talk: Talk, action: pb.Action) -> None:
        root = action.outputs[0].id
        await talk.send(inner(root, "a", more=True), leaf("a", b"[1]", media_type="application/json"))
        await talk.until(lambda: len(talk.fragments) > 0)
        await talk.send(inner(root, "b", seq=1), leaf("b", b"[2]", media_type="application/json"))

    peer.scripts["TWO"] = two
    async with EvergreenSession(peer.target) as session:
        messages = session.act("TWO").messages()
        assert (await anext(messages)).payload == [1]
        session.put("go on")
        assert (await anext(messages)).payload == [2]
        with pytest.raises(StopAsyncIteration):
            await anext(messages)


async def test_text_is_all_text_and_json_as_it_is_written(peer: Peer) -> None:
    """What is no text is refused."""
    peer.scripts["JSON"] = sending(leaf("R", b'{"a": 1}', media_type="application/json"))
    peer.scripts["PNG"] = sending(leaf("R", b"\x89PNG", media_type="image/png"))
    peer.scripts["REF"] = sending(inner("R", "r"), MIXED[-1])
    async with EvergreenSession(peer.target) as session:
        assert await session.act("JSON").text() == '{"a": 1}'
        with pytest.raises(ValueError, match="image/png, which is not text"):
            await session.act("PNG").text()
        with pytest.raises(ValueError, match="refers to 'data:,x'"):
            await session.act("REF").text()


async def test_value_is_the_only_leaf(peer: Peer) -> None:
    """None, or several, is an error of the caller."""
    peer.scripts["ONE"] = sending(leaf("R", b"7", media_type="application/json"))
    peer.scripts["NONE"] = sending(inner("R"))
    async with EvergreenSession(peer.target) as session:
        assert await session.act("ONE").value() == 7
        with pytest.raises(ValueError, match="has 0 leaves"):
            await session.act("NONE").value()


async def test_output_is_read_once(peer: Peer) -> None:
    """And not after the session was left."""
    async with EvergreenSession(peer.target) as session:
        answer, unread = session.act("ECHO", {"x": "abc"}), session.act("ECHO", {"x": "abc"})
        await answer.text()
        with pytest.raises(RuntimeError, match="can be read once, inside of its session, but it was read"):
            aiter(answer)
    with pytest.raises(RuntimeError, match="but the session was left"):
        await unread.text()
