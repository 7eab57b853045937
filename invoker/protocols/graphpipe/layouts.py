"""`AnswerPlans`: remembers the layout of answers, so that a similar one is not laid out again.

An answer is made of tensors that the function's codec has written: each is read, compared with its declaration, and
written into the response. All of that depends on the tensors' types and shapes, and on the request. So if an answer
differs from an earlier one to a request of the same plan only in its elements, its response differs from the earlier
response in the same elements. Errors are not remembered, so each is found and reported again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec

from invoker.codecs.tensor import TENSOR
from invoker.message import Message
from invoker.tensors import LIMIT_BYTES, GraphPipeError, Skeleton, Trace, Written, read_infer_response, read_tensor

Given: TypeAlias = Sequence[Sequence[Message[bytes]]]
"""What a function gave for each wanted output."""

_MOST: Final = 4
_TRIES: Final = 8
_LARGEST: Final = 1 << 16
"""Bytes of a response; laying out a larger one takes little beside its copying, which is then done in pieces."""


class _Layout(msgspec.Struct, frozen=True):
    """One kind of answer: the common properties of its tensors, and the response."""

    outputs: tuple[Skeleton, ...]
    # pieces of the response: bytes, or an output and the position of its elements
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
    """The layouts of the answers to requests of one plan; the first few are remembered."""

    __slots__ = ("_layouts", "_tries")

    def __init__(self) -> None:
        self._layouts: list[_Layout] = []
        self._tries = 0

    def response(self, given: Given) -> bytes | None:
        """The response for the outputs of a function; None if no similar answer is remembered."""
        if not self._layouts or (payloads := _payloads(given)) is None:
            return None
        for one in self._layouts:
            if (found := one.response(payloads)) is not None:
                return found
        return None

    def learn(self, given: Given, written: Written) -> None:
        """Remember how an answer was laid out, unless enough was tried already.

        Args:
            given: The outputs of the function, which were found valid.
            written: The response that was made of them.
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
        if whole is None or len(whole.elements) != len(outputs):  # for example one tensor for two outputs (G-057)
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
    """The one tensor of each output; None if an output has several messages, or a message that is no tensor."""
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
    except GraphPipeError:  # the codec may take payloads that are refused here
        return None
    return Skeleton.of(payload, trace)
