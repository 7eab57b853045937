"""Reads an answer: tensors, a description of the model, or one of many forms of an error.

Servers differ in how they refuse: with a status and an InferResponse that has errors (ours), with status 200 and errors
(the specification), with a line of text (the Go server), or with a page of HTML (whatever stands between). So the body
is read as an InferResponse first, whatever the status; the rest is text (G-085, G-086, G-020).
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
    """The outputs in an answer, at least one; numbers are views on its body.

    Args:
        reply: The reply as it came.
        limit_bytes: Bounds the work that the answer may cause (G-096).
        wanted: How many outputs were asked for by name; None: no names were given.

    Raises:
        GraphPipeError: The answer is an error, cannot be read, or has another number of outputs (G-098).
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
    """The description of the model in an answer.

    Raises:
        GraphPipeError: The answer is an error, or cannot be read.
    """
    if reply.is_error or reply.status not in (_OK, None):
        _response(reply, limit_bytes)
        raise _text(reply)  # the answer has tensors, although it is marked as an error
    try:
        errors = read_infer_response(reply.body, limit_bytes)
    except Unreadable:
        errors = InferResponse()
    # An error may come with status 200, and always does from raw sockets. If the other kind of answer is read as this
    # one, its name would be tensors and its version errors: positions in a text are far outside of the buffer.
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
    """Make an error from the text of a server that speaks another protocol, on one line."""
    text = " ".join(str(reply.body[: 4 * _MAX_TEXT], "utf-8", "replace").split())
    if not text or not text.isprintable():
        text = reply.reason or "no reason is given"
    return GraphPipeError(None, text[:_MAX_TEXT], reply.status)
