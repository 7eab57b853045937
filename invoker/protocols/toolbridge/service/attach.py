"""`ToolBridgeService`: attaches the tool bridge to the gRPC transport."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from invoker.attach.declared import Listing
from invoker.attach.public import PublicServiceSettings
from invoker.attach.service import Service
from invoker.settings import parsers as parse
from invoker.settings.setting import setting

if TYPE_CHECKING:
    from invoker.protocols.toolbridge.service.bridge import Bridge
    from invoker.protocols.toolbridge.tools import Tools
    from invoker.settings import Config
    from invoker.telemetry.board import Numbers
    from invoker.transports.grpc.methods import Method

__all__ = ["ToolBridgeService", "ToolBridgeServiceSettings"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBridgeServiceSettings(PublicServiceSettings):
    """The settings of the tool bridge."""

    tool_session_ttl_s: float = setting(
        3600.0, "INVOKER_TOOL_SESSION_TTL_S", parse.seconds,
        "A session of the tool bridge expires when it was not used for so long.", unit="seconds",
        heading="tool bridge", before="allowed_origins",
    )  # fmt: skip
    tool_message_bytes: int = setting(
        10 * 1024 * 1024, "INVOKER_TOOL_MESSAGE_BYTES", parse.whole(1),
        "Size of the largest request and of the largest result of the tool bridge, whatever INVOKER_MAX_MESSAGE_BYTES "
        "is.", unit="bytes",
    )  # fmt: skip
    tool_concurrency: int = setting(
        0, "INVOKER_TOOL_CONCURRENCY", parse.whole(0),
        "Tool calls that one session of the tool bridge may run at once unless it says so itself; 0 means no limit.",
        unit="calls",
    )  # fmt: skip
    auto_session: bool = setting(
        False, "INVOKER_AUTO_SESSION", parse.switch,
        "Whether a tool call in a session that does not exist makes it, with default settings.",
    )  # fmt: skip
    callback_hosts: str = setting(
        "loopback", "INVOKER_CALLBACK_HOSTS", str.strip,
        "Where the tool bridge may call the tools of its hosts: off, or a list of loopback, public, names such as "
        "host.example.org or *.example.org, and Unix sockets such as unix:/run/hosts/*.sock; unix means every socket.",
    )  # fmt: skip
    audit: str = setting(
        "off", "INVOKER_AUDIT", parse.sink,
        "Where each tool call is logged by a line of JSON: `off`, `stderr`, or the path of a file, which is opened "
        "anew when it was moved.",
    )  # fmt: skip
    audit_args: tuple[str, ...] = setting(
        ("off",), "INVOKER_AUDIT_ARGS", parse.names,
        "Whether the audit log shows arguments besides their hash: `off`, `on`, or patterns of the names whose values "
        "are hidden, such as `*phone*,email`; those of passwords, secrets, tokens and keys always are. Names "
        "decide: what stands within a text or a list is shown as it is.",
    )  # fmt: skip
    tool_critical: tuple[str, ...] = setting(
        (), "INVOKER_TOOL_CRITICAL", parse.some_of("audit", "isolation", "llm", "callback"),
        "What the tool bridge cannot do without, of the dependencies that its HealthCheck tells: `audit`, `isolation`, "
        "`llm`, `callback`; while one of them fails, the bridge says that it does not serve.",
    )  # fmt: skip
    tool_phase: int = setting(
        4, "INVOKER_TOOL_PHASE", parse.whole(1, 4),
        "Which rpcs of the tool bridge are served: 1 sessions and tools, 2 also variables, 3 also batches and agents, "
        "4 all.",
        flag="--phase",
    )  # fmt: skip
    llms: tuple[str, ...] = setting(
        (), "INVOKER_LLM", parse.names,
        "Language models that agents of the tool bridge may use, each `name=https://HOST/v1` (an OpenAI-compatible "
        "endpoint) or `name=MODULE:FUNCTION`; the first is the default. The key of an endpoint stands in "
        "`INVOKER_LLM_KEY_NAME`.", heading="agents of the tool bridge",
    )  # fmt: skip
    llm_models: tuple[str, ...] = setting(
        (), "INVOKER_LLM_MODELS", parse.names,
        "Patterns of the models that those endpoints may be asked for, such as `gpt-5-mini,gpt-5*`; the first is the "
        "default. Without any, a host may name any model.",
    )  # fmt: skip
    llm_timeout_s: float = setting(
        60.0, "INVOKER_LLM_TIMEOUT_S", parse.seconds,
        "How long those endpoints may take to answer once; agents ask again twice.", unit="seconds",
    )  # fmt: skip


class ToolBridgeService(Service):
    """The tool bridge."""

    name = "toolbridge"
    on_grpc = True
    on_loop = True
    shares_state = True
    settings = ToolBridgeServiceSettings
    listing = Listing(
        "--tools", "show them as callers of the tool bridge are told of them", "tools",
        "invoker.protocols.toolbridge.verbs.tools",
    )  # fmt: skip
    _bridge: Bridge | None = None

    @classmethod
    def unfit(cls, config: Config) -> str:
        """Who can reach it can call every tool and read every session, so that needs TLS, or the operator's word."""
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
            SpecError: A function cannot be a tool, and INVOKER_PROTOCOLS asks for the bridge (T-022). Where it does
                not, that function is left out.
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
        """What the bridge has counted."""
        return self._bridge.watch.numbers() if self._bridge is not None else None

    def families(self, numbers: Numbers) -> Iterator[Any]:
        """Sessions, calls and their durations by tool."""
        from invoker.protocols.toolbridge.prometheus import families

        return families(numbers)

    async def stop(self, grace_s: float) -> None:  # noqa: ARG002 - nothing here takes long
        """Leave the store and the hosts, and write what waits for the audit log."""
        if self._bridge is not None:
            self._bridge.keeper.close()
            await self._bridge.callbacks.close()
            await self._bridge.agents.close()
            self._bridge.watch.close()
            self._bridge.aside.close()


def _has_tools(tools: Tools) -> bool:
    """Whether a tool is left, or nothing was there; tells once what an operator should know of them."""
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
