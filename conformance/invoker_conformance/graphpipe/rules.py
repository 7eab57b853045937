"""The codes of errors, and the rules for every answer to a POST: docs/reference/graphpipe.md 2.6."""

from __future__ import annotations

from collections.abc import Sequence

from invoker_conformance.faults import LEAKS
from invoker_conformance.graphpipe.read import Inferred, Unreadable, read_inferred
from invoker_conformance.http import Answer
from invoker_conformance.scenario import Failure

OCTETS = "application/octet-stream"

STATUS: dict[int, int] = {
    **dict.fromkeys((*range(1, 13), 17), 400),
    13: 413,
    **dict.fromkeys((14, 18, 19), 500),
    15: 504,
    **dict.fromkeys((16, 20), 503),
}
"""The HTTP status of each error code (G-080, G-081)."""

_NAMES = (
    "success",
    "malformed",
    "bad request type",
    "name count",
    "unknown input",
    "unknown output",
    "duplicate name",
    "missing input",
    "type mismatch",
    "shape",
    "data length",
    "data and string_val",
    "unsupported type",
    "too large",
    "function failed",
    "timeout",
    "overloaded",
    "bad config",
    "bad output",
    "cancelled",
    "not ready",
)
_MESSAGE_BYTES = 4096


def told(codes: Sequence[int]) -> str:
    """Error codes in the form for reports: ``E1 malformed``."""
    return " or ".join(f"E{code} {_NAMES[code]}" for code in codes)


def check_inferred(answer: Answer, *, is_plain_status: bool) -> Inferred:
    """Read the answer to a POST, and check the rules for every answer.

    Args:
        answer: The answer.
        is_plain_status: Whether errors have the status 200.

    Raises:
        Failure: The answer breaks a rule.
    """
    if (met := answer.header("content-type")) != OCTETS:
        raise answer.failure(f"the content type {OCTETS}, not {met} (G-002, G-082)")
    if answer.header("content-length") != str(len(answer.body)):
        raise answer.failure(f"Content-Length: {len(answer.body)} (G-002)")
    try:
        found = read_inferred(answer.body)
    except Unreadable as error:
        raise Failure(f"{answer.status}, and {error}", "an InferResponse (G-002)", answer.sent) from None
    if found.errors:
        _check_errors(answer, found, is_plain_status=is_plain_status)
    elif answer.status != 200 or answer.header("x-graphpipe-error") is not None:
        raise answer.failure("the status 200, and no X-GraphPipe-Error, with a response without errors (G-081, G-082)")
    return found


def _check_errors(answer: Answer, found: Inferred, *, is_plain_status: bool) -> None:
    if found.tensors:
        raise answer.failure(f"tensors or errors, not both: {found} (G-064)")
    code = found.errors[0][0]
    for each, _ in found.errors:
        if each not in STATUS:
            raise answer.failure(f"a code from 1 to 20, not {each} (G-080)")
    wanted = 200 if is_plain_status else STATUS[code]
    if answer.status != wanted:
        raise answer.failure(f"the status {wanted} with {told([code])} (G-081)")
    if answer.header("x-graphpipe-error") != str(code):
        raise answer.failure(f"X-GraphPipe-Error: {code}, not {answer.header('x-graphpipe-error')} (G-082)")
    for _, message in found.errors:
        if len(message.encode()) > _MESSAGE_BYTES:
            raise answer.failure(f"messages of at most {_MESSAGE_BYTES} bytes, not {len(message.encode())} (G-083)")
        if leak := LEAKS.search(message):
            raise answer.failure(f"messages without traceback and paths, not {leak.group()!r} (G-065): {message!r}")
