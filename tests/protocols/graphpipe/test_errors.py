"""`invoker.protocols.graphpipe.errors`: how invocations end, in GraphPipe's codes."""

from __future__ import annotations

import pytest

from invoker import errors
from invoker.errors import InvocationError, Status, StatusError
from invoker.protocols.graphpipe.errors import translated
from invoker.tensors import Code, GraphPipeError, http_status


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (errors.FunctionError("ValueError: x"), Code.FUNCTION_FAILED, 500),
        (errors.CallError("x"), Code.FUNCTION_FAILED, 500),
        (errors.EncodeError("x"), Code.BAD_OUTPUT, 500),
        (errors.DecodeError("x"), Code.TYPE_MISMATCH, 400),
        (errors.UnsupportedMediaType("x"), Code.TYPE_MISMATCH, 400),
        (errors.NotAcceptable("x"), Code.TYPE_MISMATCH, 400),
        (errors.ProtocolViolation("x"), Code.BAD_OUTPUT, 500),
        (errors.Overloaded("x"), Code.OVERLOADED, 503),
        (errors.LimitExceeded("x"), Code.TOO_LARGE, 413),
        (errors.ShuttingDown("x"), Code.NOT_READY, 503),
        (errors.DeadlineExceeded("x"), Code.TIMEOUT, 504),
        (errors.Cancelled("x"), Code.CANCELLED, 500),
        (StatusError(Status.NOT_FOUND, "x"), Code.FUNCTION_FAILED, 500),
        (StatusError(Status.UNAVAILABLE, "x"), Code.NOT_READY, 503),
        (StatusError(Status.RESOURCE_EXHAUSTED, "x"), Code.OVERLOADED, 503),
    ],
)
def test_G080_each_ending_has_a_code(error: InvocationError, code: Code, status: int) -> None:
    """And its HTTP status; the detail is kept."""
    found = translated(error)
    assert (found.code, http_status(found.code)) == (code, status)
    assert found.detail == error.detail


def test_a_code_is_kept() -> None:
    """Also below the error of a codec."""
    shape = GraphPipeError(Code.SHAPE, "rank")
    assert translated(shape) is shape
    outer = errors.DecodeError("input #0: rank")
    outer.__cause__ = shape
    assert translated(outer).code is Code.SHAPE
    assert translated(outer).detail == "input #0: rank"


def test_a_defect_of_ours_is_not_told() -> None:
    """Only that there is one."""
    assert translated(errors.InternalError()).message == "GraphPipe: Function Failed: Invoker: Internal Error"
