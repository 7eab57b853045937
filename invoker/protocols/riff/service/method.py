"""riff on the gRPC transports: there is one method, and each call of it is one invocation."""

from __future__ import annotations

from invoker.core.session import CallSession
from invoker.message import Headers
from invoker.protocols.riff.session import RiffSession
from invoker.protocols.riff.wire import FUNCTION_KEY, INVOKE, SERVICE
from invoker.transports.grpc.methods import CallMethod


def riff_method() -> CallMethod:
    """The gRPC method ``Invoke``, for the transports."""
    return CallMethod(SERVICE, INVOKE, _session, _function)


def _session(metadata: Headers) -> CallSession:
    return RiffSession(metadata, function=dict.get(metadata, FUNCTION_KEY, ""))  # as `_function`


def _function(metadata: Headers) -> str:
    # names of metadata are in lower case, so a dict can look them up, which is faster
    return dict.get(metadata, FUNCTION_KEY, "")
