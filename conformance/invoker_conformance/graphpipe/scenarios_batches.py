"""Requests that are joined into one call: docs/reference/graphpipe.md 2.5.

The function ``joined`` takes up to three rows. For each row it returns the first number, and the number of rows of its
call, which shows whether requests were joined.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

from invoker_conformance.graphpipe.asker import Asker
from invoker_conformance.graphpipe.requests import Request, infer
from invoker_conformance.graphpipe.tensors import Tensor, floats
from invoker_conformance.http import Answer
from invoker_conformance.scenario import Failure, NotProvided, scenario


async def at_once(asker: Asker, requests: Sequence[Request]) -> list[Answer]:
    """Send requests at the same time, each on its own connection, and return the answers."""
    return list(await asyncio.gather(*(asker.ask(request) for request in requests)))


def row(number: float, *, config: bytes | None = None, outputs: Sequence[str] = ()) -> Request:
    """Make a request of one row."""
    return infer(floats(number, 0, shape=(1, 2)), config=config, outputs=outputs)


def counted(asker: Asker, answer: Answer, number: float) -> int:
    """Check the answer to a row, and return the number of rows of its call."""
    found = asker.checked(answer)
    if len(found.tensors) != 1 or found.tensors[0].shape != (1, 2) or found.tensors[0].values[0] != number:
        raise Failure(str(found), f"Float32[1, 2] that begins with {number:g}", answer.sent)
    return int(found.tensors[0].values[1])


@scenario("GT-52", "G-076", function="joined")
async def rows_are_joined(asker: Asker) -> None:
    """Three requests of a row each are one call of three rows, and each gets its own row back."""
    answers = await at_once(asker, [row(number) for number in (1, 2, 3)])
    counts = [counted(asker, answer, number) for answer, number in zip(answers, (1, 2, 3), strict=True)]
    if counts == [1, 1, 1]:
        raise NotProvided("joining of requests")
    if counts != [3, 3, 3]:
        raise Failure(f"calls of {counts} rows", "one call of three rows", answers[0].sent)


@scenario("GT-52", "G-076", "G-101", function="joined")
async def errors_stay_apart(asker: Asker) -> None:
    """An error of one request of a batch, before or in the function, is the answer to that request alone."""
    wide: Tensor = floats(2, 2, 2, shape=(1, 3))
    answers = await at_once(asker, [row(1), infer(wide), row(3)])
    asker.has_error(answers[1], 9)
    for answer, number in ((answers[0], 1), (answers[2], 3)):
        counted(asker, answer, number)
    answers = await at_once(asker, [row(1), row(math.nan), row(3)])
    asker.has_error(answers[1], 14)
    for answer, number in ((answers[0], 1), (answers[2], 3)):
        counted(asker, answer, number)


@scenario("GT-52", "G-077", function="joined")
async def what_is_not_joined(asker: Asker) -> None:
    """Requests with other configs, or other outputs, are calls of their own."""
    requests = [row(1, config=b"a"), row(2, config=b"b"), row(3, outputs=("output0", "output0"))]
    answers = await at_once(asker, requests)
    for answer, number in zip(answers[:2], (1, 2), strict=True):
        if (rows := counted(asker, answer, number)) != 1:
            raise Failure(f"a call of {rows} rows", "a call of its own, since the config is another", answer.sent)
    asker.has_tensors(answers[2], *[floats(3, 1, shape=(1, 2))] * 2)


@scenario("G-076", function="joined")
async def larger_than_a_batch(asker: Asker) -> None:
    """A request with more rows than a batch may have is a call of its own."""
    await asker.gives(infer(floats(*range(8), shape=(4, 2))), floats(0, 4, 2, 4, 4, 4, 6, 4, shape=(4, 2)))
