"""Calls functions of riff invokers."""

from invoker.client.riff.call import Call, Outputs
from invoker.client.riff.client import RiffClient
from invoker.client.riff.frames import Received
from invoker.client.riff.request import Options
from invoker.client.riff.sync import SyncCall, SyncRiffClient

__all__ = ["Call", "Options", "Outputs", "Received", "RiffClient", "SyncCall", "SyncRiffClient"]
