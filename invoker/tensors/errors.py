"""The numbered errors of an inference, and the exception that carries them.

The specification asks for unique numbers but defines none, so these numbers are the invoker's own (G-080 of
docs/reference/graphpipe.md). They never change.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Final

from invoker.errors import InvocationError, Status

MAX_MESSAGE_BYTES: Final = 4096
"""The most bytes of an error's text, in UTF-8 (G-083)."""

MAX_ERRORS: Final = 16
"""The most errors in one response (G-084)."""


class Code(enum.IntEnum):
    """The codes of errors (G-080)."""

    MALFORMED = 1
    REQUEST_TYPE = 2
    NAME_COUNT = 3
    UNKNOWN_INPUT = 4
    UNKNOWN_OUTPUT = 5
    DUPLICATE_NAME = 6
    MISSING_INPUT = 7
    TYPE_MISMATCH = 8
    SHAPE = 9
    DATA_LENGTH = 10
    DATA_AND_STRINGS = 11
    UNSUPPORTED_TYPE = 12
    TOO_LARGE = 13
    FUNCTION_FAILED = 14
    TIMEOUT = 15
    OVERLOADED = 16
    CONFIG = 17
    BAD_OUTPUT = 18
    CANCELLED = 19
    NOT_READY = 20


# code: (HTTP status, status of the invocation, first words of the text)
_BY_CODE: Final[dict[Code, tuple[int, Status, str]]] = {
    Code.MALFORMED: (400, Status.INVALID_ARGUMENT, "Malformed Buffer"),
    Code.REQUEST_TYPE: (400, Status.INVALID_ARGUMENT, "Bad Request Type"),
    Code.NAME_COUNT: (400, Status.INVALID_ARGUMENT, "Bad Number Of Names"),
    Code.UNKNOWN_INPUT: (400, Status.INVALID_ARGUMENT, "Unknown Input"),
    Code.UNKNOWN_OUTPUT: (400, Status.INVALID_ARGUMENT, "Unknown Output"),
    Code.DUPLICATE_NAME: (400, Status.INVALID_ARGUMENT, "Duplicate Name"),
    Code.MISSING_INPUT: (400, Status.INVALID_ARGUMENT, "Missing Input"),
    Code.TYPE_MISMATCH: (400, Status.INVALID_ARGUMENT, "Type Mismatch"),
    Code.SHAPE: (400, Status.INVALID_ARGUMENT, "Bad Shape"),
    Code.DATA_LENGTH: (400, Status.INVALID_ARGUMENT, "Bad Data Length"),
    Code.DATA_AND_STRINGS: (400, Status.INVALID_ARGUMENT, "Data And Strings"),
    Code.UNSUPPORTED_TYPE: (400, Status.INVALID_ARGUMENT, "Unsupported Type"),
    Code.TOO_LARGE: (413, Status.RESOURCE_EXHAUSTED, "Too Large"),
    Code.FUNCTION_FAILED: (500, Status.UNKNOWN, "Function Failed"),
    Code.TIMEOUT: (504, Status.DEADLINE_EXCEEDED, "Timeout"),
    Code.OVERLOADED: (503, Status.RESOURCE_EXHAUSTED, "Overloaded"),
    Code.CONFIG: (400, Status.INVALID_ARGUMENT, "Bad Config"),
    Code.BAD_OUTPUT: (500, Status.UNKNOWN, "Bad Output"),
    Code.CANCELLED: (500, Status.CANCELLED, "Cancelled"),  # the caller is gone, so it never gets this
    Code.NOT_READY: (503, Status.UNAVAILABLE, "Not Ready"),
}


class GraphPipeError(InvocationError):
    """An inference, or a tensor of it, is refused.

    Args:
        code: The kind of error.
        detail: The text for the peer: what was met, what was expected, where.
        further: Further errors of the same request (G-084); at most `MAX_ERRORS` are sent in all.
    """

    def __init__(self, code: Code, detail: str = "", *, further: Sequence[GraphPipeError] = ()) -> None:
        super().__init__(detail)
        self.code = Code(code)
        self.further = tuple(further[: MAX_ERRORS - 1])
        self.status = _BY_CODE[self.code][1]

    def __str__(self) -> str:
        title = f"GraphPipe: {_BY_CODE[self.code][2]}"
        return f"{title}: {self.detail}" if self.detail else title

    @property
    def bare(self) -> GraphPipeError:
        """A copy without the traceback, which would keep the request's data in memory."""
        return GraphPipeError(self.code, self.detail, further=[one.bare for one in self.further])

    @property
    def message(self) -> str:
        """The text as the peer gets it: valid UTF-8 of at most `MAX_MESSAGE_BYTES`, cut between characters (G-083)."""
        raw = str(self).encode("utf-8", "replace")
        return raw[:MAX_MESSAGE_BYTES].decode("utf-8", "ignore")


def too_large(what: str, size: int, limit_bytes: int) -> GraphPipeError:
    """Make the error E13. ``what`` begins its sentence, such as ``the inputs have``; the size follows."""
    return GraphPipeError(Code.TOO_LARGE, f"{what} {size} bytes, which exceeds the limit of {limit_bytes} bytes")


def http_status(code: Code) -> int:
    """The HTTP status that goes with an error (G-081)."""
    return _BY_CODE[code][0]
