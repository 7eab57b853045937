"""The rules for every frame and every status, and the faults that a riff server may report."""

from __future__ import annotations

import re

import grpc

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.faults import CONCRETE, DETAIL_BYTES, LEAKS, Fault, encoded_size
from invoker_conformance.texts import preview

UMT = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Invoker: Unsupported Media Type")
NAC = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Invoker: Not Acceptable")
BIS = Fault(grpc.StatusCode.UNKNOWN, "Invoker: Bad Input Signal", grpc.StatusCode.INVALID_ARGUMENT)
"""With either code (R-069); only the scenario of R-068 tests which one it is."""
BIS_UNKNOWN = Fault(grpc.StatusCode.UNKNOWN, "Invoker: Bad Input Signal")
PV = Fault(grpc.StatusCode.UNKNOWN, "Invoker: Protocol Violation")
UIE = Fault(grpc.StatusCode.UNKNOWN, "Invoker: Unexpected Invocation Error")
UE = Fault(grpc.StatusCode.UNKNOWN, "Invoker: Unexpected Error")
LIM = Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "Invoker: Limit Exceeded")


def check_frame(frame: pb.OutputFrame, outputs: int | None) -> tuple[str, str] | None:
    """If a frame breaks R-098, R-105, R-136 or R-137: what was met, and what was expected; otherwise None."""
    media_type = frame.contentType
    if "*" in media_type or not CONCRETE.fullmatch(media_type):
        return f"the frame {shown_frame(frame)}", "a concrete contentType (R-098, R-137)"
    if re.search(r";\s*q\s*=", media_type):
        return f"the frame {shown_frame(frame)}", "a contentType without q (R-098)"
    if outputs is None:
        return f"the frame {shown_frame(frame)}", "no frame before a StartFrame was sent (R-051)"
    if not 0 <= frame.resultIndex < max(outputs, 1):
        return f"the frame {shown_frame(frame)}", f"a resultIndex below the {outputs} outputs asked for (R-136)"
    return None


def check_detail(code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
    """If a status breaks R-117 or R-118: what was met, and what was expected; otherwise None."""
    if code is not grpc.StatusCode.UNKNOWN:
        return None
    if leak := LEAKS.search(detail):
        return f"{code.name} {detail!r}", f"a detail without traceback and paths, not {leak.group()!r} (R-117)"
    if not detail.startswith("Invoker: "):
        return f"{code.name} {detail!r}", "a detail that starts with 'Invoker: ' (R-117)"
    if (size := encoded_size(detail)) > DETAIL_BYTES:
        return f"{code.name} with {size} percent-encoded bytes of detail", f"at most {DETAIL_BYTES} (R-118)"
    return None


def shown_frame(frame: pb.OutputFrame) -> str:
    """The text of a frame, for reports."""
    return f"({frame.resultIndex}, {frame.contentType!r}, {preview(frame.payload)})"
