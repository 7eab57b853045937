"""What is kept for a key that peers choose: the empty key finds what it means itself, first of all and after others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from invoker._pb.evergreen import evergreen_pb2
from invoker.author.prepare import prepare_function
from invoker.author.reader import read
from invoker.codecs import builtin
from invoker.codecs.anyvalue import pack
from invoker.core.cache import Cache as CoreCache
from invoker.core.http import RequestHead
from invoker.core.plan import Plans
from invoker.core.steps import Open, Send
from invoker.mediatypes import parse
from invoker.message import Headers, Message
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.table import Table
from invoker.protocols.evergreen.wire import is_marker, is_utf8_text
from invoker.protocols.federated.client.cache import Cache, Entry
from invoker.protocols.graphpipe.plans import find
from invoker.protocols.graphpipe.prepare import prepare
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.toolbridge.arguments import Arguments
from invoker.transports.grpc.settling import settle_time
from invoker.transports.http.codings import PACKED, PLAIN, chosen
from invoker.transports.http.origins import Origins
from invoker.transports.http.packing import is_worth
from invoker.transports.http.plain import PlainHeads
from tests.protocols.graphpipe.asking import ask, model_of
from tests.transports.http.test_plain import Counting
from tests.transports.riff import start

REFUSED = "refused"
CORE = {"user-agent": "grpc-c++/1.60.0 grpc-c/37.0.0 (linux; chttp2)"}


class Keeper(NamedTuple):
    """Something that keeps what it made for a key.

    Attributes:
        asking: Makes a new one; asked for a key, it gives what it keeps for that, or makes it.
        empty: The least key.
        means: What it finds for the least key.
        others: Keys that peers send, too.
    """

    asking: Callable[[], Callable[[Any], Any]]
    empty: Any
    means: Any
    others: tuple[Any, ...]


def scale(x: int, by: int = 1) -> int:
    return x * by


def options(*, by: int = 1) -> int:
    return by


def stream(xs: Iterator[int]) -> Iterator[int]:
    yield from xs


def always(asked: Callable[[Any], Any]) -> Callable[[], Callable[[Any], Any]]:
    """For what is kept in the module."""
    return lambda: asked


def arguments() -> Callable[[Any], Any]:
    bind = Arguments(read(scale)).bind
    return lambda key: bind([pack(one) for one in key], {}).names


def actions() -> Callable[[Any], Any]:
    table = Table([read(scale)], EvergreenSettings())
    port = evergreen_pb2.NamedParameter

    def asked(names: tuple[str, ...]) -> Any:
        inputs, outputs = [port(name="x", id="p")] * len(names), [port(name="result", id="r")] * len(names)
        return table.bind(evergreen_pb2.Action(name="".join(names), inputs=inputs, outputs=outputs), "it").spec.name

    return asked


def bindings(function: Any) -> Callable[[], Callable[[Any], Any]]:
    def made() -> Callable[[Any], Any]:
        lifted = prepare_function(function).function
        return lambda key: [one.name for one in lifted.binding(key).spec.inputs]

    return made


def plans() -> Callable[[Any], Any]:
    function, kept = prepare_function(stream).function, Plans(builtin(entry_points=False), contextlib.nullcontext())
    return lambda accepts: len(kept.of(function, Open("k", "", accepts)).outputs)


def inferences() -> Callable[[Any], Any]:
    model = model_of(scale)

    def asked(request: bytes) -> Any:
        assert request or find(model, request, 1 << 20) is None
        return type(prepare(model, request).steps[0])

    return asked


def heads() -> Callable[[Any], Any]:
    judge = Origins([])
    judge.bind("127.0.0.1", is_loopback=True)
    return PlainHeads(lambda _: Counting(), judge).read


def downloads() -> Callable[[Any], Any]:
    cache = Cache(None, lambda: 0.0)
    cache.put("one", Entry(b"1", ""), 10)
    return cache.get


def kept() -> Callable[[Any], Any]:
    several: CoreCache[Any, Any] = CoreCache(4, 1 << 20)
    several.keep("one", 1, 1)
    return several.find


def decoded(media_type: str) -> Any:
    return builtin(entry_points=False).decoder(media_type, Any)(Message(b"1", Headers(), media_type))


def starts() -> Callable[[Any], Any]:
    return lambda frame: type(RiffSession().receive(frame)[0]).__name__


def coding(accept: tuple[str, ...]) -> Any:
    return chosen(RequestHead("GET", "/", headers=[("accept-encoding", one) for one in accept]), PACKED)


KEEPERS = {
    "how long a half-close settles": Keeper(always(lambda key: settle_time(Headers(key), 0.5)), {}, 0.5, (CORE,)),
    "arguments of a tool": Keeper(arguments, (), REFUSED, ((1,), (1, 2))),
    "an action": Keeper(actions, (), REFUSED, (("nobody",), ("scale",))),
    "inputs by name": Keeper(bindings(scale), (), REFUSED, (("x",), ("x", "by"), ("by",))),
    "options by name": Keeper(bindings(options), (), [], (("by",),)),
    "a plan": Keeper(plans, (), REFUSED, (None, ("*/*",), ("",))),
    "a request of GraphPipe": Keeper(inferences, b"", Send, (ask(7), ask(7, 2))),
    "a plain head": Keeper(heads, b"\r\n\r\n", None, (b"POST / HTTP/1.1\r\nhost: localhost\r\n\r\n",)),
    "a download": Keeper(downloads, "", None, ("one", "two")),
    "anything": Keeper(kept, "", None, ("one", "two")),
    "a decoder": Keeper(always(decoded), "", b"1", ("application/json", "text/plain")),
    "a StartFrame": Keeper(starts, b"", REFUSED, (start(), start("text/plain", ("a",)))),
    "a coding": Keeper(always(coding), (), PLAIN, (("gzip",), ("",), ("br", "gzip"))),
    "what is worth packing": Keeper(always(is_worth), "", False, ("text/plain", "image/png")),
    "a media type": Keeper(always(parse), "", REFUSED, ("text/plain", "nothing")),
    "a mark of Evergreen": Keeper(always(is_marker), "", False, ("application/x-protobuf; type=EndOfTurn",)),
    "text of Evergreen": Keeper(always(is_utf8_text), "", False, ("text/plain",)),
}


def outcome(asked: Callable[[Any], Any], key: Any) -> Any:
    try:
        return asked(key)
    except Exception:  # each has errors of its own
        return REFUSED


@pytest.mark.parametrize("name", KEEPERS)
def test_the_empty_key_means_what_it_says(name: str) -> None:
    """Asked first, and after each other key: a call without metadata once found what nobody had kept (R-109)."""
    keeper = KEEPERS[name]
    assert outcome(keeper.asking(), keeper.empty) == keeper.means
    asked = keeper.asking()
    found = []
    for other in keeper.others * 2:
        found.append(outcome(asked, other))
        assert outcome(asked, keeper.empty) == keeper.means
    assert any(one not in (REFUSED, keeper.means) for one in found), "nothing was kept"
