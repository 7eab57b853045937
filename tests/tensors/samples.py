"""What the tests of tensors share: fixtures, tensors to send, and buffers made by hand to be wrong."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from invoker.tensors import (
    Code,
    GraphPipeError,
    InferRequest,
    IOMetadata,
    MetadataResponse,
    Tensor,
    TensorType,
    read_infer_response,
    read_metadata_response,
    read_request,
    read_tensor,
    write_error_response,
    write_infer_response,
    write_metadata_response,
    write_request,
    write_tensor,
)
from invoker.tensors.arrays import DTYPES, to_tensor

LIMIT = 1 << 20
DATA = Path(__file__).resolve().parent.parent / "data" / "graphpipe"
NUMERIC = [one for one in TensorType if one not in (TensorType.NULL, TensorType.STRING)]

READERS = (
    lambda buffer: read_request(buffer, LIMIT),
    lambda buffer: read_infer_response(buffer, LIMIT),
    lambda buffer: read_metadata_response(buffer, LIMIT),
    lambda buffer: read_tensor(buffer, LIMIT),
)
"""Everything that reads bytes of others."""

METADATA = MetadataResponse(
    "echo",
    "1.0",
    "invoker/0",
    "Says it again",
    (IOMetadata("x", "in", (-1, 3), TensorType.FLOAT32), IOMetadata("é")),
    (IOMetadata("y", "", (), TensorType.STRING),),
)


def fixture(name: str) -> bytes:
    """The bytes of one file of tests/data/graphpipe."""
    return bytes.fromhex((DATA / f"{name}.hex").read_text())


def numbers(type_: TensorType, shape: tuple[int, ...] = (2, 3)) -> Tensor:
    """A tensor of this type whose elements differ."""
    count = int(np.prod(shape, dtype=int))
    return to_tensor(np.arange(count).astype(DTYPES[type_]).reshape(shape))


def strings(*elements: bytes) -> Tensor:
    """A vector of strings."""
    return Tensor(TensorType.STRING, (len(elements),), list(elements))


def request(*tensors: Tensor, **others: Any) -> bytes:
    """A request for an inference, as we write it."""
    return bytes(write_request(InferRequest(tensors, **others)))


def code_of(buffer: bytes, limit_bytes: int = LIMIT) -> Code | None:
    """How a request is refused; None when it is not."""
    try:
        read_request(buffer, limit_bytes)
    except GraphPipeError as error:
        return error.code
    return None


class Raw:
    """A buffer written by hand, with no care for what is right; positions are from its beginning."""

    def __init__(self) -> None:
        self.bytes = bytearray(4)

    def put(self, raw: bytes, align: int = 4) -> int:
        """Append something, and say where it lies."""
        self.bytes += bytes(-len(self.bytes) % align)
        self.bytes += raw
        return len(self.bytes) - len(raw)

    def table(self, fields: Sequence[bytes | None]) -> int:
        """Append a table of fields as they are, None for absent ones, with its vtable before it."""
        body, entries = b"", []
        for one in fields:
            entries.append(4 + len(body) if one else 0)
            body += one or b""
        size = 4 + len(body)
        vtable = self.put(struct.pack(f"<{2 + len(entries)}H", 4 + 2 * len(entries), size, *entries))
        position = self.put(bytes(4) + body)
        struct.pack_into("<i", self.bytes, position, position - vtable)
        return position

    def link(self, at: int, target: int) -> None:
        """Make a reference; one that leads back wraps around, as an attacker would write it."""
        struct.pack_into("<I", self.bytes, at, (target - at) % 2**32)

    def open(self, count: int) -> int:
        """Append a vector of references that lead nowhere yet."""
        return self.put(struct.pack("<I", count) + bytes(4 * count))

    def octets(self, raw: bytes) -> int:
        """Append a vector of bytes, or a string without its zero."""
        return self.put(struct.pack("<I", len(raw)) + raw)

    def shape(self, *sizes: int) -> int:
        """Append a vector of sizes."""
        return self.put(struct.pack(f"<I{len(sizes)}q", len(sizes), *sizes))

    def root(self, position: int) -> bytes:
        """The whole buffer."""
        struct.pack_into("<I", self.bytes, 0, position)
        return bytes(self.bytes)


class Parts(NamedTuple):
    """What a tensor is said to consist of; None is absent."""

    type: int
    shape: Sequence[int] | None = None
    data: bytes | None = None
    strings: Sequence[bytes] | None = None


def crafted(*tensors: Parts) -> bytes:
    """A request for an inference with these tensors, however wrong; strings have no zero, as Go writes them."""
    raw = Raw()
    root = raw.table([b"\1\0\0\0", bytes(4)])
    infer = raw.table([None, None, bytes(4)])
    raw.link(root + 8, infer)
    vector = raw.open(len(tensors))
    raw.link(infer + 4, vector)
    for index, one in enumerate(tensors):
        raw.link(vector + 4 + 4 * index, _put(raw, one))
    return raw.root(root)


def _put(raw: Raw, parts: Parts) -> int:
    fields = [None if one is None else bytes(4) for one in parts[1:]]
    table = raw.table([bytes([parts.type, 0, 0, 0]), *fields])
    at = table + 8
    if parts.shape is not None:
        raw.link(at, raw.shape(*parts.shape))
        at += 4
    if parts.data is not None:
        raw.link(at, raw.octets(parts.data))
        at += 4
    if parts.strings is not None:
        vector = raw.open(len(parts.strings))
        raw.link(at, vector)
        for index, one in enumerate(parts.strings):
            raw.link(vector + 4 + 4 * index, raw.octets(one))
    return table


ARRAYS = st.sampled_from([DTYPES[one].newbyteorder(order) for one in NUMERIC for order in "<>"]).flatmap(
    lambda dtype: npst.arrays(dtype, npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)
"""Arrays of every numeric type in both orders of bytes, of any content."""

OWN: dict[str, bytes] = {
    "request": request(
        *(numbers(one) for one in NUMERIC),
        strings(b"a\0", b"", b"hello"),
        input_names=tuple(f"in{one}" for one in range(1, 13)),
        output_names=("y", "é"),
        config=b"\0cfg",
    ),
    "shapes": bytes(
        write_infer_response(
            [
                *(numbers(one, shape) for one in NUMERIC for shape in ((), (0, 3), (3,), (1, 2, 2))),
                strings(),
                to_tensor("one"),
            ]
        )
    ),
    "errors": write_error_response([GraphPipeError(Code.SHAPE, "x"), GraphPipeError(Code.NAME_COUNT, "y")]),
    "metadata": write_metadata_response(METADATA),
    "tensor": bytes(write_tensor(numbers(TensorType.FLOAT64))),
}
"""What we write, by the names of its fixtures."""
