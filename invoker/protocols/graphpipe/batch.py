"""Batches: compatible requests are joined along the first index, and the outputs are split again.

Requests are compatible if they have the same inputs with the same types and sizes except the first size, the same
outputs and the same config (G-077). If a batch fails, each request runs alone, since the error does not show which
request caused it (G-076).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate

from invoker.protocols.graphpipe.answer import Answer, Reply, response_of
from invoker.protocols.graphpipe.binding import GivenInput
from invoker.protocols.graphpipe.rows import joined, span
from invoker.tensors import Code, GraphPipeError, Tensor, write_infer_response


def alike(given: Sequence[GivenInput], wanted: Sequence[int], config: bytes) -> Hashable | None:
    """A key that is equal for compatible requests; None for a request that cannot be joined."""
    sizes = {one.tensor.shape[:1] for one in given}
    if len(sizes) != 1 or sizes & {(), (0,)}:
        return None
    inputs = tuple((one.port.own, one.tensor.type, one.tensor.shape[1:]) for one in given)
    return (inputs, tuple(wanted), config)


def count_of_batch(given: Sequence[GivenInput]) -> int:
    """The number of rows of a request that can be joined."""
    return given[0].tensor.shape[0]


def merged(several: Sequence[Sequence[GivenInput]]) -> tuple[GivenInput, ...]:
    """The inputs of compatible requests, joined one after the other."""
    return tuple(
        GivenInput(inputs[0].port, joined([one.tensor for one in inputs], f"input '{inputs[0].port.name}'"))
        for inputs in zip(*several, strict=True)
    )


def parted(answer: Answer, counts: Sequence[int]) -> list[Reply]:
    """Split the answer to a batch into one response for each request.

    Args:
        answer: The answer to the batch.
        counts: The number of rows of each request, in order.

    Raises:
        GraphPipeError: An output is not a tensor, or has another number of rows than the inputs (E18).
    """
    outputs = answer.tensors()
    tensors = [tensor for _, tensor in outputs]
    total = sum(counts)
    for port, tensor in outputs:
        if tensor.shape[:1] != (total,):
            detail = f"output '{port.name}' has the shape {list(tensor.shape)}, and the batch has {total} rows"
            raise GraphPipeError(Code.BAD_OUTPUT, detail)
    ends = accumulate(counts)
    return [_part(tensors, end - count, end) for count, end in zip(counts, ends, strict=True)]


def _part(tensors: Sequence[Tensor], start: int, end: int) -> Reply:
    parts = {id(one): span(one, start, end) for one in tensors}  # G-057: a request may name an output several times
    return response_of(write_infer_response([parts[id(one)] for one in tensors]))
