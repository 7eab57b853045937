"""The models of the GraphPipe chapters without async ones, so that each inference runs in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from functions import conformance_graphpipe
from functions.conformance import _mark, _marked
from functions.conformance_graphpipe import Pairs, Vector
from invoker import Context, Tensor, function
from invoker.author.decorator import options_of
from tests import sync_catalogue

globals().update({name: value for name, value in vars(conformance_graphpipe).items() if options_of(value) is not None})
delay = sync_catalogue.delay


@function(outputs=dict.fromkeys(("sum", "difference", "product"), Tensor("float32", ["n"])))
def arithmetic(left: Vector, right: Vector, context: Context) -> None:
    """Sum, difference and product, each only if it is wanted."""
    for name, value in (("sum", left + right), ("difference", left - right), ("product", left * right)):
        if context.wants(name):
            _mark(f"arithmetic.{name}")
            context.outputs[name].send(value)


@function
def chunks(count: int) -> Iterator[Pairs]:
    """So many tensors of one row each: the number of the row, and ten times it."""
    for number in range(count):
        yield np.float32([[number, 10 * number]])


@function
def mirror(x: np.ndarray) -> Iterator[np.ndarray]:
    """The tensor itself, whatever it is, from a generator."""
    with _marked("mirror"):
        yield x


@function(batch_max=3, batch_wait_ms=1000)
def joined(pairs: Pairs) -> Pairs:
    """The first number of each row beside the number of rows of this call; NaN raises."""
    if np.isnan(pairs).any():
        raise ValueError("there is a NaN")
    return np.stack([pairs[:, 0], np.full(len(pairs), len(pairs), np.float32)], 1)
