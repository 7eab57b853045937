"""`invoker.protocols.graphpipe.errors`: how invocations end, in GraphPipe's codes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from invoker import errors
from invoker.errors import InvocationError, Status, StatusError
from invoker.errors.wording import Place, Why
from invoker.protocols.graphpipe.errors import translated
from invoker.tensors import Code, GraphPipeError, TensorType, http_status
from tests.protocols.graphpipe.asking import model_of

MSGPACK = "application/msgpack"
X, N, OUT = Place("input", 0, "x"), Place("input", 1, "n"), Place("output", 0)


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
    outer = errors.DecodeError(": rank", place=Place("input", 0))
    outer.__cause__ = shape
    assert translated(outer).code is Code.SHAPE
    assert translated(outer).detail == "input #0: rank"


def test_a_defect_of_ours_is_not_told() -> None:
    """Only that there is one."""
    assert translated(errors.InternalError()).message == "GraphPipe: Function Failed: Invoker: Internal Error"


def scale(x: NDArray[np.float32], n: list[float], *, flag: bool = False) -> NDArray[np.float32]:
    raise NotImplementedError


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (
            errors.DecodeError(" cannot become list[float]", place=N, met=MSGPACK, why=Why("Expected `float`")),
            "input 'n': Float32 [1, 2] cannot become list[float]: Expected `float`",
        ),
        (
            errors.DecodeError(" cannot become NDArray[float32]: no", place=X, met="application/vnd.graphpipe.tensor"),
            "input 'x': Int64 [2] cannot become NDArray[float32]: no",
        ),
        (
            errors.DecodeError(" cannot become list[float]", place=N, met="text/plain"),
            "input 'n': text/plain cannot become list[float]",
        ),
        (errors.DecodeError(": it has the shape [2]", place=X), "input 'x': it has the shape [2]"),
        (errors.DecodeError(" ended without a value", place=X), "input 'x' ended without a value"),
        (errors.EncodeError(": None cannot be a tensor", place=OUT), "output 'output0': None cannot be a tensor"),
        (errors.EncodeError(" has a header", place=OUT), "output 'output0' has a header"),
        (errors.EncodeError(" is odd", place=Place("output", 0, "out")), "output 'output0' 'out' is odd"),
        (errors.EncodeError(": it", place=Place("output", 1)), "output #1: it"),
        (errors.DecodeError(": it", place=Place("input", 10)), "input #10: it"),
        (errors.DecodeError(": it", place=Place("value")), "value: it"),
        (errors.FunctionError("ValueError: input #0: mine"), "ValueError: input #0: mine"),
    ],
)
def test_G084_peers_read_the_names_that_they_know(error: InvocationError, detail: str) -> None:
    """And the types that they sent, where the machinery knows numbers and media types of its own."""
    model = model_of(scale)
    x, n, _ = model.inputs
    met = [(x, TensorType.INT64, (2,)), (n, TensorType.FLOAT32, (1, 2))]
    assert translated(error, model, met).detail == detail
