"""`Skeleton`: the bytes of a buffer besides the elements of its tensors, so that a similar one need not be read.

Theory. Requests for the same inference differ in nothing but the elements of their tensors. A reading that was given a
`Trace` notes which bytes it looked at, and where the elements lie. If no byte is both, the elements did not influence
the reading. So another buffer of the same size with the same bytes everywhere else would be read in the same way, to
the same tensors with other elements, and all checks of the first are valid for it.

A peer chooses its buffers, and may let the elements of a tensor lie over a table; such a buffer has no skeleton.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

MOST_BYTES: Final = 4096
"""The most bytes of a buffer besides its elements; a larger one is read each time."""

_MOST_TENSORS: Final = 16
_MOST_LOOKS: Final = 256

Span: TypeAlias = tuple[int, int]
"""Where something begins and where it ends."""


class Trace:
    """Records which bytes of a buffer were read.

    Attributes:
        looked: The bytes that influenced the result.
        elements: The elements of each tensor of numbers, in the order of the tensors.
    """

    __slots__ = ("elements", "looked")

    def __init__(self) -> None:
        self.looked: list[Span] = []
        self.elements: list[Span] = []


class Skeleton(msgspec.Struct, frozen=True):
    """The bytes that buffers with the same tensors have in common.

    Attributes:
        size: The size of such a buffer, in bytes.
        bones: All bytes except the elements: each piece with its position.
        elements: Where the elements of each tensor lie, in the order of the tensors.
    """

    size: int
    bones: tuple[tuple[int, bytes], ...]
    elements: tuple[Span, ...]

    @classmethod
    def of(cls, buffer: bytes | bytearray, trace: Trace) -> Skeleton | None:
        """Make the skeleton of a buffer that was read; None if it has none, or if the skeleton is large."""
        size, elements = len(buffer), trace.elements
        if len(elements) > _MOST_TENSORS or len(trace.looked) > _MOST_LOOKS:
            return None
        if size - sum(end - start for start, end in elements) > MOST_BYTES:
            return None
        holes = sorted(one for one in elements if one[0] < one[1])
        taken = sorted([*holes, *trace.looked])
        for start, end in holes:
            if sum(one[0] < end and start < one[1] for one in taken) > 1:  # the gap itself is one of these
                return None
        bones, at = [], 0
        for start, end in (*holes, (size, size)):
            if at < start:
                bones.append((at, bytes(buffer[at:start])))
            at = end
        return cls(size, tuple(bones), tuple(elements))

    def fits(self, buffer: bytes | bytearray) -> bool:
        """Whether a buffer would be read in the same way."""
        if len(buffer) != self.size:
            return False
        for at, bone in self.bones:  # noqa: SIM110 - a generator would take as long again
            if not buffer.startswith(bone, at):
                return False
        return True
