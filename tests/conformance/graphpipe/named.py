"""The models of the peer: what `docs/reference/conformance.md` says of each, on bare tensors."""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from invoker_conformance.graphpipe.tensors import FLOAT32, FLOAT64, INT64, STRING, Tensor, floats, numbers, strings
from tests.conformance.graphpipe.flat import Refused

FUNCTION, CONFIG, OUTPUT = 14, 17, 18


@dataclass(frozen=True)
class Port:
    """An input or an output."""

    name: str
    type: int = 0
    shape: tuple[int, ...] | None = None
    default: Tensor | None = None


@dataclass(frozen=True)
class Model:
    """A model: ``body(run, **tensors)`` yields pairs of an output's index and a tensor."""

    body: Callable[..., AsyncIterator[tuple[int, Tensor]]]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...] = (Port("output0"),)
    about: str = ""
    batch_max: int = 1
    is_by_row: bool = False


@dataclass
class Run:
    """What a body is told beside its tensors."""

    has: Callable[[str], bool]
    marks: Counter[str]
    config: bytes
    wanted: set[str]
    headers: Mapping[str, str]
    kept: list[Any]

    @contextmanager
    def marked(self, name: str) -> Any:
        """Count how a body ends."""
        self.marks[f"{name}.calls"] += 1
        try:
            yield
            self.marks[f"{name}.completed"] += 1
        finally:
            self.marks[f"{name}.closed"] += 1


async def mirror(run: Run, x: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """The tensor."""
    with run.marked("mirror"):
        yield 0, x


async def marks(run: Run, key: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """A count."""
    yield 0, numbers(INT64, (), (run.marks[key.strings[0].decode()],))


async def triples(run: Run, values: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """The rows."""
    yield 0, values


async def arithmetic(run: Run, left: Tensor, right: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """Sum, difference, product."""
    if left.shape != right.shape:
        raise Refused(9, "sizes differ")
    pairs = list(zip(left.values, right.values, strict=True))
    every = {"sum": [a + b for a, b in pairs], "difference": [a - b for a, b in pairs]}
    every["product"] = [a * b for a, b in pairs]
    for index, (name, values) in enumerate(every.items()):
        if name in run.wanted or run.has("computes all"):
            run.marks[f"arithmetic.{name}"] += 1
            yield index, floats(*values)


async def scaled(run: Run, x: Tensor, by: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """Times a number."""
    yield 0, floats(*(value * by.values[0] for value in x.values))


async def constant(run: Run) -> AsyncIterator[tuple[int, Tensor]]:
    """1, 2, 3."""
    yield 0, floats(1, 2, 3)


async def heard(run: Run, name: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """A header."""
    yield 0, strings(_header(run, name.strings[0].decode()).encode(), shape=())


def _header(run: Run, name: str) -> str:
    return "" if run.has("hides headers") else run.headers.get(name, "")


async def spoken(run: Run) -> AsyncIterator[tuple[int, Tensor]]:
    """The config."""
    raw = run.config
    yield 0, strings(raw.decode(errors="replace").encode() if run.has("takes configs for text") else raw, shape=())


async def word(run: Run) -> AsyncIterator[tuple[int, Tensor]]:
    """A word of the config."""
    try:
        said = json.loads(run.config.decode(), parse_constant=_refuse) if run.config else {}
        if not isinstance(said, dict):
            raise TypeError("no object")
    except (ValueError, TypeError, RecursionError) as error:
        if run.has("takes any config for JSON"):
            said = {}
        else:
            raise Refused(CONFIG, f"no JSON: {error}") from None
    yield 0, strings(str(said.get("word", "")).encode(), shape=())


def _refuse(name: str) -> None:
    raise ValueError(name)


async def promised(run: Run, kind: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """Two rows and two columns, or not."""
    kinds = {
        b"right": floats(1, 0, 0, 1, shape=(2, 2)),
        b"type": numbers(FLOAT64, (2, 2), (1, 0, 0, 1)),
        b"rank": floats(1, 1),
        b"size": floats(*[1] * 6, shape=(2, 3)),
    }
    yield 0, kinds[kind.strings[0]]


async def chunks(run: Run, count: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """So many rows."""
    for number in range(int(count.values[0])):
        yield 0, floats(number, 10 * number, shape=(1, 2))


async def fixed(run: Run, count: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """So many pairs."""
    with run.marked("fixed"):
        number = 0
        while number != count.values[0]:
            yield 0, floats(number, number)
            number += 1


async def doubled(run: Run, pair: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """A row times two."""
    yield 0, floats(*(2 * value for value in pair.values))


async def dropping(run: Run, pair: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """A row, or none."""
    if pair.values[0] > 0:
        yield 0, pair


async def collapse(run: Run, wanted: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """Raise."""
    raise ValueError(wanted.strings[0].decode())
    yield


async def delay(run: Run, seconds: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """Wait."""
    with run.marked("delay"):
        await asyncio.sleep(seconds.values[0])
    yield 0, seconds


async def joined(run: Run, pairs: Tensor) -> AsyncIterator[tuple[int, Tensor]]:
    """Rows, counted."""
    firsts = pairs.values[::2]
    if any(map(math.isnan, firsts)):
        raise ValueError("a NaN")
    yield 0, floats(*(each for first in firsts for each in (first, len(firsts))), shape=(len(firsts), 2))


TEXT, WHOLE, TWO = Port("kind", STRING), Port("count", INT64), (-1, 2)
VECTOR = Port("x", FLOAT32, (-1,))
_THREE = tuple(Port(name, FLOAT32, (-1,)) for name in ("sum", "difference", "product"))

MODELS: dict[str, Model] = {
    "mirror": Model(mirror, (Port("x"),)),
    "marks": Model(marks, (Port("key", STRING),)),
    "triples": Model(
        triples, (Port("values", FLOAT32, (-1, 3)),), (Port("output0", FLOAT32, (-1, 3)),), "The rows themselves."
    ),
    "arithmetic": Model(arithmetic, (Port("left", FLOAT32, (-1,)), Port("right", FLOAT32, (-1,))), _THREE),
    "scaled": Model(scaled, (VECTOR, Port("by", FLOAT64, default=numbers(FLOAT64, (), (2,))))),
    "constant": Model(constant, ()),
    "heard": Model(heard, (Port("name", STRING),)),
    "spoken": Model(spoken, ()),
    "word": Model(word, ()),
    "promised": Model(promised, (TEXT,), (Port("output0", FLOAT32, (2, 2)),)),
    "chunks": Model(chunks, (WHOLE,), (Port("output0", FLOAT32, TWO),)),
    "fixed": Model(fixed, (WHOLE,), (Port("output0", FLOAT32, (2,)),)),
    "doubled": Model(doubled, (Port("pair", FLOAT32, TWO),), (Port("output0", FLOAT32, TWO),), is_by_row=True),
    "dropping": Model(dropping, (Port("pair", FLOAT32, TWO),), (Port("output0", FLOAT32, TWO),), is_by_row=True),
    "collapse": Model(collapse, (Port("wanted", STRING),)),
    "delay": Model(delay, (Port("seconds", FLOAT64),)),
    "joined": Model(joined, (Port("pairs", FLOAT32, TWO),), (Port("output0", FLOAT32, TWO),), batch_max=3),
}
