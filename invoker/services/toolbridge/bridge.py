"""`Bridge`: what the rpcs of the tool bridge share in one process."""

from __future__ import annotations

import threading

from invoker.protocols.toolbridge.desk import Desk
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.services.service import Surroundings
from invoker.services.toolbridge.keeper import HostKeeper

__all__ = ["Bridge"]


class Bridge:
    """The desk with its keeper, and what is around them.

    Args:
        around: What the service finds in its process.
        settings: Limits and defaults.

    Attributes:
        desk: The host sessions of this process.
        driver: Runs invocations; has the store.
        keeper: Keeps the desk and the store true to each other.
    """

    def __init__(self, around: Surroundings, settings: BridgeSettings) -> None:
        self.around = around
        self.driver = around.driver
        self.desk = Desk(threading.Lock(), settings)
        self.keeper = self.desk.keeper = HostKeeper(self.desk, self.driver)
