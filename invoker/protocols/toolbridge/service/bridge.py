"""`Bridge`: the objects that the rpcs of the tool bridge share in one process."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import partial

from invoker.attach.service import Surroundings
from invoker.core.invocation import Invocation
from invoker.protocols.toolbridge.host_sessions import HostSessions
from invoker.protocols.toolbridge.service.addresses import Addresses
from invoker.protocols.toolbridge.service.agents.agent_runner import AgentHouse
from invoker.protocols.toolbridge.service.callback import Callbacks
from invoker.protocols.toolbridge.service.hostscope import HostScope
from invoker.protocols.toolbridge.service.keeper import HostKeeper
from invoker.protocols.toolbridge.service.offload import AsideThreads
from invoker.protocols.toolbridge.service.watch import Watch
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.protocols.toolbridge.toolcall import PROTOCOL, ToolCall
from invoker.protocols.toolbridge.tools import Tools


class Bridge:
    """`HostSessions` with its keeper, and the parts that they use.

    Args:
        around: What the service finds in its process.
        settings: Limits and defaults.

    Attributes:
        agents: Makes and runs agents.
        aside: Reads the arguments of large requests.
        callbacks: Connects to hosts that are called back.
        host_sessions: The host sessions of this process.
        driver: Runs invocations; has the store.
        keeper: Keeps `HostSessions` and the store consistent.
        settings: Limits and defaults.
        watch: Metrics, health and audit.
    """

    def __init__(self, around: Surroundings, settings: BridgeSettings) -> None:
        self.around = around
        self.settings = settings
        self.driver = around.driver
        self.host_sessions = HostSessions(threading.Lock(), settings, memory=self.driver.engine.memory)
        self.host_sessions.drains = lambda: self.driver.engine.is_draining
        self.aside = self.host_sessions.aside = AsideThreads()
        catalog = self.driver.engine.catalog
        self.host_sessions.tools = Tools(
            (one.spec for one in catalog), is_strict=around.is_asked, tells=bool(catalog.told)
        )
        self.driver.engine.on_close_of[PROTOCOL] = (_finish,)
        self.callbacks = self.host_sessions.callbacks = Callbacks(
            Addresses(settings.callback_hosts), settings.message_bytes, self.driver.engine.memory
        )
        self.host_sessions.new_scope = partial(HostScope, self.host_sessions, self.driver)
        self.keeper = self.host_sessions.keeper = HostKeeper(self.host_sessions, self.driver)
        self.agents = AgentHouse(self.host_sessions, settings, os.environ)
        summed = around.numbers if around.share_port else None
        self.watch = Watch(self.host_sessions, self.driver, settings, summed, around.is_lame)
        self.watch.groups.append(self.callbacks.health)
        if settings.llms:
            self.dependencies["llm"] = lambda: self.agents.is_well

    @property
    def dependencies(self) -> dict[str, Callable[[], bool | None]]:
        """By name whether each dependency of the bridge works; HealthCheck reports it (T-152)."""
        return self.watch.dependencies


def _finish(invocation: Invocation) -> None:
    """Finish a tool call with its invocation, even if no session is left to be notified."""
    call: ToolCall = invocation.context.configs[0]
    call.cpu_ns, call.memory_bytes = invocation.cpu_ns, invocation.memory_bytes
    call.finish(invocation.error)
