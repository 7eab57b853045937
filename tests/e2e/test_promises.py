"""What a function gives is what it says, over every protocol and in the harness."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, NamedTuple

import httpx
import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import Context, Message, Output, function
from invoker.client import CallFailed, EvergreenSession, GraphPipe, GraphPipeError, RiffClient
from invoker.errors import EncodeError
from invoker.tensors import Code
from invoker.testing import Harness
from tests.serving import serving


class Row(NamedTuple):
    x: int


class Split(NamedTuple):
    even: Iterator[int]
    odd: Iterator[int]


class Halves(NamedTuple):
    low: NDArray[np.float32]
    high: NDArray[np.float32]


def lying(x: int) -> int:
    return f"{x}"  # type: ignore[return-value]


def bare(x: int):  # type: ignore[no-untyped-def]
    return None if x else "text"


def sink(x: int) -> None:
    return x  # type: ignore[return-value]


def maybe(x: int) -> int | None:
    return x or None


def messages(x: int) -> Message[int] | None:
    return Message(x) if x else None


def wrong_message(x: int) -> Message[int]:
    return Message("x")  # type: ignore[arg-type]


def encoded(x: int) -> Message[dict[str, int]]:
    return Message(b'{"x": 1}', media_type="application/json")  # type: ignore[arg-type]


def streamed(xs: Iterator[int]) -> Iterator[int]:
    yield from xs
    yield "x"  # type: ignore[misc]


async def streamed_async(xs: AsyncIterator[int]) -> AsyncIterator[int]:
    async for x in xs:
        yield x
    yield "x"  # type: ignore[misc]


def split(xs: Iterator[int]) -> Split:
    return Split(iter([1, 2]), iter(["x"]))  # type: ignore[list-item]


def addressed(x: int) -> Iterator[int | Output]:
    yield Output(0, "any")
    yield x


@function(outputs=("answer", "log"))
def sends(x: int, ctx: Context) -> None:
    ctx.outputs["log"].send("any")
    ctx.outputs["answer"].send(x)


@function(outputs=("y",))
def named(x: int) -> float:
    return np.float32(x)  # type: ignore[return-value]


def halves(x: int) -> Halves:
    return (np.float32([x]), np.float32([x]))  # type: ignore[return-value]


def halves_by_name(x: int) -> Halves:
    return {"low": np.float32([x]), "high": np.float32([x])}  # type: ignore[return-value]


def table(x: int) -> Annotated[NDArray[np.float32], ("batch", 3)]:
    return np.ones((x, 2), np.float32)


@pytest.mark.parametrize(
    ("fn", "given"),
    [
        (bare, [None]), (maybe, [None]), (messages, [None]), (addressed, ["any", 1]), (named, [1.0]),
        (halves, [[[1.0], [1.0]]]), (halves_by_name, [{"low": [1.0], "high": [1.0]}]), (encoded, [{"x": 1}]),
    ],
)  # fmt: skip
def test_what_is_declared_or_not_said_passes(fn: Any, given: list[Any]) -> None:
    """R-042 stands for a function without a return annotation; Message, Output and parts are looked through."""
    value = [0] if fn in (maybe, messages) else [1]
    assert Harness(fn).run(value, accept="application/json") == given


@pytest.mark.parametrize(
    ("fn", "text"),
    [
        (lying, "output #0 'out' is declared int, and the function gave str"),
        (sink, "output #0 'out' is declared None, and the function gave int"),
        (wrong_message, "output #0 'out' is declared int, and the function gave str"),
        (streamed, "output #0 'out' is declared int, and the function gave str"),
        (streamed_async, "output #0 'out' is declared int, and the function gave str"),
        (table, "output #0 'out': it has the shape [1, 2], and [batch, 3] is declared"),
    ],
)
def test_what_is_not_declared_fails_in_the_harness(fn: Any, text: str) -> None:
    """As it does in a server, unless the check is off."""
    with pytest.raises(EncodeError) as caught:
        Harness(fn).run([1], accept="application/json")
    assert caught.value.detail == text
    assert Harness(fn, check_outputs=False).invoke([1], accept="application/json").error is None


def test_each_of_several_outputs_has_its_own_type() -> None:
    """The error names the one that is wrong; outputs that are only named take anything."""
    error = Harness(split).invoke([1]).error
    assert error is not None
    assert error.detail == "output #1 'odd' is declared int, and the function gave str"
    assert Harness(sends).invoke([1]).error is None


async def test_R117_every_protocol_says_so() -> None:
    """riff on both drivers, HTTP, Evergreen and GraphPipe refuse a shape that is not declared, in the same words."""
    told = "it has the shape [1, 2], and [batch, 3] is declared"
    for driver in ("fast", "aio"):
        with serving(f"{__name__}:table", "--grpc-driver", driver) as served:
            async with RiffClient(served.grpc) as riff:
                with pytest.raises(CallFailed) as caught:
                    await riff.invoke([[1]]).value()
                assert told in str(caught.value)
            async with EvergreenSession(served.grpc) as session:
                with pytest.raises(CallFailed) as caught:
                    await session.act("table", {"x": 1}).value()
                assert told in str(caught.value)
            async with httpx.AsyncClient() as client:
                answer = await client.post(f"http://{served.http}", json=1)
            assert (answer.status_code, told in answer.text) == (500, True)
            with GraphPipe(f"http://{served.http}/graphpipe") as remote, pytest.raises(GraphPipeError) as refused:
                remote.infer(np.int64(1))
            assert (refused.value.code, told in refused.value.detail) == (Code.BAD_OUTPUT, True)


def test_a_setting_turns_it_off() -> None:
    """What a function gives is then sent as it is; else the caller is told what is wrong with it."""
    with serving(f"{__name__}:lying", "--no-check-outputs") as served:
        answer = httpx.post(f"http://{served.http}", json=1, headers={"Accept": "application/json"})
        assert (answer.status_code, answer.json()) == (200, "1")
    with serving(f"{__name__}:lying") as served:
        answer = httpx.post(f"http://{served.http}", json=1, headers={"Accept": "application/json"})
        assert answer.status_code == 500
        assert "output #0 'out' is declared int, and the function gave str" in answer.text
