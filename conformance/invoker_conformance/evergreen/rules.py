"""The statuses that an Evergreen session may end with, and the rules for each of them."""

from __future__ import annotations

import grpc

from invoker_conformance.faults import DETAIL_BYTES, LEAKS, Fault, encoded_size

FRAG = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Invalid Node Fragment")
GRAPH = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Invalid Node Graph")
ACT = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Invalid Action")
ANF = Fault(grpc.StatusCode.NOT_FOUND, "Evergreen: Action Not Found")
TNF = Fault(grpc.StatusCode.NOT_FOUND, "Evergreen: Target Not Found")
BAD = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Bad Input")
NAC = Fault(grpc.StatusCode.INVALID_ARGUMENT, "Evergreen: Not Acceptable")
MISS = Fault(grpc.StatusCode.FAILED_PRECONDITION, "Evergreen: Incomplete Input")
REFD = Fault(grpc.StatusCode.PERMISSION_DENIED, "Evergreen: Reference Refused")
REFX = Fault(grpc.StatusCode.NOT_FOUND, "Evergreen: Reference Failed")
FAIL = Fault(grpc.StatusCode.UNKNOWN, "Evergreen: Action Failed")
LIM = Fault(grpc.StatusCode.RESOURCE_EXHAUSTED, "Evergreen: Limit Exceeded")

_OURS = frozenset(fault.code for fault in (FRAG, ANF, MISS, REFD, FAIL))


def check_detail(code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
    """If a status breaks E-116 or table 0.1: what was met, and what was expected; otherwise None."""
    if leak := LEAKS.search(detail):
        return f"{code.name} {detail!r}", f"a detail without traceback and paths, not {leak.group()!r} (E-116)"
    if code in _OURS and not detail.startswith("Evergreen: "):
        return f"{code.name} {detail!r}", "a detail that starts with 'Evergreen: ' (E-116)"
    if code in _OURS and (size := encoded_size(detail)) > DETAIL_BYTES:
        return f"{code.name} with {size} percent-encoded bytes of detail", f"at most {DETAIL_BYTES} (R-118)"
    return None
