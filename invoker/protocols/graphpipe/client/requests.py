"""Encodes requests and decodes results, for the sync and the async client."""

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
"""The requested outputs: a name, several names, or None for the server's default."""

METADATA: Final = Written([memoryview(METADATA_REQUEST)], len(METADATA_REQUEST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a client.

    Attributes:
        timeout_s: The limit in seconds of each wait: for the connection, for sending, for each part of the response.
        limit_bytes: Larger responses are refused (G-096).
        headers: The headers of each HTTP request.
        tls: The TLS settings. None: with https, the certificate authorities of this machine are trusted; with tcp,
            there is no TLS.
        scalar_as_vector: Whether scalars are sent with the shape [1], for servers that refuse scalars (G-039).
    """

    timeout_s: float = 60.0
    limit_bytes: int = LIMIT_BYTES
    headers: Mapping[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    scalar_as_vector: bool = False


class Server:
    """A server with the connections to it, which are closed when the object is garbage-collected.

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
        """Send a request, and wait for the response."""
        link = self.links.take()
        try:
            return link.ask(request)
        finally:
            self.links.give(link)


def written(inputs: Sequence[Any], outputs: Names, config: str | bytes, *, scalar_as_vector: bool) -> Written:
    """Encode a request; numbers are views on the arrays, which must not be changed until the request is sent.

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
        for value, label in zip(values, labels, strict=False)  # also for an empty dict
    ]
    return written_tensors(tensors, names, _names(outputs), config)


def written_tensors(
    tensors: Sequence[Tensor], input_names: Sequence[str], output_names: Sequence[str], config: str | bytes
) -> Written:
    """Encode a request with tensors; raises before sending if the number of names is wrong (G-094)."""
    if input_names and len(input_names) != len(tensors):
        raise ValueError(f"there are {len(input_names)} input names and {len(tensors)} inputs")
    raw = config.encode() if isinstance(config, str) else bytes(config)
    try:
        return write_request(InferRequest(tuple(tensors), tuple(input_names), tuple(output_names), raw))
    except Unfit as error:
        raise ValueError(f"the request cannot be written: {error.detail}") from error


def tensor_of(value: Any, label: str, *, scalar_as_vector: bool = False) -> Tensor:
    """Convert a value to a tensor; ``label`` is its name in error texts."""
    try:
        tensor: Tensor = arrays().to_tensor(value)
    except Unfit as error:
        raise ValueError(f"input {label}: {error.detail}") from error
    if scalar_as_vector and not tensor.shape:
        return Tensor(tensor.type, (1,), tensor.data)
    return tensor


def arrays() -> ModuleType:
    """Import the module that converts arrays to tensors and back; metadata do not need it.

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
    """The outputs in a response, in the form that `GraphPipe.infer` returns.

    Raises:
        GraphPipeError: The response is an error, or has no outputs.
    """
    names = _names(outputs)
    found = [array_of(tensor, reply) for tensor in tensors_in(reply, limit_bytes, len(names) if names else None)]
    if names and not isinstance(outputs, str):
        return dict(zip(names, found, strict=True))
    return found[0] if len(found) == 1 else found


def array_of(tensor: Tensor, reply: Reply) -> Any:
    """Convert an output to an array; raises GraphPipeError if numpy does not support its shape."""
    try:
        return arrays().to_array(tensor)
    except Unfit as error:  # numpy does not support this shape
        raise GraphPipeError(error.code, f"an output cannot be an array: {error.detail}", reply.status) from error


def _names(outputs: Names) -> tuple[str, ...]:
    if outputs is None:
        return ()
    return (outputs,) if isinstance(outputs, str) else tuple(outputs)
