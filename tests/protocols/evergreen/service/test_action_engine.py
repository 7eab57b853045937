"""`invoker.protocols.evergreen.service.action_engine`: functions behind a transport as actions of its sessions."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

from invoker import Context
from invoker.protocols.evergreen.action_engine.nodes import Node
from invoker.protocols.evergreen.action_engine.settings import ActionEngineSettings
from invoker.protocols.evergreen.action_engine.statuses import status_chunk
from invoker.protocols.evergreen.action_engine.wire import END, Action, Chunk, Fragment, Metadata
from invoker.protocols.evergreen.service.action_engine import ActionEngineHandler, ActionEngineService
from tests.attach.around import around
from tests.protocols.evergreen.action_engine.functions import concat, gather, greet, now, split, tag, total
from tests.transports.served import until
from tests.transports.socketed import echo, upper
from tests.transports.sockets import item, serving, texts


def told(x: str, context: Context) -> str:
    return f"{context.metadata.get('user-agent')} {context.metadata.get('upgrade')} {context.metadata.get('hk')} {x}"


async def test_functions_see_the_headers_of_the_handshake_and_of_the_action() -> None:
    """Without those that only carry the connection."""
    async with serving(told) as served, served.peer(headers={"User-Agent": "test"}) as peer:
        await peer.say(Action("A", "told", (("x", "n"),), (("y", "A#y"),), {"hk": "hv"}), item("n", last=True))
        assert texts(await peer.fragments(), "A#y") == [b"test None hv x"]


async def test_names_are_those_of_the_settings() -> None:
    """Of actions and of inputs."""
    known = ActionEngineSettings(actions={"TELL": "told"}, inputs={"prompt": "x"})
    async with serving(told, known=known) as served, served.peer() as peer:
        await peer.say(Action("A", "TELL", (("prompt", "n"),), (("y", "A#y"),)), item("n", last=True))
        assert texts(await peer.fragments(), "A#y") == [b"None None None x"]


async def test_the_connections_are_as_the_settings_say() -> None:
    """Their path, their number, and the size of a message."""
    about = around(told, socket_path="/here", sessions=3, max_message_bytes=1000, session_bytes=5000)
    service = ActionEngineService(about)
    await service.start()
    assert service.socket_handler("/") is None
    handler = service.socket_handler("/here")
    assert isinstance(handler, ActionEngineHandler)
    assert (handler.sessions, handler.settings.max_message_bytes, handler.known.session_bytes) == (3, 1000, 5000)


def octets(id: str, data: bytes) -> Fragment:
    """The only item of a node, as bytes."""
    return Fragment(id, Chunk(data, metadata=Metadata("application/octet-stream")))


@pytest.mark.parametrize(
    ("function", "inputs", "outputs", "answer"),
    [
        (concat, {"b": [b"B"], "a": [b"A"]}, ["y"], {"y": [b"AB"]}),
        (greet, {"name": [b"Ada", b"Eve"]}, ["y"], {"y": [b"Hello, Ada", b"Hello, Eve"]}),
        (greet, {"greeting": [b"Hi"], "name": [b"Ada"]}, ["y"], {"y": [b"Hi, Ada"]}),
        (now, {}, ["y"], {"y": [b"1"]}),
        (total, {"p10": [b"1"], "p9": [b"2", b"3"]}, ["sum"], {"sum": [b"6"]}),
        (gather, {"left": [b"a"], "right": [b"b"]}, ["y"], {"y": [b"ab"]}),
        (split, {"xs": [b"1", b"2"]}, ["odd", "even"], {"odd": [b"x"], "even": [b"1", b"2"]}),
        (split, {"xs": [b"1", b"2"]}, ["odd"], {"odd": [b"x"]}),
        (tag, {"xs": [b"p", b"q"]}, ["a", "b"], {"a": [b"p", b"q"], "b": []}),
    ],
)
async def test_functions_of_every_shape_are_actions(
    function: Any, inputs: dict[str, list[bytes]], outputs: list[str], answer: dict[str, list[bytes]]
) -> None:
    """Inputs by name and in any number, defaults, several outputs, and those of the caller's choice."""
    async with serving(function) as served, served.peer() as peer:
        ports = [tuple((name, f"A#{name}") for name in names) for names in (inputs, outputs)]
        await peer.say(Action("A", function.__name__, *ports))
        for name, items in inputs.items():
            await peer.say(*(item(f"A#{name}", seq, data) for seq, data in enumerate(items)))
            await peer.say(Fragment(f"A#{name}", END, len(items)))
        found = await peer.fragments()
        assert found[-1].content == status_chunk(None)
        assert {name: texts(found, f"A#{name}") for name in outputs} == answer


async def test_an_action_feeds_another_one_while_both_run() -> None:
    """The peer sees what passes between them."""
    async with serving(echo, upper) as served, served.peer() as peer:
        first = Action("A", "echo", (("x", "A#x"),), (("y", "mid"),))
        await peer.say(first, Action("B", "upper", (("x", "mid"),), (("y", "end"),)))
        for seq in range(3):
            await peer.say(item("A#x", seq, b"%c" % (97 + seq)))
            found = await peer.fragments("end")
            assert (texts(found, "mid"), texts(found, "end")) == ([b"%c" % (97 + seq)], [b"%c" % (65 + seq)])
        await peer.say(Fragment("A#x", END, 3))
        found = await peer.fragments("B#__status__")
        assert {one.id for one in found if one.content == status_chunk(None)} == {"A#__status__", "B#__status__"}


async def test_what_a_session_holds_is_released_with_it() -> None:
    """Also where it ended in the middle."""
    async with serving(echo) as served:
        sessions: list[weakref.ref[Any]] = []
        for turn in range(20):
            async with served.peer() as peer:
                await peer.say(Action("A", "echo", (("x", "A#x"),), (("y", "A#y"),)), item("A#x"), item("unused"))
                await peer.fragments("A#y")
                (reactor,) = served.driver.conversations
                sessions.append(weakref.ref(reactor.session))
                del reactor
                if turn % 2:
                    await peer.say(Fragment("A#x", END, 1))
                    await peer.fragments()
                    await peer.say()
                    await peer.closed()
            await until(lambda: not served.app.running)
        await served.driver.left(5)
        gc.collect()
        assert [one() for one in sessions if one() is not None] == []


async def test_octets_are_octets() -> None:
    """Both ways, whatever they are."""
    async with serving(gather) as served, served.peer() as peer:
        await peer.say(Action("A", "gather", (("x", "n"),), (("y", "A#y"),)), octets("n", b"\x00\xff"))
        (answered, *_) = await peer.fragments()
        assert answered.content == Chunk(b"\x00\xff", metadata=Metadata("application/octet-stream"))


async def deaf(values: AsyncIterator[bytes], signal: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Waits for its second input, so that the first one is read on and kept (R-129)."""
    async for one in signal:
        yield one
    async for one in values:
        yield one


async def test_what_a_function_was_fed_and_has_not_read_counts_with_what_the_session_keeps() -> None:
    """Of forty items, sixteen were given to the invocation; nothing is left when the peer leaves, nor in a cycle."""
    action = Action("A", "deaf", (("values", "v"), ("signal", "s")), (("y", "o"),))
    items = [Fragment("v", Chunk(bytes(100_000), metadata=Metadata()), seq, continued=True) for seq in range(40)]
    gc.collect()
    gc.disable()
    try:
        async with serving(deaf) as served:
            memory = served.driver.engine.memory
            async with served.peer() as peer:
                await peer.say(action)
                for one in items:
                    await peer.say(one)
                await until(lambda: memory.held >= 4_000_000)
            await until(lambda: not memory.held)
            assert [one for one in gc.get_objects() if isinstance(one, Node)] == []
    finally:
        gc.enable()
