"""`AnswerPlans`: caches the layouts of answers, so that similar answers need not be laid out again.

An answer consists of tensors from the function's codec; each is decoded, compared with its declaration, and written
into the response. All this depends only on the request and on the types and shapes of the tensors. So if two answers to
requests of one plan differ only in their elements, the responses differ only in these elements, too. Errors are not
cached, so each one is found and reported again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from invoker.codecs.tensor import TENSOR
from invoker.message import Message
from invoker.tensors import LIMIT_BYTES, GraphPipeError, Skeleton, Trace, Written, read_infer_response, read_tensor

Given: TypeAlias = Sequence[Sequence[Message[bytes]]]
"""The messages of the function for each requested output."""

_MOST: Final = 4
_TRIES: Final = 8
_LARGEST: Final = 1 << 16
"""Larger responses, in bytes, are not cached: laying one out takes little compared with copying it."""


class _Layout(msgspec.Struct, frozen=True):
    """The layout of similar answers: the common properties of the tensors, and the response."""

    outputs: tuple[Skeleton, ...]
    # pieces of the response: either bytes, or the index of an output and the position of its elements
    parts: tuple[bytes | tuple[int, int, int], ...]

    def response(self, payloads: Sequence[bytes]) -> bytes | None:
        for one, payload in zip(self.outputs, payloads, strict=True):
            if not one.fits(payload):
                return None
        filled = []
        for part in self.parts:
            if isinstance(part, tuple):
                index, start, end = part
                filled.append(payloads[index][start:end])
            else:
                filled.append(part)
        return b"".join(filled)


class AnswerPlans:
    """The cached layouts of the answers to requests of one plan; only the first few are cached."""

    __slots__ = ("_layouts", "_tries")

    def __init__(self) -> None:
        self._layouts: list[_Layout] = []
        self._tries = 0

    def response(self, given: Given) -> bytes | None:
        """The response for the outputs of a function; None if no similar answer is cached."""
        if not self._layouts or (payloads := _payloads(given)) is None:
            return None
        for one in self._layouts:
            if (found := one.response(payloads)) is not None:
                return found
        return None

    def learn(self, given: Given, written: Written) -> None:
        """Cache the layout of an answer, unless there were too many attempts.

        Args:
            given: The outputs of the function, which were checked.
            written: The response.
        """
        payloads = _payloads(given)
        if self._tries >= _TRIES or len(self._layouts) >= _MOST or payloads is None or written.size > _LARGEST:
            return
        self._tries += 1
        response = bytes(written)
        outputs = [_skeleton_of(one) for one in payloads]
        trace = Trace()
        read_infer_response(response, trace=trace)
        whole = Skeleton.of(response, trace)
        # cannot be cached: for example one tensor for two outputs (G-057)
        if whole is None or len(whole.elements) != len(outputs):
            return
        parts: list[tuple[int, bytes | tuple[int, int, int]]] = list(whole.bones)
        for index, (one, (start, _)) in enumerate(zip(outputs, whole.elements, strict=True)):
            if one is None or len(one.elements) != 1:
                return
            parts.append((start, (index, *one.elements[0])))
        parts.sort(key=lambda part: part[0])
        known = tuple(one for one in outputs if one is not None)
        self._layouts.append(_Layout(known, tuple(part for _, part in parts)))


def _payloads(given: Given) -> list[bytes] | None:
    """The tensor of each output; None if an output has several messages, or one that is not a tensor."""
    found = []
    for several in given:
        if len(several) != 1:
            return None
        message = several[0]
        if message.media_type != TENSOR or type(message.payload) is not bytes:
            return None
        found.append(message.payload)
    return found


def _skeleton_of(payload: bytes) -> Skeleton | None:
    trace = Trace()
    try:
        read_tensor(payload, LIMIT_BYTES, trace)
    except GraphPipeError:  # the codec may accept payloads that are not tensors here
        return None
    return Skeleton.of(payload, trace)
