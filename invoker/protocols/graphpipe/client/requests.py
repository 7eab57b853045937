"""Makes requests, and results from answers, for the plain and the async client."""

from __future__ import annotations

import ssl
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, Final

from invoker.protocols.graphpipe.client.addresses import parse
from invoker.protocols.graphpipe.client.answers import tensors_in
from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.protocols.graphpipe.client.http import HttpLink
from invoker.protocols.graphpipe.client.links import Link, Links, Reply
from invoker.protocols.graphpipe.client.raw import RawLink
from invoker.tensors import LIMIT_BYTES, METADATA_REQUEST, InferRequest, Tensor, Written, write_request
from invoker.tensors import GraphPipeError as Unfit

Names = str | Sequence[str] | None
"""The outputs that are wanted: one, several, or whatever the server gives."""

METADATA: Final = Written([memoryview(METADATA_REQUEST)], len(METADATA_REQUEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings for the requests to a server.

    Attributes:
        timeout_s: How long each wait may take: for the connection, for sending, for each part of the answer.
        limit_bytes: Larger answers are refused (G-096).
        headers: The headers of each HTTP request.
        tls: TLS settings: for https, None trusts the authorities of this machine; for tcp, None means plain text.
        scalar_as_vector: Send scalars with the shape [1], for servers that refuse those without a shape (G-039).
    """

    timeout_s: float = 60.0
    limit_bytes: int = LIMIT_BYTES
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    scalar_as_vector: bool = False


class Server:
    """A server, and the connections to it, which are closed when the object is dropped.

    Raises:
        ValueError: The URL has none of the forms in `addresses`.
    """

    def __init__(self, url: str, settings: Settings) -> None:
        address = parse(url)
        self.settings = settings

        def make() -> Link:
            timeout_s, limit_bytes, tls = settings.timeout_s, settings.limit_bytes, settings.tls
            if not address.is_http:
                return RawLink(address, timeout_s=timeout_s, limit_bytes=limit_bytes, tls=tls)
            headers = settings.headers
            return HttpLink(address, timeout_s=timeout_s, limit_bytes=limit_bytes, headers=headers, tls=tls)

        self.links = Links(make)
        self.close = weakref.finalize(self, self.links.close)

    def ask(self, request: Written) -> Reply:
        """Send a request and wait for the answer."""
        link = self.links.take()
        try:
            return link.ask(request)
        finally:
            self.links.give(link)


def written(inputs: Sequence[Any], outputs: Names, config: str | bytes, *, scalar_as_vector: bool) -> Written:
    """A request in the form that is sent; numbers are views on the arrays, which must not change until it is sent.

    Raises:
        ValueError: A value cannot be a tensor.
    """
    names: tuple[str, ...] = ()
    values: Iterable[Any] = inputs
    if len(inputs) == 1 and isinstance(inputs[0], Mapping):
        names, values = tuple(inputs[0]), inputs[0].values()
    labels = [repr(name) for name in names] or [f"#{index}" for index in range(len(inputs))]
    tensors = [
        tensor_of(value, label, scalar_as_vector=scalar_as_vector)
        for value, label in zip(values, labels, strict=False)  # an empty dict has no labels
    ]
    return written_tensors(tensors, names, _names(outputs), config)


def written_tensors(
    tensors: Sequence[Tensor], input_names: Sequence[str], output_names: Sequence[str], config: str | bytes
) -> Written:
    """Write a request of tensors; the names are counted before anything is sent (G-094)."""
    if input_names and len(input_names) != len(tensors):
        raise ValueError(f"there are {len(input_names)} input names and {len(tensors)} inputs")
    raw = config.encode() if isinstance(config, str) else bytes(config)
    try:
        return write_request(InferRequest(tuple(tensors), tuple(input_names), tuple(output_names), raw))
    except Unfit as error:
        raise ValueError(f"the request cannot be written: {error.detail}") from error


def tensor_of(value: Any, label: str, *, scalar_as_vector: bool = False) -> Tensor:
    """A value as it is sent; ``label`` names it in errors."""
    try:
        tensor: Tensor = arrays().to_tensor(value)
    except Unfit as error:
        raise ValueError(f"input {label}: {error.detail}") from error
    if scalar_as_vector and not tensor.shape:
        return Tensor(tensor.type, (1,), tensor.data)
    return tensor


def arrays() -> ModuleType:
    """Import the module that turns arrays into tensors and back. Metadata do not need it.

    Raises:
        ModuleNotFoundError: numpy is not installed.
    """
    try:
        from invoker.tensors import arrays as module
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        text = "the GraphPipe client needs numpy, which is not installed; pip install numpy"
        raise ModuleNotFoundError(text, name="numpy") from None
    return module


def result_of(reply: Reply, limit_bytes: int, outputs: Names) -> Any:
    """The outputs in an answer, in the form that the caller asked for: see `GraphPipe.infer`.

    Raises:
        GraphPipeError: There are no outputs.
    """
    names = _names(outputs)
    found = [array_of(tensor, reply) for tensor in tensors_in(reply, limit_bytes, len(names) if names else None)]
    if names and not isinstance(outputs, str):
        return dict(zip(names, found, strict=True))
    return found[0] if len(found) == 1 else found


def array_of(tensor: Tensor, reply: Reply) -> Any:
    """An output as an array; raises GraphPipeError if numpy supports no array of its shape."""
    try:
        return arrays().to_array(tensor)
    except Unfit as error:  # numpy supports no arrays of this shape
        raise GraphPipeError(error.code, f"an output cannot be an array: {error.detail}", reply.status) from error


def _names(outputs: Names) -> tuple[str, ...]:
    if outputs is None:
        return ()
    return (outputs,) if isinstance(outputs, str) else tuple(outputs)
