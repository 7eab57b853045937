"""A transport with the tool bridge whose agents ask one model, with a few tools."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Self

from invoker import Context
from invoker._pb.dspex import bridge_pb2 as pb
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.conftest import SLOW
from tests.transports.bridge import Bridged, packed, unpacked

RUNS, LEFT = threading.Event(), threading.Event()
"""The tool `forever` runs; its code was left."""


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def fail() -> int:
    raise ValueError("no luck")


async def forever() -> int:
    RUNS.set()
    try:
        await asyncio.Event().wait()
    finally:
        LEFT.set()
    return 0


async def who(ctx: Context) -> str:
    return str(ctx.config(dict))


class House:
    """The transport.

    Args:
        model: URL or entrypoint.
        settings: Of the bridge.
    """

    def __init__(self, model: str, **settings: Any) -> None:
        known = BridgeSettings(llms=(f"chat={model}",), llm_delays_s=(0.0, 0.0), **settings)
        self.transport = Bridged("aio", add, fail, forever, who, settings=known)

    def __enter__(self) -> Self:
        RUNS.clear()
        LEFT.clear()
        self.transport.__enter__()
        self.transport.session()
        return self

    def __exit__(self, *error: object) -> None:
        self.transport.__exit__(*error)

    def create(
        self,
        signature: str = "question -> answer",
        llm: dict[str, Any] | None = None,
        *,
        steps: bool = False,
        **fields: Any,
    ) -> str:
        """Make an agent; its id."""
        config = {name: packed(value) for name, value in {"model": "m", **(llm or {})}.items()}
        known = pb.AgentConfig(llm_config=config, return_intermediate_steps=steps)
        made = self.transport.rpc("CreateReActAgent", session_id="s1", signature=signature, config=known, **fields)
        return str(made.agent_id)

    def execute(self, agent_id: str, **more: Any) -> list[pb.AgentExecutionChunk]:
        """Run an agent to its end."""
        return list(self.start(agent_id, **more))

    def start(self, agent_id: str, request: pb.ExecuteAgentRequest | None = None, **more: Any) -> Any:
        """Begin to run an agent; the call."""
        make = self.transport.channel.unary_stream(
            "/dspex.bridge.SnakepitBridge/ExecuteAgent",
            pb.ExecuteAgentRequest.SerializeToString,
            pb.AgentExecutionChunk.FromString,
        )
        return make(request or asking(agent_id, **more), timeout=10 * SLOW)

    def active(self) -> int:
        """What runs in the session."""
        return int(self.transport.rpc("GetSessionInfo", session_id="s1").active_operations)


def asking(agent_id: str, *, stream: bool = True, **values: Any) -> pb.ExecuteAgentRequest:
    """A request with these inputs."""
    made = pb.ExecuteAgentRequest(agent_id=agent_id, stream=stream)
    made.input.update(values or {"question": "?"})
    return made


def kinds(chunks: list[pb.AgentExecutionChunk]) -> str:
    """T, A, O, R and E, as the grammar of T-140 has them."""
    return "".join((one.WhichOneof("content") or "?")[0].upper() for one in chunks)


def observed(chunks: list[pb.AgentExecutionChunk]) -> list[Any]:
    """What the tools gave."""
    return [unpacked(one.observation.tool_output) for one in chunks if one.HasField("observation")]
