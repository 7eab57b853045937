"""`Service`: how a protocol is attached to the doors. A subclass, and its row in `invoker.services.table`, attach one.

The module of a subclass is loaded in every process, whether its protocol is served or not. It therefore imports the
protocol and the doors only inside the methods that need them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from invoker.config import Config
    from invoker.doors.grpc.methods import Method
    from invoker.drive.driver import Driver

__all__ = ["Service", "Surroundings"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a service finds in the process that it belongs to.

    Attributes:
        config: Every knob.
        driver: Runs the conversations.
        actions: Names of functions by those of actions, besides the functions' own.
    """

    config: Config
    driver: Driver
    actions: Mapping[str, str]


class Service:
    """One protocol in one process. Every method has a default, for protocols that do not need it.

    Args:
        around: What the service finds in its process.

    Attributes:
        name: As INVOKER_PROTOCOLS says it.
        on_grpc: Whether it has methods for the gRPC door.
        on_loop: Whether its conversations run on the event loop even where all functions are sync.
    """

    name: ClassVar[str]
    on_grpc: ClassVar[bool] = False
    on_loop: ClassVar[bool] = False

    def __init__(self, around: Surroundings) -> None:
        self.around = around

    def grpc_methods(self) -> Sequence[Method]:
        """The methods that the gRPC door serves for it.

        Raises:
            ConfigError: Its knobs say what cannot be.
        """
        return ()

    async def stop(self) -> None:
        """Give up what is left; the doors are closed."""
