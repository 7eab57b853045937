"""`ToolBridgeService`: attaches the tool bridge to the gRPC transport."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from invoker.attach.declared import Listing
from invoker.attach.service import Service
from invoker.protocols.toolbridge.settings import ToolBridgeServiceSettings
from invoker.settings import parsers as parse

if TYPE_CHECKING:
    from invoker.protocols.toolbridge.service.bridge import Bridge
    from invoker.protocols.toolbridge.tools import Tools
    from invoker.settings import Config
    from invoker.telemetry.board import Numbers
    from invoker.transports.grpc.methods import Method

log = logging.getLogger(__name__)


class ToolBridgeService(Service):
    """Serves the functions as tools over gRPC."""

    name = "toolbridge"
    on_grpc = True
    on_loop = True
    shares_state = True
    settings = ToolBridgeServiceSettings
    listing = Listing(
        "--tools", "show them as callers of the tool bridge see them", "tools",
        "invoker.protocols.toolbridge.verbs.tools",
    )  # fmt: skip
    _bridge: Bridge | None = None

    @classmethod
    def unfit(cls, config: Config) -> str:
        """Refuse to serve without TLS or consent, since its clients can call every tool and read every session."""
        host, _ = config.bind_host()
        if config.tls_cert or config.of(ToolBridgeServiceSettings).insecure_public or parse.is_loopback(host):
            return ""
        return (
            f"the tool bridge takes no calls of other machines without TLS, and INVOKER_HOST binds {host}; give "
            "INVOKER_TLS_CERT and INVOKER_TLS_KEY, bind 127.0.0.1, or allow it by --insecure-public"
        )

    def grpc_methods(self) -> Sequence[Method]:
        """One method for each rpc of the service.

        Raises:
            SpecError: A function cannot be a tool, and INVOKER_PROTOCOLS asks for the bridge (T-022). Otherwise that
                function is left out.
        """
        from invoker.protocols.toolbridge.service.bridge import Bridge
        from invoker.protocols.toolbridge.service.rpcs import methods_of
        from invoker.protocols.toolbridge.settings import BridgeSettings

        known = self.around.config.of(ToolBridgeServiceSettings)
        settings = BridgeSettings(
            message_bytes=known.tool_message_bytes,
            ttl_s=known.tool_session_ttl_s,
            auto_session=known.auto_session,
            concurrent_tools=known.tool_concurrency,
            callback_hosts=known.callback_hosts,
            audit=known.audit,
            audit_args=known.audit_args,
            critical=known.tool_critical,
            llms=known.llms,
            llm_models=known.llm_models,
            llm_timeout_s=known.llm_timeout_s,
            debug=self.around.config.debug,
        )
        bridge = Bridge(self.around, settings)
        if not _has_tools(bridge.host_sessions.tools):
            return ()
        self._bridge = bridge
        return methods_of(bridge, phase=known.tool_phase)

    def numbers(self) -> Numbers | None:
        """The counts of the bridge; None before it is served."""
        return self._bridge.watch.numbers() if self._bridge is not None else None

    def families(self, numbers: Numbers) -> Iterator[Any]:
        """Sessions, calls and their durations by tool."""
        from invoker.protocols.toolbridge.prometheus import families

        return families(numbers)

    async def stop(self, grace_s: float) -> None:  # noqa: ARG002 - nothing here takes long
        """Leave the store and the hosts, and write the waiting lines of the audit log."""
        if self._bridge is not None:
            self._bridge.keeper.close()
            await self._bridge.callbacks.close()
            await self._bridge.agents.close()
            self._bridge.watch.close()
            self._bridge.aside.close()


def _has_tools(tools: Tools) -> bool:
    """Whether the bridge is served: there is a tool, or there was no function. Logs the functions that are left out."""
    for name, why in tools.left_out.items():
        log.warning("%r is left out of the tool bridge: %s", name, why)
    if tools.left_out and not len(tools):
        log.warning("the tool bridge is not served, because no function can be a tool")
        return False
    unbound = [one.name for one in tools if one.source.bounds.memory_bytes and not one.source.isolation]
    if unbound:  # T-061
        named = ", ".join(unbound)
        log.warning("memory_bytes of %s is not enforced; it is with isolation='process' only", named)
    return True
