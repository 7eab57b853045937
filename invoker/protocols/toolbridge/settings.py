"""`BridgeSettings`: the limits that sessions use; `ToolBridgeServiceSettings`: the settings that an operator gives."""

from __future__ import annotations

from dataclasses import dataclass

from invoker.attach.public import PublicServiceSettings
from invoker.settings import parsers as parse
from invoker.settings.setting import setting


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """The limits and defaults of the tool bridge.

    Attributes:
        message_bytes: The largest request and the largest result (T-062, T-063).
        ttl_s: A session expires when it is not used for this many seconds (T-007).
        auto_session: Whether a call in a session that does not exist makes the session, with defaults (T-019).
        concurrent_tools: How many tool calls a session may run at once unless it sets its own limit; 0: any number.
        timeout_ms: The time limit of a call if its session and its tool have none (T-054).
        callback_hosts: The addresses at which hosts may be called back (T-170).
        audit: The destination of the audit log: ``off``, ``stderr`` or the path of a file (T-167).
        audit_args: ``off``: the audit log does not show arguments. ``on``: it does. Otherwise: it does, but hides
            values whose names match these patterns.
        critical: Names of the dependencies without which the bridge is not serving (T-152).
        llms: The language models of agents, each `name=URL` or `name=module:function` (T-137).
        llm_models: Patterns of the model names that requests may choose; none: any name.
        llm_timeout_s: How many seconds a model may take to answer.
        llm_delays_s: The waits in seconds before each retry of a model that failed (T-145).
        debug: Whether callers may see tracebacks.
    """

    message_bytes: int = 10 * 1024 * 1024
    ttl_s: float = 3600.0
    auto_session: bool = False
    concurrent_tools: int = 0
    timeout_ms: int = 30_000
    callback_hosts: str = "loopback"
    audit: str = "off"
    audit_args: tuple[str, ...] = ("off",)
    critical: tuple[str, ...] = ()
    llms: tuple[str, ...] = ()
    llm_models: tuple[str, ...] = ()
    llm_timeout_s: float = 60.0
    llm_delays_s: tuple[float, ...] = (1.0, 2.0)
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolBridgeServiceSettings(PublicServiceSettings):
    """The settings of the tool bridge."""

    tool_session_ttl_s: float = setting(
        3600.0, "INVOKER_TOOL_SESSION_TTL_S", parse.seconds,
        "A session of the tool bridge expires when it has not been used for this long.", unit="seconds",
        heading="tool bridge", before="allowed_origins",
    )  # fmt: skip
    tool_message_bytes: int = setting(
        10 * 1024 * 1024, "INVOKER_TOOL_MESSAGE_BYTES", parse.whole(1),
        "Size of the largest request and of the largest result of the tool bridge, whatever INVOKER_MAX_MESSAGE_BYTES "
        "is.", unit="bytes",
    )  # fmt: skip
    tool_concurrency: int = setting(
        0, "INVOKER_TOOL_CONCURRENCY", parse.whole(0),
        "Tool calls that one session of the tool bridge may run at once, unless the session sets a "
        "limit of its own; 0 means no limit.",
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
        "Which of the dependencies that its HealthCheck lists the tool bridge needs: `audit`, `isolation`, `llm`, "
        "`callback`; while one of them fails, the bridge reports that it is not serving.",
    )  # fmt: skip
    tool_phase: int = setting(
        4, "INVOKER_TOOL_PHASE", parse.whole(1, 4),
        "Which rpcs of the tool bridge are served: 1 for sessions and tools, 2 also for variables, 3 "
        "also for batches and "
        "agents, 4 for all.",
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
        "How long those endpoints may take to answer once; agents retry twice.", unit="seconds",
    )  # fmt: skip
