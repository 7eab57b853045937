"""Makes riff signals, and shows them in reports."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.texts import preview

PATH = "/streaming.Riff/Invoke"
JSON = "application/json"
TEXT = "text/plain"
OCTETS = "application/octet-stream"
FORM = "application/x-www-form-urlencoded"
CSV = "text/csv"

# The names of inputs and outputs, for functions that have not exactly one of each.
_STREAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    **dict.fromkeys(("source", "boom", "ticker"), ((), ("out",))),
    **dict.fromkeys(("repeat", "pairs", "drain_second_first", "take"), (("first", "second"), ("out",))),
    **dict.fromkeys(("route", "two_outputs"), (("in",), ("left", "right"))),
    "sink": (("in",), ()),
}


def to_json(value: Any) -> bytes:
    """The payload of a JSON frame for a value; non-ASCII characters are not escaped."""
    return json.dumps(value, ensure_ascii=False).encode()


def start(
    types: Sequence[str] = (JSON,), inputs: Sequence[str] = ("in",), outputs: Sequence[str] = ("out",)
) -> pb.InputSignal:
    """A StartFrame."""
    return pb.InputSignal(start=pb.StartFrame(expectedContentTypes=types, inputNames=inputs, outputNames=outputs))


def streams_of(function: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the inputs and the outputs of a function."""
    return _STREAMS.get(function, (("in",), ("out",)))


def data(
    payload: bytes, media_type: str = JSON, *, index: int = 0, headers: Mapping[str, str] | None = None
) -> pb.InputSignal:
    """An InputFrame."""
    return pb.InputSignal(
        data=pb.InputFrame(payload=payload, contentType=media_type, argIndex=index, headers=headers or {})
    )


def shown(signal: pb.InputSignal) -> str:
    """A signal in the notation of the catalogue: ``S(types; inputs; outputs)`` or ``D(index, type, payload)``."""
    case = signal.WhichOneof("frame")
    if case == "start":
        names = (signal.start.expectedContentTypes, signal.start.inputNames, signal.start.outputNames)
        return f"S({'; '.join(' | '.join(each) for each in names)})"
    if case == "data":
        frame = signal.data
        headers = f", {dict(frame.headers)}" if frame.headers else ""
        return f"D({frame.argIndex}, {frame.contentType!r}, {preview(frame.payload)}{headers})"
    return "an InputSignal with no case set"
