"""The error with which a request to a GraphPipe server fails, as its caller sees it.

`invoker.tensors` has a class of this name too: that one is for errors that our server sends, with one of our codes.
This class is for errors that a client gets, with a code of the server's own, or without one.
"""

from __future__ import annotations

from typing import Final

from invoker.connect.failure import CallFailed, ConnectFailed
from invoker.errors import Status
from invoker.errors.http import status_of
from invoker.tensors import RemoteError

_SHOWN: Final = 200
"""Characters that are shown of a connection's error."""


class GraphPipeError(CallFailed):
    """There is no result, because the server refused, sent an unreadable answer, or is gone.

    Args:
        code: The code of the error that the server sent, or the client's for an unreadable answer
            (`invoker.tensors.Code`); None where there is none: an error in plain text, a lost connection.
        message: The server's text, or the client's.
        http_status: The HTTP status of the answer; None when there was none, and for raw sockets.
        status: The status of the call; None: by ``http_status``.
        errors: All errors that the server sent, of which the first gave code and message.

    Source: docs/reference/graphpipe.md 2.8 (G-085, G-086, G-112).
    """

    def __init__(
        self,
        code: int | None,
        message: str,
        http_status: int | None = None,
        *,
        status: Status | None = None,
        errors: tuple[RemoteError, ...] = (),
    ) -> None:
        super().__init__(status or status_of(http_status or 0), message)
        self.args = (code, message, http_status)
        self.code = code
        self.http_status = http_status
        self.errors = errors

    @property
    def message(self) -> str:
        """The text of the error without its code and its HTTP status."""
        return self.detail

    @property
    def is_retryable(self) -> bool:
        """Whether the function was surely not called, since nothing was sent (G-112)."""
        return False

    def __str__(self) -> str:
        where = [f"code {self.code}"] if self.code is not None else []
        where += [f"HTTP {self.http_status}"] if self.http_status is not None else []
        return f"{', '.join(where)}: {self.detail}" if where else f"{self.status.name}: {self.detail}"


class NotReached(GraphPipeError, ConnectFailed):
    """There was no connection, so the function was not called."""

    def __init__(self, message: str) -> None:
        super().__init__(None, message, status=Status.UNAVAILABLE)
        self.args = (message,)

    @property
    def is_retryable(self) -> bool:
        """True: nothing was sent, so the function was not called."""
        return True


def lost(error: Exception, what: str) -> GraphPipeError:
    """Make the error of a lost connection, which does not show whether the function ran."""
    if isinstance(error, TimeoutError):
        return silent(what)
    why = str(error)[:_SHOWN] or type(error).__name__
    # the text may quote a server of another protocol, and so contain bytes of a frame
    return GraphPipeError(None, f"{what}: {why if why.isprintable() else ascii(why)}", status=Status.UNAVAILABLE)


def silent(what: str) -> GraphPipeError:
    """Make the error of a server that took longer than the time limit."""
    return GraphPipeError(None, f"{what}: the time is up", status=Status.DEADLINE_EXCEEDED)
