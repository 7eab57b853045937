"""The client of riff: calls functions of riff invokers over gRPC."""

from typing import TYPE_CHECKING

from invoker.lazy import lazy

if TYPE_CHECKING:
    from invoker.protocols.riff.client.call import Call, Outputs
    from invoker.protocols.riff.client.client import RiffClient
    from invoker.protocols.riff.client.frames import Received
    from invoker.protocols.riff.client.request import Options
    from invoker.protocols.riff.client.sync import SyncCall, SyncRiffClient

__all__ = ["Call", "Options", "Outputs", "Received", "RiffClient", "SyncCall", "SyncRiffClient"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "Call": "invoker.protocols.riff.client.call",
        "Options": "invoker.protocols.riff.client.request",
        "Outputs": "invoker.protocols.riff.client.call",
        "Received": "invoker.protocols.riff.client.frames",
        "RiffClient": "invoker.protocols.riff.client.client",
        "SyncCall": "invoker.protocols.riff.client.sync",
        "SyncRiffClient": "invoker.protocols.riff.client.sync",
    },
)
