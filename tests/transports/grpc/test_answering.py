"""A call that needs no reactor cannot be told from one that has a reactor, whatever it brings and however it comes."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from invoker import function
from invoker._pb.riff import riff_rpc_pb2 as pb
from tests.protocols.web.service.alike import as_async
from tests.protocols.web.service.alike_functions import ASYNC, ERRORS, FUNCTIONS, SYNC
from tests.protocols.web.service.test_unary_alike import ACCEPTS, BODIES, TYPES
from tests.transports.grpc.alike import TOOL, Sent, Two, riff, tool, two
from tests.transports.riff import data, start

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning"),
]

VALUES: list[Any] = [
    *(None, True, 0, 3, 13, -1, 400, 2.5, "a", "red", "", "text/html", b"raw", [1, 2], [], {"x": 1, "y": 2.0}, {"a": 1})
]
NO_INPUT, TWO_INPUTS = ("nobody",), ("add",)
CANCELS = ("cancels_itself", "swallows")
"""What such a function cancels depends on when the half-close comes."""


async def other(x: int) -> int:
    return x


def big(x: int) -> str:
    return "é" * x


@function(timeout_s=30)
def limited(x: int) -> int:
    return x


def served(*, is_async: bool) -> list[Callable[..., Any]]:
    """The functions; `generator` is refused at the start."""
    values = [one for one in (*FUNCTIONS, big) if one.__name__ != "generator"]
    return [*map(as_async, values), *ASYNC] if is_async else [*values, *SYNC, limited, other]


@pytest.fixture(params=["lending", "uvloop"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(params=[False, True], ids=["sync", "async"])
def is_async(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def both(kind: str, is_async: bool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Two]:
    monkeypatch.setattr("invoker.transports.grpc.answering.PARK_S", 0.02)  # on a busy machine frames come one by one
    monkeypatch.setattr("invoker.transports.grpc.unarycall.ArrivalStats.pays", lambda _: True)
    with two(kind, *served(is_async=is_async)) as made:
        yield made


def whole(chance: random.Random, name: str, body: bytes) -> Sent:
    """A call of riff that has all that its function needs."""
    bodies = () if name in NO_INPUT else (b"3", body) if name in TWO_INPUTS else (body,)
    return riff(name, *bodies, media_type="application/json" if chance.random() < 0.8 else chance.choice(TYPES))


def called(chance: random.Random, name: str) -> Sent:
    """A tool call with any arguments."""
    args = [chance.choice(VALUES) for _ in range(chance.choice([1] * 8 + [0, 2]))]
    return tool(name, *args, timeout_ms=chance.choice([0, 0, 30_000]))


def typed(chance: random.Random, both: Two) -> Sent:
    """A call of a typed method with any message that it has."""
    while True:
        name = chance.choice(list(both.unary.typed))
        page = both.unary.pages[name]
        for _ in range(4):
            values = {one.name: chance.choice(VALUES) for one in page.request.DESCRIPTOR.fields}
            try:
                return Sent([page.request(**values).SerializeToString()], path=both.unary.typed[name].path)
            except (TypeError, ValueError, AttributeError):  # protobuf 6 says the last of a number in place of a time
                continue


def apart(chance: random.Random, sent: Sent) -> Sent:
    """The same call, whose bytes come in several packets."""
    size = len(b"".join(sent.packets(1)))
    cut = tuple(sorted(chance.randrange(1, size) for _ in range(chance.choice([0, 1, 2, 6]))))
    return replace(sent, cut=cut, pause_s=chance.choice([0, 0, 0.0005, 0.005]), is_late=chance.random() < 0.3)


def test_a_whole_call_is_answered_and_told_of_as_by_a_reactor(both: Two, is_async: bool) -> None:
    """Whatever it brings: frames, status and trailers, lines of the log, entries of the list, and counters."""
    chance = random.Random(1)
    for name in (one.__name__ for one in served(is_async=is_async)):
        for body in chance.sample(BODIES, 4):
            both.same(whole(chance, name, body))
        if name not in TWO_INPUTS:
            both.same(called(chance, name))
    for one in ERRORS:
        both.same(riff("raises", json.dumps(one).encode()))
        both.same(tool("raises", one))
    for _ in range(60):
        both.same(typed(chance, both))
    both.finish()


def test_a_call_may_come_in_any_packets(both: Two, is_async: bool) -> None:
    """All at once, frame by frame or byte by byte, with pauses, and with a half-close that comes late."""
    chance = random.Random(2)
    names = [one.__name__ for one in served(is_async=is_async) if one.__name__ not in CANCELS]
    for _ in range(200):
        name = chance.choice(names)
        how = chance.random()
        if how < 0.6 or name in TWO_INPUTS:
            sent = whole(chance, name, chance.choice(BODIES))
        else:
            sent = called(chance, name) if how < 0.8 else typed(chance, both)
        both.same(apart(chance, sent))
    sent = riff("number", b"3")
    size = len(b"".join(sent.packets(1)))
    for at in range(150, size):
        both.same(replace(sent, cut=(at,)))
    both.finish()


def signals(accepts: tuple[str, ...] = ("*/*",), **names: Any) -> bytes:
    return pb.InputSignal(start=pb.StartFrame(expectedContentTypes=accepts, **names)).SerializeToString()


def named(name: str, *frames: bytes) -> Sent:
    return Sent(frames, metadata=(("invoker-function", name),))


def wrong(both: Two) -> Iterator[Sent]:
    """Calls that break a rule, and calls that ask for less than the function gives or for more."""
    value = data(b"3")
    for frames in (
        *([], [b""], [b"\xff\xff"], [value], [start()], [start(), start()], [start(), b"\xff"], [start(), b""]),
        *([start(), data(b"3", 1)], [start(), data(b"3", -1)], [signals(()), value], [signals(("*/*", "*/*")), value]),
        *([signals(inputNames=["x"]), value], [signals(inputNames=["nope"]), value]),
        *([signals(inputNames=["x", "x"]), value], [signals(outputNames=["a"]), value]),
        *([signals(outputNames=["a", "b"]), value], *([signals((one,)), value] for one in ACCEPTS)),
    ):
        yield named("number", *frames)
        yield named("raises", *frames)
    yield named("add", start(), value)
    yield named("add", start(), data(b"3", 1))
    yield named("nope", start(), value)
    yield riff("number", b"3", media_type="application/x-doom")
    yield riff("number", b"3", b"4", b"5")
    yield riff("number", *[b"3"] * 100)
    for frames in ([], [b"\xff\xff"], [b""]):
        yield Sent(frames, path=TOOL)
    yield tool("nope", 3)
    yield tool("number", 3, session_id="nope")
    yield tool("number", 3, timeout_ms=-1)
    yield replace(tool("number", 3), frames=tool("number", 3).frames * 2)
    for frames in ([], [b"\xff\xff"], [b""], [b"\x08\x03"] * 2):
        yield Sent(frames, path=both.unary.typed["number"].path)


def test_a_call_that_breaks_a_rule_is_refused_as_by_a_reactor(both: Two) -> None:
    """Also one that is no unary call, and one whose request id is repeated in the headers."""
    for sent in wrong(both):
        both.same(sent)
        both.same(replace(sent, metadata=(*sent.metadata, ("x-request-id", "abc"))))


@pytest.mark.parametrize("size", [10, 40_000, 600_000, 3_000_000])
def test_a_value_of_any_size_is_sent(both: Two, size: int) -> None:
    """A tool refuses one that its host could not receive, although its function has returned it."""
    assert len(both.same(riff("big", b"%d" % size)).body) > 2 * size
    assert both.same(riff("big", b"%d" % size, metadata=(("grpc-timeout", "60S"),))).status == 0
    answer = both.same(tool("big", size))
    assert (b"result_too_large" in answer.body) == (size >= 600_000)
    request = both.unary.pages["big"].request(**{both.unary.pages["big"].request.DESCRIPTOR.fields[0].name: size})
    assert both.same(Sent([request.SerializeToString()], path=both.unary.typed["big"].path)).status == 0
    sent = min(size, 40_000)  # more does not fit into the window of a new connection
    assert both.same(riff("text", b'"%b"' % (b"x" * sent))).status == 0
    assert b"x" * sent in both.same(tool("text", "x" * sent)).body
