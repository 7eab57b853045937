"""`invoker.tensors.errors`: codes, their statuses and their texts."""

from __future__ import annotations

import pytest

from invoker.errors import Status
from invoker.tensors import MAX_ERRORS, MAX_MESSAGE_BYTES, Code, GraphPipeError, http_status

STATUSES = {
    400: (*range(1, 13), 17),
    413: (13,),
    500: (14, 18, 19),
    503: (16, 20),
    504: (15,),
}


def test_G080_codes_are_stable() -> None:
    """Each number has one name for ever."""
    assert [one.name for one in Code] == [
        "MALFORMED", "REQUEST_TYPE", "NAME_COUNT", "UNKNOWN_INPUT", "UNKNOWN_OUTPUT", "DUPLICATE_NAME",
        "MISSING_INPUT", "TYPE_MISMATCH", "SHAPE", "DATA_LENGTH", "DATA_AND_STRINGS", "UNSUPPORTED_TYPE", "TOO_LARGE",
        "FUNCTION_FAILED", "TIMEOUT", "OVERLOADED", "CONFIG", "BAD_OUTPUT", "CANCELLED", "NOT_READY",
    ]  # fmt: skip
    assert [int(one) for one in Code] == list(range(1, 21))


@pytest.mark.parametrize("code", Code)
def test_each_code_has_an_http_status(code: Code) -> None:
    """As the table of the catalogue has them, and a status for the log."""
    assert code in STATUSES[http_status(code)]
    error = GraphPipeError(code)
    assert error.status is not Status.OK
    assert str(error).startswith("GraphPipe: ")
    assert ": " not in str(error).removeprefix("GraphPipe: ")


@pytest.mark.parametrize("sign", ["x", "é", "€", "\U0001f600", "\ud800"])
def test_G083_a_message_is_short_and_valid(sign: str) -> None:
    """It is cut between characters, and what is no Unicode is replaced."""
    message = GraphPipeError(Code.SHAPE, sign * 5000).message
    size = len(message.encode())
    assert MAX_MESSAGE_BYTES - 4 < size <= MAX_MESSAGE_BYTES
    assert message.startswith("GraphPipe: Bad Shape: ")
    assert GraphPipeError(Code.SHAPE, "it").message == "GraphPipe: Bad Shape: it"


def test_G084_further_errors_are_few_and_bare() -> None:
    """However many inputs are wrong."""
    many = [GraphPipeError(Code.SHAPE, str(index)) for index in range(100)]
    error = GraphPipeError(Code.TYPE_MISMATCH, "first", further=many)
    assert [one.detail for one in error.further] == [str(index) for index in range(MAX_ERRORS - 1)]
    try:
        raise error
    except GraphPipeError as caught:
        bare = caught.bare
    assert (bare.code, bare.detail, bare.__traceback__) == (error.code, error.detail, None)
    assert [one.detail for one in bare.further] == [one.detail for one in error.further]
