"""Calls functions of riff invokers."""

from invoker.protocols.riff.client.call import Call, Outputs
from invoker.protocols.riff.client.client import RiffClient
from invoker.protocols.riff.client.frames import Received
from invoker.protocols.riff.client.request import Options
from invoker.protocols.riff.client.sync import SyncCall, SyncRiffClient

__all__ = ["Call", "Options", "Outputs", "Received", "RiffClient", "SyncCall", "SyncRiffClient"]
