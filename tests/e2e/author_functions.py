"""Models as authors may write them: in parts, without annotations, with wanted names, with casting."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from invoker import Message, Tensor, function
from invoker.protocols import graphpipe

Rows = Annotated[NDArray[np.float32], ("batch", 3), "one row a sample"]
Sums = Annotated[NDArray[np.float32], ("batch",)]
Best = Annotated[NDArray[np.int64], ("batch",), "where the largest is"]


class Found(NamedTuple):
    """What is found, by position."""

    sums: Sums
    best: Best


class Named(TypedDict):
    """The same, by name."""

    sums: Sums
    best: NotRequired[Best]


class Alone(TypedDict):
    """One output that has a name."""

    sums: Sums


asked: list[Any] = []
"""The names of wanted outputs that functions were given."""


def split(x: Rows) -> tuple[Sums, Best]:
    """A tuple of arrays is two outputs."""
    return x.sum(1), x.argmax(1)


@function
def found(x: Rows) -> Found:
    """A NamedTuple names them."""
    return Found(x.sum(1), x.argmax(1))


def named(x: Rows) -> Named:
    """So does a TypedDict."""
    return {"best": x.argmax(1), "sums": x.sum(1)}


def alone(x: Rows) -> Alone:
    """A dict of one."""
    return {"sums": x.sum(1)}


def mixed(x: Rows) -> tuple[Sums, int, str]:
    """Beside an array, plain values are outputs, too."""
    return x.sum(1), len(x), "three"


async def later(x: Rows) -> Found:
    """Async."""
    return Found(x.sum(1), x.argmax(1))


@function
def streamed(xs: Iterator[Rows]) -> Iterator[Found]:
    """A generator of several outputs."""
    for x in xs:
        yield Found(x.sum(1), x.argmax(1))


def gathered(xs: Iterator[Rows]) -> Found:
    """One value of all that come."""
    x = np.concatenate(list(xs))
    return Found(x.sum(1), x.argmax(1))


@function(concurrency=3)
async def overlapping(x: Rows) -> Found:
    """Calls may overlap."""
    return Found(x.sum(1), x.argmax(1))


def messages(x: Rows) -> tuple[Message[Sums], Best]:
    """A part may be a whole message."""
    return Message(x.sum(1), headers={"X-Part": "sums"}), x.argmax(1)


async def astreamed(xs: AsyncIterator[Rows]) -> AsyncIterator[Found]:
    """An async one."""
    async for x in xs:
        yield Found(x.sum(1), x.argmax(1))


@function(options=[graphpipe.Rows()])
def by_row(xs: Iterator[NDArray[np.float32]]) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int64]]]:
    """Row by row."""
    for x in xs:
        yield x.sum(), x.argmax()


@function(outputs=("sums", "best"))
def said(x, is_dict=0):  # type: ignore[no-untyped-def]  # as authors write who annotate nothing
    """The decorator says what there is."""
    if is_dict:
        return {"best": x.argmax(1), "sums": x.sum(1)}
    return x.sum(1), x.argmax(1)


@function(outputs=("sums", "best"))
def some(x: Rows, output_names: Sequence[str]) -> Any:
    """A tuple of what is wanted."""
    asked.append(output_names)
    made = {"sums": lambda: x.sum(1), "best": lambda: x.argmax(1)}
    return tuple(made[name]() for name in output_names)


@function
def some_named(x: Rows, output_names: list[str] | None = None) -> Named:
    """A dict of what is wanted."""
    asked.append(output_names)
    made = {"sums": lambda: x.sum(1), "best": lambda: x.argmax(1)}
    return {name: made[name]() for name in output_names or ()}  # type: ignore[return-value]  # its keys are those


@function(outputs=("sums", "best"))
def bare(x: Rows, *, output_names: tuple[str, ...]) -> Any:
    """The one that is wanted, without a tuple around it."""
    asked.append(output_names)
    return x.sum(1) if output_names == ("sums",) else x.argmax(1)


@function(inputs=("x", "output_names"))
def is_input(x: Rows, output_names: list[str]) -> list[str]:
    """Its author says that it is an input."""
    return output_names


@function(batch_max=4, batch_wait_ms=10_000)
def batched(x: Rows) -> Found:
    """Requests of the same time are one call."""
    asked.append(len(x))
    return Found(x.sum(1), x.argmax(1))


@function(outputs=("sums", "best"))
def wrong(x: Rows, how: int) -> Any:
    """What is not in parts."""
    sums = x.sum(1)
    return [(sums, sums, sums), sums, {"sums": sums, "worst": sums}, {"best": sums}, None][how]


scaled = function(
    name="scaled",
    inputs={"x": Tensor("float32", ["batch", 3], "one row a sample"), "by": Tensor("float32", [])},
    outputs={"y": Tensor("float32", ["batch", 3])},
)(lambda x, by: x * by)


@function(options=[graphpipe.Casting(inputs="same_kind")])
def casting(x: Rows, n: NDArray[np.int8]) -> Rows:
    """Takes what numpy casts."""
    assert x.dtype == np.float32
    assert n.dtype == np.int8
    return x + n


@function(
    inputs={"x": Tensor("float16")},
    outputs={"y": Tensor("float16")},
    version="1.2",
    options=[graphpipe.Casting(inputs="same_kind")],
)
def half(x):  # type: ignore[no-untyped-def]  # see `said`
    """Without annotations."""
    return x


@function(options=[graphpipe.Casting(outputs="same_kind")])
def promoted(x: Rows) -> Rows:
    """Gives Float64, which becomes Float32."""
    return x * np.float64(2)  # type: ignore[return-value]


@function(options=[graphpipe.Casting(outputs="same_kind")])
def promoted_parts(x: Rows) -> tuple[Rows, NDArray[np.int8]]:
    """Two outputs, each of which is cast."""
    return x.astype("f8"), np.int64([1, 2])  # type: ignore[return-value]


def not_cast(x: Rows) -> Rows:
    """Gives Float64, and says Float32."""
    return x.astype("f8")  # type: ignore[return-value]
