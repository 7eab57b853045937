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
        "call": "Call Outputs",
        "client": "RiffClient",
        "frames": "Received",
        "request": "Options",
        "sync": "SyncCall SyncRiffClient",
    },
    "invoker.protocols.riff.client",
)
