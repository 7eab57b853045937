"""The caller's id of its request over gRPC is repeated, as over HTTP, whatever the call gives and however it ends."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from invoker.context import Context
from tests.conftest import SLOW
from tests.transports.both_paths import CALLS, functions
from tests.transports.riff import FAST, KINDS, Call, Riff, form

KEY = "x-request-id"
WRONG: dict[str, tuple[str, ...]] = {
    "none": (),
    "empty": ("",),
    "a space": ("a b",),
    "too long": ("x" * 129,),
    "two": ("a", "b"),
    "two alike": ("a", "a"),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def told(call: Call) -> list[str]:
    """The ids in the headers of a response."""
    return [value for key, value in call.rpc.initial_metadata() if key == KEY]


def given(function: str, *ids: str) -> Any:
    return (("invoker-function", function), *((KEY, one) for one in ids))


def called(ctx: Context, xs: Iterator[bytes]) -> bytes:
    return f"{len(list(xs))} {ctx.request_id}".encode()


async def acalled(ctx: Context, x: bytes) -> bytes:
    return f"{len(x)} {ctx.request_id}".encode()


@pytest.mark.timeout(30)
def test_H153_every_call_repeats_the_id(kind: str) -> None:
    """Each form of a function, each ending, those of violations too; the next call without an id gets none."""
    with Riff(kind, *functions(kind)) as riff:
        for number, one in enumerate(CALLS.values()):
            frames = one.frames
            name = f"!{number}~"
            call = riff.raw(*frames, metadata=given(one.function, name), timeout=10 * SLOW).half_close()
            assert told(call) == [name], one
            call.ending()
            call = riff.raw(*frames, metadata=given(one.function), timeout=10 * SLOW).half_close()
            assert told(call) == [], one
            call.ending()


@pytest.mark.parametrize("ids", WRONG.values(), ids=WRONG)
def test_H153_what_is_no_id_is_ignored(kind: str, ids: tuple[str, ...]) -> None:
    """In the headers and in the context; of 128 characters all count."""
    with Riff(kind, form(kind, called, acalled)) as riff:
        name = form(kind, "called", "acalled")
        for sent, answer in ((("y" * 128,), "y" * 128), (ids, ""), (("z",), "z"), (ids, "")):
            call = riff.call(b"q", metadata=given(name, *sent), timeout=10 * SLOW)
            assert call.rest() == [f"1 {answer}".encode()]
            assert told(call) == ([answer] if answer else [])


@pytest.mark.parametrize("waits", [False, True])
def test_H153_a_call_that_is_refused_repeats_it(waits: bool) -> None:
    """Also one for which no thread is left; so does a call that was long before."""
    go = threading.Event()

    def hold(xs: Iterator[bytes]) -> Iterator[bytes]:
        for x in xs:
            if waits:
                go.wait(10 * SLOW)
            yield x

    with Riff("direct", hold, threads=1) as riff:
        held = riff.call(b"x", metadata=given("hold", "first"), timeout=20 * SLOW)
        if not waits:
            assert held.read() == b"x"
        assert told(held) == ["first"]
        for name in ("second", "third"):
            call = riff.call(b"x", metadata=given("hold", name))
            assert call.code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert told(call) == [name]
        go.set()
        assert held.rest() == ([b"x"] if waits else [])


@pytest.mark.parametrize("kind", FAST)
def test_calls_at_once_get_their_own_ids(kind: str) -> None:
    """What is remembered of the metadata of one call is no other's."""
    numbers = itertools.count()
    with Riff(kind, form(kind, called, acalled)) as riff:
        name = form(kind, "called", "acalled")
        for _ in range(10):
            ids = [f"n{next(numbers)}" for _ in range(10)]
            calls = [riff.call(b"q", metadata=given(name, one), timeout=10 * SLOW) for one in ids]
            assert [one.rest() for one in calls] == [[f"1 {one}".encode()] for one in ids]
            assert [told(one) for one in calls] == [[one] for one in ids]
