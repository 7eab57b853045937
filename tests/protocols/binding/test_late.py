"""The value of an option that comes after the first item of a stream: awaited where it is announced, else refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from invoker._pb.riff import riff_rpc_pb2
from invoker.core.http import BodyChunk, RequestHead, Response
from invoker.protocols.evergreen.session import EvergreenSession
from invoker.protocols.riff.client.frames import InputEncoder
from invoker.protocols.riff.client.request import Request
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.typed.calls import calls_of
from invoker.protocols.typed.session import TypedSession
from invoker.protocols.web.asking import ask
from invoker.protocols.web.stream import StreamSession
from tests.protocols.binding.test_table import as_async, said
from tests.protocols.binding.wires import check_action
from tests.protocols.binding.world import Refused, World, only
from tests.protocols.evergreen.notation import JSON, A, F, K, M, Sent

Pairs = Sequence[tuple[str, int]]
PLACES = {"items": 0, "words": 1, "count": 2}


def mixed(items: Iterator[int], words: Iterator[int], count: int = 2) -> str:
    return said(*items, *words, count)


@pytest.fixture(scope="module", params=["sync", "async"])
def world(request: pytest.FixtureRequest) -> World:
    return World([mixed if request.param == "sync" else as_async(mixed)])


def _riff(world: World, pairs: Pairs, names: Sequence[str]) -> str:
    encoders = [InputEncoder(at, content_type=JSON, headers={}, registry=world.registry) for at in range(3)]
    frames = [encoders[PLACES[name]].encode(value) for name, value in pairs]
    start = Request(accept=JSON, input_names=names).start_signal()
    frame = only(world.play(RiffSession(function="mixed"), start, *frames), "Invoker: .*?: input #2 ")
    text: str = json.loads(riff_rpc_pb2.OutputSignal.FromString(frame).data.payload)
    return text


def riff(world: World, pairs: Pairs) -> str:
    """Without names."""
    return _riff(world, pairs, ())


def riff_named(world: World, pairs: Pairs) -> str:
    """With names, which announce it."""
    return _riff(world, pairs, tuple(PLACES))


def lines(world: World, pairs: Pairs) -> str:
    """A body of JSON objects, one a line."""
    kind = "application/x-ndjson"
    head = RequestHead("POST", "/mixed", "", "1.1", [("Content-Type", kind), ("Accept", kind)])
    session = StreamSession(ask(head, lambda _: world.signature("mixed"), most_bytes=10_000), most_bytes=10_000)
    body = [BodyChunk(json.dumps({name: value}).encode() + b"\n") for name, value in pairs]
    frames = world.play(session, head, *body).frames
    if isinstance(frames[0], Response):
        raise Refused(re.sub("^Invoker: .*?: parameter ", "", frames[0].body.decode()))
    text: str = json.loads(b"".join(bytes(one.payload) for one in frames if isinstance(one, BodyChunk)))
    return text


def typed(world: World, pairs: Pairs) -> str:
    """A message for each value."""
    (call,) = calls_of([world.functions["mixed"].spec])
    frames = [json.dumps({name: value}).encode() for name, value in pairs]
    frame = only(world.play(TypedSession(call, is_json=True), *frames), "Invoker: .*?: input ")
    text: str = next(iter(json.loads(frame).values()))
    return text


def evergreen(world: World, pairs: Pairs) -> str:
    """Nodes that the action announces, in messages behind it."""
    parts: list[Any] = [A("mixed", {name: name for name in PLACES}, {"y": "r"}), K("items", 0, "i"), K("words", 0, "w")]
    ids = {"items": "i", "words": "w", "count": "count"}
    parts += [F(ids[name], 0, str(value), type=JSON) for name, value in pairs]
    heard = world.play(EvergreenSession([world.functions["mixed"].spec]), *map(M, parts), is_storing=True)
    check_action(heard, "mixed")
    sent = Sent()
    for frame in heard.frames:
        sent.take(frame)
    return b"".join(one.chunk_fragment.data for one in sent.of("r")).decode()


Wire = Callable[[World, Pairs], str]
LATE = [("items", 10), ("count", 5), ("words", 20)]
FIRST = [LATE[1], LATE[0], LATE[2]]


@pytest.mark.parametrize("wire", [riff, riff_named, lines, typed, evergreen])
def test_R166_an_option_that_comes_first_counts(world: World, wire: Wire) -> None:
    assert wire(world, FIRST) == "10 20 5"


@pytest.mark.parametrize("wire", [riff_named, evergreen])
def test_R166_an_option_that_is_announced_is_awaited(world: World, wire: Wire) -> None:
    assert wire(world, LATE) == "10 20 5"


@pytest.mark.parametrize("wire", [riff, lines, typed])
def test_R166_H014_H108_an_option_that_comes_late_is_refused_in_one_sentence(world: World, wire: Wire) -> None:
    """Behind the place, and before the advice of each wire; it is never dropped."""
    with pytest.raises(Refused, match=r"^'count' is an option of 'mixed', and its value came too late; "):
        wire(world, LATE)
