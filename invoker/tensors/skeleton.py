"""`Skeleton`: the bytes of a buffer except the elements of its tensors, so that similar buffers need not be parsed.

Theory. Requests for the same inference often differ only in the elements of their tensors. A parser with a `Trace`
records which bytes it read, and the ranges of the elements. If no byte is both, the elements did not influence the
result. So another buffer of the same size that differs only in these ranges would be parsed in the same way, and all
checks are valid for it. A peer may send a buffer in which elements overlap a table; such a buffer has no skeleton.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

MOST_BYTES: Final = 4096
"""The most bytes of a buffer without its elements; a larger buffer is parsed each time."""

_MOST_TENSORS: Final = 16
_MOST_LOOKS: Final = 256

Span: TypeAlias = tuple[int, int]
"""The indexes at which a range of bytes begins and ends."""


class Trace:
    """Records which bytes of a buffer were read.

    Attributes:
        looked: The bytes that influenced the result.
        elements: The range of the elements of each tensor of numbers, in the order of the tensors.
    """

    __slots__ = ("elements", "looked")

    def __init__(self) -> None:
        self.looked: list[Span] = []
        self.elements: list[Span] = []


class Skeleton(msgspec.Struct, frozen=True):
    """The bytes that buffers with the same tensors have in common.

    Attributes:
        size: The size of such a buffer, in bytes.
        bones: All bytes except the elements, each piece with its position.
        elements: The range of the elements of each tensor, in the order of the tensors.
    """

    size: int
    bones: tuple[tuple[int, bytes], ...]
    elements: tuple[Span, ...]

    @classmethod
    def of(cls, buffer: bytes | bytearray, trace: Trace) -> Skeleton | None:
        """Make the skeleton of a buffer that was parsed; None if it has none, or if the skeleton is large."""
        size, elements = len(buffer), trace.elements
        if len(elements) > _MOST_TENSORS or len(trace.looked) > _MOST_LOOKS:
            return None
        if size - sum(end - start for start, end in elements) > MOST_BYTES:
            return None
        holes = sorted(one for one in elements if one[0] < one[1])
        taken = sorted([*holes, *trace.looked])
        for start, end in holes:
            if sum(one[0] < end and start < one[1] for one in taken) > 1:  # the gap itself counts as one
                return None
        bones, at = [], 0
        for start, end in (*holes, (size, size)):
            if at < start:
                bones.append((at, bytes(buffer[at:start])))
            at = end
        return cls(size, tuple(bones), tuple(elements))

    def fits(self, buffer: bytes | bytearray) -> bool:
        """Whether a buffer would be parsed in the same way."""
        if len(buffer) != self.size:
            return False
        for at, bone in self.bones:  # noqa: SIM110 - a generator would take as long again
            if not buffer.startswith(bone, at):
                return False
        return True
