"""`GraphPipe`: a client that requests inferences from any GraphPipe server.

::

    with GraphPipe("http://127.0.0.1:8080/graphpipe") as model:
        scores = model.infer(images)
        scores = model.infer({"images": images}, outputs="scores", config='{"top": 3}')
        model.metadata().inputs[0].shape
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, overload

from invoker.message import EMPTY
from invoker.protocols.graphpipe.client.answers import metadata_in
from invoker.protocols.graphpipe.client.requests import METADATA, Names, Server, Settings, result_of, written
from invoker.tensors import LIMIT_BYTES, MetadataResponse

if TYPE_CHECKING:
    from invoker.tensors.arrays import Array


class GraphPipe:
    """A client of a GraphPipe server; connections are made when they are needed, and kept.

    Args:
        url: See `invoker.protocols.graphpipe.client.addresses`: http, https, unix+http, tcp, unix.
        timeout_s: The limit in seconds of each wait: for the connection, for sending, for each part of the response.
        limit_bytes: Larger responses are refused (G-096).
        headers: The headers of each HTTP request.
        tls: The TLS settings. None: with https, the certificate authorities of this machine are trusted; with tcp,
            there is no TLS.
        scalar_as_vector: Whether scalars are sent with the shape [1], for servers that refuse scalars (G-039).

    Raises:
        ValueError: The URL has none of these forms.

    Several threads may use it at once. A client that is not closed is closed when it is garbage-collected.
    """

    def __init__(
        self,
        url: str,
        *,
        timeout_s: float = 60.0,
        limit_bytes: int = LIMIT_BYTES,
        headers: Mapping[str, str] = EMPTY,
        tls: ssl.SSLContext | None = None,
        scalar_as_vector: bool = False,
    ) -> None:
        self.url = url
        self._settings = Settings(
            timeout_s=timeout_s,
            limit_bytes=limit_bytes,
            headers=headers,
            tls=tls,
            scalar_as_vector=scalar_as_vector,
        )
        self._server = Server(url, self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @overload
    def infer(self, *inputs: Any, outputs: None = None, config: str | bytes = b"") -> Any: ...
    @overload
    def infer(self, *inputs: Any, outputs: str, config: str | bytes = b"") -> Array: ...
    @overload
    def infer(self, *inputs: Any, outputs: Sequence[str], config: str | bytes = b"") -> dict[str, Array]: ...
    def infer(self, *inputs: Any, outputs: Names = None, config: str | bytes = b"") -> Any:
        """Request an inference, and wait for the result.

        Args:
            inputs: One value for each input, in the server's order; or a single dict of values by name. A value is an
                array, a number, text, bytes or lists of these; an int becomes Int64, a float Float64, and text UTF-8.
            outputs: The name of the requested output, or a list of names. None: the server's default outputs.
            config: The config for the function; any bytes.

        Returns:
            One array if ``outputs`` is a name; a dict by name if it is a list. If it is None: an array if the server
                sends one, or a list in the server's order. Arrays are read-only; strings are bytes in an array of
                objects.

        Raises:
            GraphPipeError: The server sent an error, or a response that cannot be decoded.
            NotReached: There is no connection, and the request was not sent.
            ValueError: A value cannot be a tensor.
        """
        request = written(inputs, outputs, config, scalar_as_vector=self._settings.scalar_as_vector)
        return result_of(self._server.ask(request), self._settings.limit_bytes, outputs)

    def metadata(self) -> MetadataResponse:
        """Request the description of the model: its inputs and outputs.

        Do not rely on the order of the inputs, which some servers send reversed (G-089), but bind inputs by name.

        Raises:
            GraphPipeError: The server sent an error, or a response that cannot be decoded.
            NotReached: There is no connection, and the request was not sent.
        """
        return metadata_in(self._server.ask(METADATA), self._settings.limit_bytes)

    def close(self) -> None:
        """Close the connections; one that is in use is closed after its request. Idempotent."""
        self._server.close()
