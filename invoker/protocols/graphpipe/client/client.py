"""`GraphPipe` asks a GraphPipe server, in any language, for inferences.

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
    """A GraphPipe server; connections are made when they are needed, and kept.

    Args:
        url: See `invoker.protocols.graphpipe.client.addresses`: http, https, unix+http, tcp, unix.
        timeout_s: How long each wait may take: for the connection, for sending, for each part of the answer.
        limit_bytes: Larger answers are refused (G-096).
        headers: The headers of each HTTP request.
        tls: TLS settings: for https, None trusts the authorities of this machine; for tcp, None means plain text.
        scalar_as_vector: Send scalars with the shape [1], for servers that refuse those without a shape (G-039).

    Raises:
        ValueError: The URL has none of these forms.

    It may be used by several threads at once. A client that is not closed is closed when it is dropped.
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
        """Ask for an inference and wait for it.

        Args:
            inputs: One value each, in the server's order; or a single dict of values by name, in any order. A value is
                an array, a number, text, bytes or lists of these; an int becomes Int64, a float Float64, text UTF-8.
            outputs: Names of the wanted outputs: one, or several in a list. None: the outputs that the server gives.
            config: A config for the function; any bytes.

        Returns:
            One array if one output is named; a dict by name if a list of names is given; otherwise the array if the
            server gives one, and a list in the server's order if it gives several. Arrays cannot be written; strings
            are bytes in an array of objects.

        Raises:
            GraphPipeError: The server refused, or its answer cannot be read.
            NotReached: The request was not sent, since there is no connection.
            ValueError: A value cannot be a tensor.
        """
        request = written(inputs, outputs, config, scalar_as_vector=self._settings.scalar_as_vector)
        return result_of(self._server.ask(request), self._settings.limit_bytes, outputs)

    def metadata(self) -> MetadataResponse:
        """Ask for the inputs and outputs of the model.

        Their order does not say how inputs are bound, and some servers send it reversed (G-089): bind by name.

        Its order says nothing of how inputs are bound, and some servers send it reversed (G-089): bind by name.

        Raises:
            GraphPipeError: The server refused, or its answer cannot be read.
            NotReached: The request was not sent, since there is no connection.
        """
        return metadata_in(self._server.ask(METADATA), self._settings.limit_bytes)

    def close(self) -> None:
        """Close the connections; a connection in use is closed after its request. Idempotent."""
        self._server.close()
