"""Decodes responses: tensors, the description of a model, or one of several forms of errors.

Servers report errors in different forms: as an InferResponse with errors and an HTTP status (this project), with status
200 and errors (the specification), as a line of text (the Go server), or as HTML (a proxy). So for every status the
body is first decoded as an InferResponse; if this fails, it is text (G-085, G-086, G-020).
"""

from __future__ import annotations

from typing import Final

from invoker.protocols.graphpipe.client.failure import GraphPipeError
from invoker.protocols.graphpipe.client.links import Reply
from invoker.tensors import (
    Code,
    InferResponse,
    MetadataResponse,
    Tensor,
    read_infer_response,
    read_metadata_response,
)
from invoker.tensors import GraphPipeError as Unreadable

_OK: Final = 200
_MAX_TEXT: Final = 1000


def tensors_in(reply: Reply, limit_bytes: int, wanted: int | None) -> tuple[Tensor, ...]:
    """The outputs in a response, at least one; numbers are views on the body.

    Args:
        reply: The response.
        limit_bytes: Limits the work for decoding (G-096).
        wanted: How many outputs were requested by name; None: no names were given.

    Raises:
        GraphPipeError: The response is an error, cannot be decoded, or has another number of outputs (G-098).
    """
    response = _response(reply, limit_bytes)
    count = len(response.tensors)
    if count == 0:
        raise GraphPipeError(Code.BAD_OUTPUT, "the server sent no outputs, and no error", reply.status)
    if wanted is not None and count != wanted:
        raise GraphPipeError(
            Code.BAD_OUTPUT, f"the server sent {count} outputs, and {wanted} were asked for", reply.status
        )
    return response.tensors


def metadata_in(reply: Reply, limit_bytes: int) -> MetadataResponse:
    """The description of the model in a response.

    Raises:
        GraphPipeError: The response is an error, or cannot be decoded.
    """
    if reply.is_error or reply.status not in (_OK, None):
        _response(reply, limit_bytes)
        raise _text(reply)  # the response is marked as an error, but has tensors and no errors
    try:
        errors = read_infer_response(reply.body, limit_bytes)
    except Unreadable:
        errors = InferResponse()
    # An error may come with status 200, and always does from raw sockets. A MetadataResponse cannot be mistaken for
    # one: its name would be read as tensors and its version as errors, and a text read as offsets points far out of the
    # buffer.
    if errors.errors and not errors.tensors:
        raise _said(errors, reply)
    try:
        return read_metadata_response(reply.body, limit_bytes)
    except Unreadable as error:
        raise _unreadable(error, reply) from error


def _response(reply: Reply, limit_bytes: int) -> InferResponse:
    try:
        response = read_infer_response(reply.body, limit_bytes)
    except Unreadable as error:
        if reply.status not in (_OK, None):
            raise _text(reply) from None
        raise _unreadable(error, reply) from error
    if response.errors:
        raise _said(response, reply)
    if reply.status not in (_OK, None):
        raise _text(reply)
    return response


def _said(response: InferResponse, reply: Reply) -> GraphPipeError:
    first = response.errors[0]
    return GraphPipeError(first.code, first.message, reply.status, errors=response.errors)


def _unreadable(error: Unreadable, reply: Reply) -> GraphPipeError:
    what = f"the answer cannot be read: {error.detail}" if reply.body else "the answer has no bytes"
    return GraphPipeError(error.code, what, reply.status)


def _text(reply: Reply) -> GraphPipeError:
    """Make an error with one line of text from the response of a server that uses another protocol."""
    text = " ".join(str(reply.body[: 4 * _MAX_TEXT], "utf-8", "replace").split())
    if not text or not text.isprintable():
        text = reply.reason or "no reason is given"
    return GraphPipeError(None, text[:_MAX_TEXT], reply.status)
