"""Requests of the HTTP API: heads, bodies and answers for functions of every shape, as a whole and as streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from invoker import function
from invoker.author.reader import read
from invoker.codecs import Registry, builtin
from invoker.core.http import BodyChunk, RequestHead
from invoker.core.steps import Elapsed, Emitted, Finished, OutputEnded
from invoker.errors import InvocationError, Status, StatusError
from invoker.message import EMPTY, Message
from invoker.protocols.web.fields import Signature, signature_of
from invoker.protocols.web.http import HttpSession
from invoker.protocols.web.stream import StreamSession
from tests.golden.recorder import HALF_CLOSE, Scenario, Trace, play
from tests.golden.scenarios import sockets, web_tables
from tests.golden.scenarios.web_tables import JSON

_LIMIT = 2000


class Split(NamedTuple):
    """Two outputs."""

    even: Iterator[int]
    odd: Iterator[int]


class Order(NamedTuple):
    """An object."""

    item: str
    count: int = 1


@function(safe=True)
def square(x: int) -> int: ...
def add(a: int, b: int = 5) -> int: ...
def greet(name: str, *, polite: bool = False) -> str: ...
def picture(x: bytes) -> bytes: ...
def summed(xs: list[int], scale: float = 1.0) -> float: ...
def place(order: dict[str, Any]) -> str: ...
def many(*xs: int) -> int: ...
def named(first: str, **rest: str) -> str: ...
def now() -> str: ...
def store(xs: Iterator[int]) -> None: ...
@function(safe=True)
def scale(xs: Iterator[int], k: int = 2) -> Iterator[int]: ...
def repeat(words: Iterator[str], counts: Iterator[int], sep: str = "") -> Iterator[str]: ...
def split(xs: Iterator[int]) -> Split: ...
def blobs(xs: Iterator[bytes]) -> Iterator[bytes]: ...
@function(safe=True)
def ticks() -> Iterator[int]: ...
def total(xs: Iterator[int]) -> int: ...
def order(it: Order) -> Order: ...
def anything(x): ...


FUNCTIONS = (
    square, add, greet, picture, summed, place, many, named, now, store, scale, repeat, split, blobs, ticks, total,
    order, anything,
)  # fmt: skip


def signatures(registry: Registry) -> dict[str, Signature]:
    """What the HTTP API knows of each function."""
    return {spec.name: signature_of(spec, registry) for spec in map(read, FUNCTIONS)}


class Requests:
    """Makes scenarios of single requests."""

    def __init__(self, *, limit: int = _LIMIT) -> None:
        self._known = signatures(builtin(entry_points=False))
        self._limit = limit

    def scenario(self, head: RequestHead, body: Iterable[bytes], acts: Sequence[Any]) -> Scenario:
        """Play one request: its head, its body in chunks, and what the function does."""

        def scenario(trace: Trace) -> None:
            session = HttpSession(self._signature, max_body_bytes=self._limit)
            recorded = trace.session(session)
            play(recorded, [head])
            chunks, told = [BodyChunk(one) for one in body], acts
            if session.asked.streams:
                trace.write("a stream")
                recorded = trace.session(StreamSession(session.asked, most_bytes=self._limit))
                play(recorded, [head])
            else:
                told = [one for one in acts if not isinstance(one, Elapsed)]
            play(recorded, [*chunks, HALF_CLOSE, *told, *told[-1:], BodyChunk(b"late"), HALF_CLOSE])

        return scenario

    def _signature(self, name: str) -> Signature:
        if found := self._known.get(name):
            return found
        raise StatusError(Status.NOT_FOUND, f"Invoker: Not Found: {name!a}")


def scenarios() -> dict[str, Scenario]:
    """Requests by function and body, by head, by answer; then those that are misused, and WebSockets."""
    requests = Requests()
    made = dict(_by_body(requests))
    made |= dict(_by_head(requests))
    made |= dict(_by_answer(requests))
    return made | _misused(requests) | sockets.scenarios()


def _head(path: str, content_type: str = "", accept: str = "", **more: str) -> RequestHead:
    method, version = more.pop("method", "POST"), more.pop("version", "1.1")
    path, _, query = path.partition("?")
    headers = [("Content-Type", content_type)] if content_type else []
    headers += [("Accept", accept)] if accept else []
    headers += [(name.replace("_", "-"), value) for name, value in more.items()]
    return RequestHead(method, path, query, version, headers)


def _out(payload: bytes, media_type: str = "application/json", index: int = 0, **headers: str) -> Emitted:
    return Emitted("http", index, Message(payload, headers or EMPTY, media_type))


def _over(error: InvocationError | None = None) -> Finished:
    return Finished("http", error)


def _cut(body: bytes, turn: int) -> list[bytes]:
    """The body at once, in two, or in small pieces, by turns."""
    size = (len(body) or 1, len(body) // 2 or 1, 7)[turn % 3]
    return [body[at : at + size] for at in range(0, len(body), size)]


def _by_body(requests: Requests) -> Iterator[tuple[str, Scenario]]:
    answers = ([_out(b"1"), _over()], [_out(b"1"), _out(b"2", index=0), OutputEnded("http", 0), _over()])
    for turn, (path, content_type, body) in enumerate(web_tables.BODIES):
        accept = web_tables.TURNS[turn % len(web_tables.TURNS)]
        name = f"body {turn}: {path} {content_type or 'no type'} {accept}"
        yield name, requests.scenario(_head(path, content_type, accept), _cut(body, turn), answers[turn % 2])


def _by_head(requests: Requests) -> Iterator[tuple[str, Scenario]]:
    for turn, (path, headers) in enumerate(web_tables.HEADS):
        yield f"head {turn}: {path}", requests.scenario(_head(path, **headers), [b"1"], [_out(b"1"), _over()])


def _by_answer(requests: Requests) -> Iterator[tuple[str, Scenario]]:
    """Each course with each way of answering, and each error with two of them, by turns."""
    ways = web_tables.ANSWERS
    for turn, (name, given) in enumerate(web_tables.COURSES.items()):
        for path, accept in ways if turn == 0 else ways[turn % 3 :: 3]:
            acts = [*_acts(given), _over()]
            yield f"answer: {path} {accept}: {name}", requests.scenario(_head(path, JSON, accept), [b"1"], acts)
    for turn, error in enumerate(web_tables.ERRORS):
        for begins in ([], [_out(b"1")]):
            for path, accept in (ways[turn % len(ways)], ways[(turn + 3) % len(ways)]):
                name = f"{path} {accept}: {len(begins)} values, then {turn} {error.status.name}"
                acts = [*begins, _over(error)]
                yield f"ending: {name}", requests.scenario(_head(path, JSON, accept), [b"1"], acts)


def _acts(given: Iterable[Any]) -> Iterator[Any]:
    for one in given:
        yield (
            Elapsed() if one == "time" else OutputEnded("http", 0) if one == "end" else _out(*one[:3], **dict(one[3:]))
        )


def _misused(requests: Requests) -> dict[str, Scenario]:
    head = _head("/square", "application/json")
    lines = _head("/scale", "application/x-ndjson", "application/x-ndjson")

    def refusing(trace: Trace) -> None:
        """What a transport says in the words of a session."""
        for error in web_tables.ERRORS:
            session = HttpSession(requests._signature, max_body_bytes=_LIMIT)
            session.receive(lines)
            stream = StreamSession(session.asked, most_bytes=_LIMIT)
            stream.receive(lines)
            trace.write(f"refusal {trace.shown(session.refusal(error))} or {trace.shown(stream.refusal(error))}")
            stream.deliver(_out(b"1"))
            trace.write(f"farewell {trace.shown(stream.farewell(error))}")

    orders: dict[str, list[Any]] = {
        "a chunk first": [BodyChunk(b"")], "no head": [HALF_CLOSE], "two heads": [head, head],
        "closed early": [head, BodyChunk(b"1"), HALF_CLOSE, HALF_CLOSE, BodyChunk(b""), _over()],
    }  # fmt: skip
    made: dict[str, Scenario] = {"refusals of the transport": refusing}
    for name, acts in orders.items():
        made[f"order: {name}"] = _plain(requests, acts)
    return made


def _plain(requests: Requests, acts: list[Any]) -> Scenario:
    def scenario(trace: Trace) -> None:
        play(trace.session(HttpSession(requests._signature, max_body_bytes=_LIMIT)), acts)

    return scenario
