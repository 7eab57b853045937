"""Sessions that do nothing wrong, and what they must be answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from random import Random
from typing import Any

import grpc.aio

from invoker._pb.evergreen import evergreen_pb2 as pb

PATH = "/evergreen.v2.EvergreenService/StartSession"

Answer = list[bytes]
"""The leaves of one output."""


def leaf(node: str, data: bytes, seq: int = 0, *, more: bool = False) -> pb.NodeFragment:
    """A fragment of text."""
    made = pb.NodeFragment(id=node, seq=seq, continued=more, chunk_fragment=pb.Chunk(data=data))
    if seq == 0:
        made.chunk_fragment.metadata.mimetype = "text/plain"
    return made


def act(name: str, inputs: dict[str, str], output: str) -> pb.Action:
    """An action with one output."""
    given = [pb.NamedParameter(name=key, id=value) for key, value in inputs.items()]
    return pb.Action(name=name, inputs=given, outputs=[pb.NamedParameter(name="out", id=output)])


def _split(chance: Random, node: str, data: bytes) -> list[pb.NodeFragment]:
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.randrange(6)))
    parts = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    found = [leaf(node, part, seq, more=seq < len(parts) - 1) for seq, part in enumerate(parts)]
    chance.shuffle(found)
    return found


def good(chance: Random) -> tuple[list[pb.NodeFragment | pb.Action], dict[str, Answer]]:
    """What a client sends, in any order, and what its outputs must be."""
    text = "".join(chance.choices("aé日 ", k=chance.randrange(1, 200)))
    words = [str(number) for number in range(chance.randrange(1, 20))]
    kind = chance.randrange(4)
    sent: list[pb.NodeFragment | pb.Action]
    wanted: dict[str, Answer]
    if kind == 0:
        sent = [*_split(chance, "p", text.encode()), act("relay", {"x": "p"}, "r")]
        wanted = {"r": [text.encode()]}
    elif kind == 1:
        sent = [act("relay", {"x": f"n{at}"}, f"n{at + 1}") for at in range(3)]
        sent += _split(chance, "n0", text.encode())
        wanted = {f"n{at}": [text.encode()] for at in range(1, 4)}
    elif kind == 2:
        sent = [leaf("p", b"20"), leaf("q", b"3"), act("add", {"a": "p", "b": "q"}, "r")]
        wanted = {"r": [b"23"]}
    else:
        sent = [pb.NodeFragment(id="root", child_ids=[f"w{word}" for word in words])]
        sent += [leaf(f"w{word}", word.encode() + b"a") for word in words]
        sent.append(act("upper", {"text": "root"}, "r"))
        wanted = {"r": [word.encode() + b"A" for word in words]}
    chance.shuffle(sent)
    return sent, wanted


async def ask(
    channel: grpc.aio.Channel, sent: Sequence[pb.NodeFragment | pb.Action], outputs: Sequence[str], timeout_s: float
) -> dict[str, Answer]:
    """Hold a session with one message for each part.

    Raises:
        grpc.aio.AioRpcError: It did not end with OK.
    """
    call: Any = channel.stream_stream(PATH)(timeout=timeout_s)
    for one in sent:
        kind = "actions" if isinstance(one, pb.Action) else "node_fragments"
        await call.write(pb.SessionMessage(**{kind: [one]}).SerializeToString())
    await call.done_writing()
    data: dict[str, bytearray] = {}
    children: dict[str, list[str]] = {}
    async for message in call:
        for fragment in pb.SessionMessage.FromString(message).node_fragments:
            data.setdefault(fragment.id, bytearray()).extend(fragment.chunk_fragment.data)
            children.setdefault(fragment.id, []).extend(fragment.child_ids)
    return {
        one: [bytes(data[child]) for child in children[one]] if children[one] else [bytes(data[one])]
        for one in outputs
        if one in data
    }


async def state(address: str) -> dict[str, int]:
    """What the server has; see ``tests.fuzz.sync_actions.state``."""
    async with asyncio.timeout(30), grpc.aio.insecure_channel(address) as channel:
        found = await ask(channel, [act("state", {}, "r")], ["r"], 30)
    return dict(json.loads(found["r"][0]))
