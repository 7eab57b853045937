"""riff on the gRPC doors: one method, and one invocation a call."""

from __future__ import annotations

from invoker.core.session import CallSession
from invoker.doors.grpc.methods import CallMethod
from invoker.message import Headers
from invoker.protocols.riff.session import METHOD, SERVICE, RiffSession

__all__ = ["riff_method"]


def riff_method() -> CallMethod:
    """The riff method."""
    return CallMethod(SERVICE, METHOD, _session)


def _session(metadata: Headers) -> CallSession:
    # Names of metadata are in lower case, so the lookup of a dict suffices, and it costs less.
    return RiffSession(metadata, function=dict.get(metadata, "invoker-function", ""))
