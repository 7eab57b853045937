"""Tests of what a call asks for."""

from __future__ import annotations

import pytest

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.protocols.riff.client.request import Request


def start_of(request: Request) -> pb.StartFrame:
    return pb.InputSignal.FromString(request.start_signal()).start


def test_one_accept_stands_for_every_named_output() -> None:
    """A text is meant for all outputs, however many are named."""
    start = start_of(Request(accept="text/plain", output_names=("a", "b")))
    assert list(start.expectedContentTypes) == ["text/plain", "text/plain"]
    assert list(start.outputNames) == ["a", "b"]


def test_nothing_said_means_one_output_of_any_type() -> None:
    """The StartFrame always has one entry an output."""
    assert list(start_of(Request()).expectedContentTypes) == ["*/*"]


def test_empty_accept_means_no_output() -> None:
    """A sink is called with no expected types at all (R-058)."""
    assert list(start_of(Request(accept=())).expectedContentTypes) == []


def test_names_and_accepts_of_different_length_are_refused() -> None:
    """The peer would refuse it too (R-053), with less to go by."""
    with pytest.raises(ValueError, match="accept has 1 entries for 2 output names"):
        Request(accept=["text/plain"], output_names=["a", "b"])


def test_names_as_one_text_are_refused() -> None:
    """'ab' would be two names."""
    with pytest.raises(TypeError, match="input_names is a sequence of names"):
        Request(input_names="ab")


@pytest.mark.parametrize(
    ("request_", "inputs", "ins", "outs"),
    [
        (Request(), 1, ["in"], ["out"]),
        (Request(accept=["text/plain"]), 1, ["in"], ["out"]),
        (Request(input_names=("words",)), 1, ["words"], ["out"]),
        (Request(output_names=("total",)), 1, ["in"], ["total"]),
        (Request(input_names=(), output_names=()), 1, [], []),
        (Request(), 0, [], []),
        (Request(), 2, [], []),
        (Request(accept=["a/b", "c/d"]), 1, [], []),
        (Request(accept=()), 1, [], []),
    ],
)
def test_names_that_are_left_to_us(request_: Request, inputs: int, ins: list[str], outs: list[str]) -> None:
    """Those of the HTTP adapter where there is one input and one output, none elsewhere."""
    signal = request_.start_signal(with_plain_names=request_.takes_plain_names(inputs))
    start = pb.InputSignal.FromString(signal).start
    assert (list(start.inputNames), list(start.outputNames)) == (ins, outs)


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_timeout_must_be_positive(seconds: float) -> None:
    """NaN is not positive either."""
    with pytest.raises(ValueError, match="must be more than 0"):
        Request(timeout_s=seconds)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("a/b", ["a/b", "a/b"]), (["a/b"], ["a/b", ""]), ({1: "c/d"}, ["", "c/d"])],
)
def test_content_type_by_index(given: object, expected: list[str]) -> None:
    """One for all, a list, or a mapping; where none is given the value chooses."""
    request = Request(content_type=given)  # type: ignore[arg-type]
    assert [request.content_type_of(0), request.content_type_of(1)] == expected


def test_output_name_of_an_index_beyond_the_names_is_empty() -> None:
    """A peer may send any index."""
    request = Request(output_names=["a"])
    assert [request.output_name(index) for index in (-1, 0, 1)] == ["", "a", ""]


def test_metadata_of_the_call_goes_over_that_of_the_client() -> None:
    """Keys are folded, and the function's name is metadata too."""
    request = Request(metadata={"X-Id": "2"}, function="topk")
    assert dict(request.metadata_pairs({"x-id": "1", "a": "b"})) == {"x-id": "2", "a": "b", "invoker-function": "topk"}
