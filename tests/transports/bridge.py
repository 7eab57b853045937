"""Opens gRPC transports with the tool bridge beside riff, and calls its rpcs with grpc's own blocking client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack, unpack
from invoker.protocols.riff.service.method import riff_method
from invoker.protocols.toolbridge.service.bridge import Bridge
from invoker.protocols.toolbridge.service.rpcs import SERVICE, methods_of
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.conftest import SLOW
from tests.transports.riff import Riff

TRANSPORTS = ("aio", "direct-lending", "lending")
"""The public transport; the fast one with sync functions only, and with async ones."""

_STREAMS = {"StreamTool", "WatchSessionVariables", "ExecuteAgent"}
_METHODS = pb.DESCRIPTOR.services_by_name["SnakepitBridge"].methods_by_name


class _Around:
    """What of its process the bridge asks for."""

    share_port = False
    numbers = None

    def __init__(self, driver: Any, *, is_asked: bool) -> None:
        self.driver = driver
        self.is_asked = is_asked

    def is_lame(self) -> bool:
        return False


class Bridged(Riff):
    """A transport with riff and the tool bridge.

    Args:
        kind: One of ``TRANSPORTS``.
        functions: What is served; all sync for "direct-lending".
        settings: Of the bridge.
        is_asked: Whether a function that cannot be a tool is an error.
        more: As for `Riff`.
    """

    def __init__(
        self, kind: str, *functions: Any, settings: BridgeSettings | None = None, is_asked: bool = True, **more: Any
    ) -> None:
        super().__init__(kind, *functions, **more)
        self.bridge = Bridge(_Around(self.driver, is_asked=is_asked), settings or BridgeSettings())  # type: ignore[arg-type]
        self._transport["methods"] = (riff_method(), *methods_of(self.bridge))

    def close(self, grace_s: float = 0.0) -> None:
        """Stop serving, and let the threads of the bridge end."""
        super().close(grace_s)
        self.bridge.aside.close()

    def execute(self, tool: str, *args: Any, session_id: str = "s1", request_id: str = "", **kwargs: Any) -> Any:
        """Call a tool with these arguments."""
        return self.rpc(
            "ExecuteTool",
            session_id=session_id,
            tool_id=tool,
            request_id=request_id,
            args=[packed(one) for one in args],
            kwargs={name: packed(one) for name, one in kwargs.items()},
        )

    def rpc(self, name: str, /, **fields: Any) -> Any:
        """Call an rpc with a request of these fields; its response, or all of them."""
        return self.send(name, _request(name, **fields))

    def send(self, name: str, request: Any, **options: Any) -> Any:
        """Call an rpc with a request."""
        reads, answers = _classes(name)
        make = self.channel.unary_stream if name in _STREAMS else self.channel.unary_unary
        call = make(f"/{SERVICE}/{name}", reads.SerializeToString, answers.FromString)
        answer = call(request, **{"timeout": 5 * SLOW, **options})
        return list(answer) if name in _STREAMS else answer

    def session(self, session_id: str = "s1", **config: Any) -> str:
        """Make a host session; its id."""
        made = self.rpc("InitializeSession", session_id=session_id, config=pb.SessionConfig(**config))
        assert made.success, made
        return session_id


def packed(value: Any) -> any_pb2.Any:
    """A value as it travels."""
    return any_pb2.Any.FromString(pack(value))


def unpacked(value: any_pb2.Any) -> Any:
    """What came."""
    return unpack(value.SerializeToString())


def error_of(caught: grpc.RpcError) -> tuple[grpc.StatusCode, pb.ErrorInfo]:
    """The status of an rpc that failed, and what its trailer says."""
    trailers: Sequence[tuple[str, Any]] = caught.trailing_metadata() or ()  # type: ignore[attr-defined]
    info = dict(trailers).get("dspex-error-bin", b"")
    return caught.code(), pb.ErrorInfo.FromString(info)  # type: ignore[attr-defined]


def _classes(name: str) -> tuple[Any, Any]:
    method = _METHODS[name]
    return getattr(pb, method.input_type.name), getattr(pb, method.output_type.name)


def _request(name: str, **fields: Any) -> Any:
    return _classes(name)[0](**fields)
