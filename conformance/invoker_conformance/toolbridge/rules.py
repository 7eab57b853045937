"""The rules for every answer of a tool bridge: docs/reference/tool-bridge.md 2.10."""

from __future__ import annotations

import re
from collections.abc import Sequence

import grpc
from google.protobuf.message import DecodeError

from invoker._pb.dspex import bridge_pb2 as pb
from invoker_conformance.scenario import Failure

TRAILER = "dspex-error-bin"

STATUS = {
    "ToolNotFound": grpc.StatusCode.NOT_FOUND,
    "ValidationError": grpc.StatusCode.INVALID_ARGUMENT,
    "TimeoutError": grpc.StatusCode.DEADLINE_EXCEEDED,
    "ResourceExhausted": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "SessionExpired": grpc.StatusCode.NOT_FOUND,
    "InternalError": grpc.StatusCode.INTERNAL,
}
KINDS = tuple(STATUS)
"""All types of errors (T-159)."""

_LEAKS = re.compile(r"Traceback|File \"|site-packages")


def check_error(error: pb.ErrorInfo, sent: str) -> None:
    """Check the rules for every error.

    Raises:
        Failure: The error breaks a rule.
    """
    if error.type not in KINDS:
        raise Failure(f"an error of the type {error.type!r}", f"one of {', '.join(KINDS)} (T-159)", sent)
    if not error.HasField("timestamp") or error.timestamp.seconds <= 0:
        raise Failure(f"{error.type} without a time", "a timestamp (T-159)", sent)
    if leak := _LEAKS.search(error.message):
        raise Failure(f"the message {error.message!r}", f"a message without {leak.group()!r} (T-065)", sent)


def check_result(answer: pb.ToolCallResponse | pb.ToolCallResult, sent: str, *, is_executed: bool = True) -> None:
    """Check the rules for every answer to a call; it must have a result or an error (T-064).

    Args:
        answer: The answer of ExecuteTool, or an item of a batch.
        sent: The text of the request, for reports.
        is_executed: Whether the call was executed, so that there must be metrics.
    """
    if answer.success and (answer.HasField("error") or not answer.HasField("result")):
        raise Failure("success=true with an error, or without a result", "a result and no error (T-064)", sent)
    if not answer.success and (answer.HasField("result") or not answer.HasField("error")):
        raise Failure("success=false with a result, or without an error", "an error and no result (T-065)", sent)
    if answer.success and is_executed and not answer.HasField("metrics"):
        raise Failure("no metrics", "metrics (T-064)", sent)
    if answer.metrics.duration_ms < 0:
        raise Failure(f"duration_ms={answer.metrics.duration_ms}", "a duration that is not negative (T-064)", sent)
    if answer.HasField("error"):
        check_error(answer.error, sent)


def check_chunks(chunks: Sequence[pb.ToolStreamChunk], stream_id: str, sent: str) -> None:
    """Check the rules for every complete stream (T-076, T-077, T-080)."""
    if not chunks:
        raise Failure("a stream without a chunk", "complete or error as the last chunk (T-076)", sent)
    for place, chunk in enumerate(chunks):
        _check_chunk(chunk, place, stream_id or chunks[0].stream_id, is_last=place == len(chunks) - 1, sent=sent)
    if not chunks[0].stream_id:
        raise Failure("chunks without a stream_id", "the request's, or one that the bridge made (T-076)", sent)
    last = chunks[-1]
    count = sum(chunk.WhichOneof("content") == "data" for chunk in chunks)
    if last.WhichOneof("content") == "complete" and last.complete.total_chunks != count:
        met = f"total_chunks={last.complete.total_chunks} after {count} chunks of data"
        raise Failure(met, "the number of chunks of data (T-077)", sent)
    if last.WhichOneof("content") == "complete" and not last.complete.HasField("metrics"):
        raise Failure("complete without metrics", "metrics (T-077)", sent)


def _check_chunk(chunk: pb.ToolStreamChunk, place: int, stream_id: str, *, is_last: bool, sent: str) -> None:
    content = chunk.WhichOneof("content")
    if chunk.sequence != place:
        raise Failure(f"chunk {place} with the sequence {chunk.sequence}", "0, 1, 2 without gaps (T-076)", sent)
    if chunk.stream_id != stream_id:
        raise Failure(f"chunk {place} with the stream_id {chunk.stream_id!r}", f"{stream_id!r} (T-076)", sent)
    if content is None:
        raise Failure(f"chunk {place} without content", "data, metadata, complete or error", sent)
    if is_last is not (content in ("complete", "error")):
        raise Failure(
            f"{content} as chunk {place}", "complete or error as the last chunk, and only there (T-076)", sent
        )
    if content == "error":
        check_error(chunk.error, sent)


def told_in(trailers: Sequence[tuple[str, str | bytes]], sent: str) -> pb.ErrorInfo | None:
    """Parse and check the error in the trailers of an rpc; None if there is none.

    Raises:
        Failure: The trailer cannot be parsed, or breaks a rule.
    """
    for key, value in trailers:
        if key == TRAILER:
            try:
                info = pb.ErrorInfo.FromString(value if isinstance(value, bytes) else value.encode())
            except DecodeError:
                raise Failure(f"the trailer {value!r}", "a serialised ErrorInfo (T-160)", sent) from None
            check_error(info, sent)
            return info
    return None
