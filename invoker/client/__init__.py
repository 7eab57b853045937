"""Call functions of any riff invoker: `RiffClient` for asyncio, `SyncRiffClient` for code without a loop."""

from invoker.client.call import Call, Outputs
from invoker.client.failure import CallFailed, ConnectFailed
from invoker.client.frames import Received
from invoker.client.request import Options
from invoker.client.riff import RiffClient
from invoker.client.sync import SyncCall, SyncRiffClient
from invoker.client.tls import Tls

__all__ = [
    "Call",
    "CallFailed",
    "ConnectFailed",
    "Options",
    "Outputs",
    "Received",
    "RiffClient",
    "SyncCall",
    "SyncRiffClient",
    "Tls",
]
