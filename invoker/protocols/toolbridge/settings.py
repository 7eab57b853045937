"""`BridgeSettings`: what an operator may set about the tool bridge."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BridgeSettings"]


@dataclass(frozen=True, slots=True)
class BridgeSettings:
    """Limits and defaults.

    Attributes:
        message_bytes: Largest request and result (T-062, T-063).
        ttl_s: A session expires when it was not used for so long (T-007).
        auto_session: A call of a session that does not exist makes it with defaults (T-019).
        concurrent_tools: Tool calls that one session may run at once unless it says so itself; 0: any number.
        timeout_ms: Of a call whose session and tool say nothing (T-054).
        callback_hosts: Where hosts may be called back (T-170).
        audit: Where tool calls are logged: ``off``, ``stderr`` or the path of a file (T-167).
        audit_args: ``off``: arguments are not shown there; ``on``, or patterns of the names whose values are not shown.
        critical: Dependencies without which the bridge is not healthy (T-152).
        llms: Language models of agents, each `name=URL` or `name=module:function` (T-137).
        llm_models: Patterns of the models that may be asked for; none: any.
        llm_timeout_s: How long a model may take to answer.
        llm_delays_s: Before each new try of a model that failed (T-145).
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
