"""The functions of the package ``graphpipe.remote``, with the same names, for programs that were written for it.

There are two differences. A failure raises `GraphPipeError` with the server's text; the package raises an HTTPError
without it. Strings are returned as bytes in an array of objects, since numpy's string arrays drop trailing zeros
(G-095).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from invoker.protocols.graphpipe.client.answers import metadata_in, tensors_in
from invoker.protocols.graphpipe.client.requests import (
    METADATA,
    Server,
    Settings,
    array_of,
    arrays,
    tensor_of,
    written_tensors,
)
from invoker.tensors import IOMetadata, MetadataResponse, TensorType, Written

if TYPE_CHECKING:
    import numpy as np

    from invoker.protocols.graphpipe.client.links import Reply
    from invoker.tensors.arrays import Array

_DEFAULTS = Settings()


def execute(uri: str, inp: Any, input_name: str | None = None, output_name: str | None = None) -> Any:
    """Request an inference with one input.

    Returns:
        An array if there is one output, otherwise a list of arrays (G-093).

    Raises:
        GraphPipeError: The request failed.
        ValueError: The input cannot be a tensor.
    """
    input_names = None if input_name is None else [input_name]
    output_names = None if output_name is None else [output_name]
    found = execute_multi(uri, [inp], input_names, output_names)
    return found[0] if len(found) == 1 else found


def execute_multi(
    uri: str,
    inputs: Sequence[Any],
    input_names: Sequence[str] | None,
    output_names: Sequence[str] | None,
    config: str | bytes | None = None,
) -> list[Array]:
    """Request an inference with any number of inputs.

    Returns:
        All outputs, in the order of ``output_names`` if these are given.

    Raises:
        GraphPipeError: The request failed.
        ValueError: The numbers of inputs and of their names differ (G-094), or an input cannot be a tensor.
    """
    tensors = [tensor_of(value, f"#{index}") for index, value in enumerate(inputs)]
    request = written_tensors(tensors, input_names or (), output_names or (), config or b"")
    reply = _ask(uri, request)
    found = tensors_in(reply, _DEFAULTS.limit_bytes, len(output_names) if output_names else None)
    return [array_of(tensor, reply) for tensor in found]


def metadata(uri: str) -> ModelDescription:
    """Request the description of the model."""
    return ModelDescription(metadata_in(_ask(uri, METADATA), _DEFAULTS.limit_bytes))


def get_input_names(uri: str) -> list[str]:
    """The names of the model's inputs, in the server's order."""
    return [one.name for one in metadata(uri).response.inputs]


def get_output_names(uri: str) -> list[str]:
    """The names of the model's outputs, in the server's order."""
    return [one.name for one in metadata(uri).response.outputs]


def get_input_types(uri: str) -> list[np.dtype[Any] | None]:
    """The element types of the inputs; None for unknown types."""
    return [_dtype(one) for one in metadata(uri).response.inputs]


def get_output_types(uri: str) -> list[np.dtype[Any] | None]:
    """The element types of the outputs; None for unknown types."""
    return [_dtype(one) for one in metadata(uri).response.outputs]


def get_input_shapes(uri: str) -> list[list[int | None]]:
    """The shapes of the inputs; None means any size."""
    return [_shape(one) for one in metadata(uri).response.inputs]


def get_output_shapes(uri: str) -> list[list[int | None]]:
    """The shapes of the outputs; None means any size."""
    return [_shape(one) for one in metadata(uri).response.outputs]


class IODescription:
    """An input or an output, with methods like those of FlatBuffers; texts are bytes."""

    def __init__(self, one: IOMetadata) -> None:
        self.Name = _said(one.name)
        self.Description = _said(one.description)
        self.Type = _said_plainly(int(one.type))
        self.ShapeLength = _said_plainly(len(one.shape))
        self._shape = one.shape

    def Shape(self, j: int) -> int:  # noqa: N802 - the name is that of the package
        """The size of one dimension; -1 means any size."""
        return self._shape[j]

    def ShapeAsNumpy(self) -> Array:  # noqa: N802
        """The shape as an array of int64; -1 means any size."""
        import numpy as np

        return np.array(self._shape, np.int64)


class ModelDescription:
    """A description of a model, with methods like those of FlatBuffers: ``m.Inputs(0).Name()``; texts are bytes.

    Attributes:
        response: The description as a `MetadataResponse`.
    """

    def __init__(self, response: MetadataResponse) -> None:
        self.response = response
        self.Name = _said(response.name)
        self.Version = _said(response.version)
        self.Server = _said(response.server)
        self.Description = _said(response.description)
        self.InputsLength = _said_plainly(len(response.inputs))
        self.OutputsLength = _said_plainly(len(response.outputs))

    def Inputs(self, j: int) -> IODescription:  # noqa: N802
        """The input at an index, from 0."""
        return IODescription(self.response.inputs[j])

    def Outputs(self, j: int) -> IODescription:  # noqa: N802
        """The output at an index, from 0."""
        return IODescription(self.response.outputs[j])


def _ask(uri: str, request: Written) -> Reply:
    server = Server(uri, _DEFAULTS)
    try:
        return server.ask(request)
    finally:
        server.close()


def _dtype(one: IOMetadata) -> np.dtype[Any] | None:
    found: np.dtype[Any] | None = arrays().DTYPES.get(TensorType(one.type)) if one.type in list(TensorType) else None
    return found


def _shape(one: IOMetadata) -> list[int | None]:
    return [None if size < 0 else size for size in one.shape]


def _said(text: str) -> Callable[[], bytes]:
    raw = text.encode()
    return lambda: raw


def _said_plainly(number: int) -> Callable[[], int]:
    return lambda: number
