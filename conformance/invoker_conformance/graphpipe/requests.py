"""Makes requests, as bytes and as text for reports: ``I(inputs -> outputs; config)`` is an inference."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from invoker_conformance.graphpipe.build import Built, Field, Number, References, Table, Vector, assemble, text
from invoker_conformance.graphpipe.tensors import STRING, Tensor
from invoker_conformance.texts import preview


@dataclass(frozen=True, slots=True)
class Request:
    """A request, with its text for reports.

    Attributes:
        buffer: The bytes of the request.
        text: The text for reports.
    """

    buffer: bytes
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Draft:
    """An inference whose parts a scenario can break.

    Attributes:
        root: The table of the Request.
        infer: The table of the InferRequest.
        tensors: The tables of the tensors.
        text: The text for reports.
    """

    root: Table
    infer: Table
    tensors: tuple[Table, ...]
    text: str

    def built(self) -> Built:
        """Assemble the bytes of the request anew."""
        return assemble(self.root)

    def part(self, slot: int) -> Vector | References:
        """A vector of the InferRequest."""
        return _vector(self.infer, slot)

    def of_tensor(self, slot: int, index: int = 0) -> Vector | References:
        """A vector of a tensor."""
        return _vector(self.tensors[index], slot)

    def request(self, built: Built | None = None, how: str = "") -> Request:
        """Make a request with the bytes of ``built``, or of the root if it is None.

        ``how`` is added to its text in reports.
        """
        return Request(bytes(built or self.built()), f"{self.text}{', ' * bool(how)}{how}")


def tensor_table(tensor: Tensor, *, has_zeros: bool = True) -> Table:
    """The table of a tensor; without zeros its strings are vectors of bytes, as the Go client writes them."""
    fields: dict[int, Field] = {0: Number("B", tensor.type)}
    if tensor.shape is not None:
        fields[1] = Vector(struct.pack(f"<{len(tensor.shape)}q", *tensor.shape), 8)
    if tensor.data or tensor.type != STRING:
        fields[2] = Vector(tensor.data)
    if tensor.strings or tensor.type == STRING:
        fields[3] = References([text(each) if has_zeros else Vector(each) for each in tensor.strings])
    return Table(fields)


def drafted(
    *tensors: Tensor | Table,
    names: Sequence[str | bytes] = (),
    outputs: Sequence[str | bytes] = (),
    config: bytes | None = None,
) -> Draft:
    """Make an inference whose parts can be broken.

    Args:
        tensors: The tensors in order; a table that is given twice is shared.
        names: The names of the inputs.
        outputs: The names of the requested outputs.
        config: The config, which is sent unchanged.
    """
    tables = tuple(each if isinstance(each, Table) else tensor_table(each) for each in tensors)
    fields: dict[int, Field] = {}
    if config is not None:
        fields[0] = text(config)
    if names:
        fields[1] = References([text(each) for each in names])
    if tables:
        fields[2] = References(tables)
    if outputs:
        fields[3] = References([text(each) for each in outputs])
    inner = Table(fields)
    given = [str(each) if isinstance(each, Tensor) else "a tensor" for each in tensors]
    said = f"{list(names)}: " * bool(names) + ", ".join(given) + f" -> {list(outputs)}" * bool(outputs)
    said += f"; config {preview(config)}" if config is not None else ""
    return Draft(Table({0: Number("B", 1), 1: inner}), inner, tables, f"I({said})")


def infer(*tensors: Tensor | Table, **given: Any) -> Request:
    """Make a valid inference; the arguments are those of `drafted`."""
    return drafted(*tensors, **given).request()


def _vector(table: Table, slot: int) -> Vector | References:
    found = table.fields[slot]
    if not isinstance(found, Vector | References):
        raise TypeError(f"slot {slot} is not a vector")
    return found


# docs/reference/graphpipe.md 1.3: the bytes that common FlatBuffers builders write
METADATA = Request(
    bytes.fromhex("0c00000008000c000b000400080000000c000000000000020400040004000000"),
    "a MetadataRequest, the reference bytes",
)
REFERENCE = Request(
    bytes.fromhex(
        "100000000000000008000a0009000400080000001000000000010a0008000000000004000a00000004000000010000001000000000000a00"
        "10000f00080004000a0000000c000000140000000000000a080000000000803f000000400200000001000000000000000200000000000000"
    ),
    "I(Float32[1, 2] 1 2), the reference bytes",
)
REFERENCE_TENSOR = Tensor(10, (1, 2), struct.pack("<2f", 1.0, 2.0))
