"""`GraphPipeError`: the error that a client raises if a request to a GraphPipe server fails.

`invoker.tensors` has a class of the same name for errors that this project's server sends. The class here is for errors
that a client gets; it has the code of any server, or none.
"""

from __future__ import annotations

from typing import Final

from invoker.connect.failure import CallFailed, ConnectFailed
from invoker.errors import Status
from invoker.errors.http import status_of
from invoker.tensors import RemoteError

_SHOWN: Final = 200
"""How many characters of a connection's error are shown."""


class GraphPipeError(CallFailed):
    """A request failed: the server sent an error or an invalid response, or the connection failed.

    Args:
        code: The code of the server's error, or the client's code for an invalid response (`invoker.tensors.Code`);
            None for an error in plain text, and for a failed connection.
        message: The text of the server or of the client.
        http_status: The HTTP status of the response; None for raw sockets, and if there was no response.
        status: The status of the call; None: it follows from ``http_status``.
        errors: All errors that the server sent; code and message are those of the first one.

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
        """Whether the function was certainly not called, because nothing was sent (G-112)."""
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
    """Make the error for a lost connection, after which it is unknown whether the function ran."""
    if isinstance(error, TimeoutError):
        return silent(what)
    why = str(error)[:_SHOWN] or type(error).__name__
    # the text may quote bytes from a server of another protocol
    return GraphPipeError(None, f"{what}: {why if why.isprintable() else ascii(why)}", status=Status.UNAVAILABLE)


def silent(what: str) -> GraphPipeError:
    """Make the error for a server that did not respond within the time limit."""
    return GraphPipeError(None, f"{what}: the time is up", status=Status.DEADLINE_EXCEEDED)
