"""The models that the GraphPipe chapters of the conformance suite use. Needs `pip install numpy`.

``python -m invoker functions.conformance_graphpipe`` serves them all. ``docs/reference/conformance.md`` specifies them,
so that they can be written in any language.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from functions import conformance
from functions.conformance import _mark, _marked
from invoker import Context, Tensor, function
from invoker.protocols import graphpipe

Vector = Annotated[NDArray[np.float32], ("n",)]
Triples = Annotated[NDArray[np.float32], ("rows", 3), "three numbers a row"]
Pair = Annotated[NDArray[np.float32], (2,)]
Pairs = Annotated[NDArray[np.float32], ("rows", 2)]
Square = Annotated[NDArray[np.float32], (2, 2)]

SIX = np.arange(6, dtype=np.float32).reshape(2, 3)


@function
def mirror(x: np.ndarray) -> np.ndarray:
    """Return any tensor unchanged."""
    with _marked("mirror"):
        return x


marks = conformance.marks


# --- declared types and shapes


@function
def triples(values: Triples) -> Triples:
    """The rows themselves.

    This second paragraph is no part of the metadata.
    """
    return values


@function(outputs=dict.fromkeys(("sum", "difference", "product"), Tensor("float32", ["n"])))
async def arithmetic(left: Vector, right: Vector, context: Context) -> None:
    """Sum, difference and product, each only if it is requested."""
    for name, value in (("sum", left + right), ("difference", left - right), ("product", left * right)):
        if context.wants(name):
            _mark(f"arithmetic.{name}")
            await context.outputs[name].send(value)


@function
def scaled(x: Vector, by: float = 2.0) -> Vector:
    """The numbers times a factor, by default two."""
    return x * np.float32(by)


@function(options=[graphpipe.Casting(inputs="same_kind")])
def forgiving(x: Vector) -> Vector:
    """Return the numbers, which may be of other types."""
    return x


@function
def constant() -> Vector:
    """Return 1, 2, 3 without input."""
    return np.float32([1, 2, 3])


# --- other shapes of inputs


@function
def shout(word: str) -> str:
    """A text in upper case."""
    return word.upper()


@function
def sums(rows: list[list[float]]) -> list[float]:
    """The sum of each inner list."""
    return [float(sum(row)) for row in rows]


@function
def flags(x: np.ndarray) -> NDArray[np.uint8]:
    """Whether the array is aligned, and whether it is read-only."""
    return np.array([x.flags.aligned, not x.flags.writeable], np.uint8)


@function
def heard(name: str, context: Context) -> str:
    """Return a header of the request; empty if there is none."""
    return context.metadata.get(name, "")


@function
def spoken(context: Context) -> bytes:
    """Return the config unchanged; empty bytes if there is none."""
    return context.config(bytes) or b""


@function
def word(context: Context) -> str:
    """Return the member ``word`` of a config in JSON."""
    return str((context.config(dict) or {}).get("word", ""))


# --- outputs of all kinds


def _layouts() -> dict[str, Any]:
    wide = np.zeros((2, 6), np.float32)
    wide[:, ::2] = SIX
    return {
        "fortran": np.asfortranarray(SIX),
        "transposed": np.ascontiguousarray(SIX.T).T,
        "negative": np.ascontiguousarray(SIX[::-1, ::-1])[::-1, ::-1],
        "strided": wide[:, ::2],
        "big-endian": SIX.astype(">f4"),
        "bool": SIX % 2 == 1,
        "text": np.array([["a", "é"]]),
    }


@function
def layout(kind: str) -> np.ndarray:
    """Return 0 to 5 as two rows of Float32, with the memory layout ``kind``; ``bool`` and ``text`` are other values."""
    return _layouts()[kind]  # type: ignore[no-any-return]  # all values are arrays


@function
def value(kind: str) -> Any:
    """Return a value that is not an array."""
    kinds = {"int": -7, "float": 0.5, "bool": True, "text": "é", "bytes": b"\xff\0", "list": [[1, 2, 3], [4, 5, 6]]}
    return kinds[kind]


@function
def odd(kind: str) -> Any:
    """Return a value that cannot be a tensor."""
    kinds = {
        "complex": np.array([1j]),
        "datetime": np.array(["2026-01-01"], "datetime64[D]"),
        "structured": np.zeros(1, [("a", "<f4"), ("b", "<i4")]),
        "objects": np.array([{}], object),
        "ragged": [[1], [2, 3]],
        "mixed": [1, "a"],
        "nested": [1, [2]],
    }
    return kinds[kind]


@function
def promised(kind: str) -> Square:
    """Return a value of this kind for an output that is declared as Float32 with two rows and two columns."""
    kinds = {
        "right": np.eye(2, dtype=np.float32),
        "type": np.eye(2),
        "rank": np.ones(2, np.float32),
        "size": np.ones((2, 3), np.float32),
    }
    return kinds[kind]


# --- streams


@function
async def chunks(count: int) -> AsyncIterator[Pairs]:
    """Yield ``count`` tensors of one row: the number of the row, and ten times this number."""
    for number in range(count):
        yield np.float32([[number, 10 * number]])


@function
def fixed(count: int) -> Iterator[Pair]:
    """Yield ``count`` tensors, or tensors without end if it is negative; the fixed shape allows only one."""
    with _marked("fixed"):
        number = 0
        while number != count:
            yield np.float32([number, number])
            number += 1


@function(options=[graphpipe.Rows()])
def doubled(pair: Iterator[Pair]) -> Iterator[Pair]:
    """Multiply each row by two."""
    for row in pair:
        yield row * 2


@function(options=[graphpipe.Rows()])
def dropping(pair: Iterator[Pair]) -> Iterator[Pair]:
    """Return only rows that begin with a number above zero."""
    for row in pair:
        if row[0] > 0:
            yield row


# --- endings


@function
def collapse(wanted: str) -> Vector:
    """Raise: SystemExit for ``exit``, otherwise a ValueError with this text."""
    raise SystemExit(3) if wanted == "exit" else ValueError(wanted)


@function
async def delay(seconds: float) -> float:
    """Wait for some seconds."""
    with _marked("delay"):
        await asyncio.sleep(seconds)
    return seconds


# --- batches


@function(batch_max=3, batch_wait_ms=1000)
async def joined(pairs: Pairs) -> Pairs:
    """Return the first number of each row, and the number of rows of this call; raises for NaN."""
    if np.isnan(pairs).any():
        raise ValueError("there is a NaN")
    return np.stack([pairs[:, 0], np.full(len(pairs), len(pairs), np.float32)], 1)
