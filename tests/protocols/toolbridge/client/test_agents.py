"""Tests of agents."""

from __future__ import annotations

import pytest

from invoker.client.toolbridge import (
    Action,
    Answer,
    Metrics,
    Observation,
    Thought,
    ToolCommunicationError,
    ToolExecutionError,
    ToolSession,
)
from tests.protocols.toolbridge.client.peer import Peer

STEPS = (Thought("hm", 1), Action("add", {"a": 1}, 1), Observation(3, 1, Metrics()))


async def test_an_agent_tells_its_steps(session: ToolSession, peer: Peer) -> None:
    """The last is the answer."""
    agent = await session.agent(
        "question -> answer: int", tools=["add"], max_iters=3, llm={"provider": "mine"}, tells_steps=True
    )
    made = peer.last("CreateReActAgent")
    assert (made.signature, list(made.tool_names), made.max_iters) == ("question -> answer: int", ["add"], 3)
    assert made.config.return_intermediate_steps
    assert "provider" in made.config.llm_config
    assert (agent.id, agent.tool_count, agent.capabilities) == ("react_s_1", 2, ("tools",))
    async with agent.run({"question": "1 + 2?"}, context={"user": 7}) as run:
        steps = [step async for step in run]
    assert steps == [*STEPS, Answer({"answer": 3}, 1, (STEPS,))]
    asked = peer.last("ExecuteAgent")
    assert (asked.agent_id, asked.input["question"], list(asked.context)) == ("react_s_1", "1 + 2?", ["user"])


async def test_an_agent_is_asked_for_its_answer(session: ToolSession, peer: Peer) -> None:
    """Then it does not tell the steps as it makes them."""
    agent = await session.agent("question -> answer")
    answer = await agent.ask({"question": "?"})
    assert answer.values == {"answer": 3}
    assert not peer.last("ExecuteAgent").stream


async def test_an_agent_that_fails_raises(session: ToolSession) -> None:
    """As a tool does; its name stands in the place of the tool's."""
    agent = await session.agent("question -> answer")
    with pytest.raises(ToolExecutionError) as caught:
        await agent.ask({"wrong": 1})
    assert (caught.value.tool, caught.value.type) == ("react_s_1", "ValidationError")
    with pytest.raises(ToolCommunicationError, match="without an answer"):
        await agent.ask({"mute": 1})
