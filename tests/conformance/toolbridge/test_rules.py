"""What holds for every answer of a bridge."""

from __future__ import annotations

from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance import Failure
from invoker_conformance.toolbridge.rules import check_chunks, check_error, check_result, told_in
from invoker_conformance.toolbridge.values import pack


def error(kind: str = "InternalError", message: str = "x", seconds: int = 1) -> pb.ErrorInfo:
    made = pb.ErrorInfo(type=kind, message=message)
    if seconds:
        made.timestamp.seconds = seconds
    return made


def chunk(sequence: int, **content: Any) -> pb.ToolStreamChunk:
    return pb.ToolStreamChunk(stream_id="s", sequence=sequence, **content)


def complete(count: int) -> pb.CompleteSignal:
    return pb.CompleteSignal(total_chunks=count, metrics=pb.ExecutionMetrics())


def test_errors() -> None:
    """A known type, a time, no traceback."""
    check_error(error(), "")
    for bad in (error("OtherError"), error(seconds=0), error(message='File "x.py"')):
        with pytest.raises(Failure):
            check_error(bad, "")


def test_results() -> None:
    """A result or an error, not both and not none."""
    metrics = pb.ExecutionMetrics()
    check_result(pb.ToolCallResponse(success=True, result=pack(1), metrics=metrics), "")
    check_result(pb.ToolCallResponse(error=error()), "")
    for bad in (
        pb.ToolCallResponse(success=True, metrics=metrics),
        pb.ToolCallResponse(success=True, result=pack(1)),
        pb.ToolCallResponse(success=True, result=pack(1), error=error(), metrics=metrics),
        pb.ToolCallResponse(),
        pb.ToolCallResponse(result=pack(1), error=error()),
        pb.ToolCallResponse(error=error(), metrics=pb.ExecutionMetrics(duration_ms=-1)),
    ):
        with pytest.raises(Failure):
            check_result(bad, "")


def test_streams() -> None:
    """Numbered, with one id, one end, and the right count."""
    check_chunks([chunk(0, data=pack(1)), chunk(1, complete=complete(1))], "s", "")
    check_chunks([chunk(0, error=error())], "", "")
    for bad in (
        [],
        [chunk(0, data=pack(1))],
        [chunk(1, complete=complete(0))],
        [chunk(0, complete=complete(1))],
        [chunk(0, complete=pb.CompleteSignal())],
        [chunk(0, complete=complete(0)), chunk(1, complete=complete(0))],
        [chunk(0), chunk(1, complete=complete(0))],
        [pb.ToolStreamChunk(complete=complete(0))],
        [chunk(0, error=error("OtherError"))],
    ):
        with pytest.raises(Failure):
            check_chunks(bad, "", "")
    with pytest.raises(Failure):
        check_chunks([chunk(0, complete=complete(0))], "other", "")


def test_trailers() -> None:
    """An error that can be read, or none."""
    assert told_in([("a", "b")], "") is None
    assert told_in([("dspex-error-bin", error().SerializeToString())], "") == error()
    with pytest.raises(Failure):
        told_in([("dspex-error-bin", b"\xff")], "")
