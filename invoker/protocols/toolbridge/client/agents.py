"""`Agent`: an agent of the bridge, which uses a language model and the tools of its session to answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.errors import Status
from invoker.message import EMPTY
from invoker.protocols.toolbridge.client.answers import Metrics, metrics_in
from invoker.protocols.toolbridge.client.failure import ToolCommunicationError, failed
from invoker.protocols.toolbridge.client.link import Link
from invoker.protocols.toolbridge.client.streams import Stream
from invoker.protocols.toolbridge.client.values import packed_each, read, read_struct, struct


@dataclass(frozen=True, slots=True)
class Thought:
    """A thought of the model before an action."""

    text: str
    step: int


@dataclass(frozen=True, slots=True)
class Action:
    """The tool that the model chose, and its arguments."""

    tool: str
    arguments: Mapping[str, Any]
    step: int


@dataclass(frozen=True, slots=True)
class Observation:
    """The result of the tool; if the tool failed, ``{"error": ...}``."""

    output: Any
    step: int
    metrics: Metrics


@dataclass(frozen=True, slots=True)
class Answer:
    """The end of a run.

    Attributes:
        values: The outputs of the signature, by name.
        total_steps: How many steps there were.
        steps: The thoughts and actions, if the agent was made with ``tells_steps``.
    """

    values: Mapping[str, Any]
    total_steps: int
    steps: tuple[tuple[Thought, Action, Observation], ...]


Step = Thought | Action | Observation | Answer


class Run(Stream[pb.AgentExecutionChunk, Step]):
    """Iterates over the steps of one run as they are made; the last is the `Answer`."""

    def __init__(self, link: Link, agent_id: str, request: pb.ExecuteAgentRequest) -> None:
        super().__init__(lambda: link.listen("ExecuteAgent", request, pb.AgentExecutionChunk), agent_id, link.target)

    def _read(self, frame: pb.AgentExecutionChunk) -> tuple[Step] | None:
        match frame.WhichOneof("content"):
            case "thought":
                return (_thought(frame.thought),)
            case "action":
                return (_action(frame.action),)
            case "observation":
                return (_observation(frame.observation),)
            case "result":
                sent = frame.result
                steps = tuple(
                    (_thought(one.thought), _action(one.action), _observation(one.observation)) for one in sent.steps
                )
                return (Answer(read_struct(sent.final_answer), sent.total_steps, steps),)
            case "error":
                raise failed(self._tool, frame.error)
        return None


class Agent:
    """An agent of a session; it is dropped with the session.

    Attributes:
        id: The id that the bridge made.
        tool_count: How many tools the agent can use.
        capabilities: The capabilities that the bridge reports.
    """

    def __init__(self, link: Link, made: pb.CreateReActAgentResponse) -> None:
        self._link = link
        self.id = made.agent_id
        self.tool_count = made.tool_count
        self.capabilities = tuple(made.capabilities)

    def run(self, values: Mapping[str, Any], *, context: Mapping[str, Any] = EMPTY, stream: bool = True) -> Run:
        """Run the agent with the inputs of its signature, and iterate over its steps.

        Args:
            values: The inputs, by name.
            context: Values that the tools read by `ctx.config(dict)`; the model does not get them.
            stream: Whether each step is reported; otherwise only the answer is.
        """
        request = pb.ExecuteAgentRequest(
            agent_id=self.id, input=struct(values), context=packed_each(context), stream=stream
        )
        return Run(self._link, self.id, request)

    async def ask(self, values: Mapping[str, Any], *, context: Mapping[str, Any] = EMPTY) -> Answer:
        """Run the agent with the inputs of its signature, and wait for the answer.

        Raises:
            ToolExecutionError: The run failed.
            ToolCommunicationError: The rpc failed.
        """
        async with self.run(values, context=context, stream=False) as run:
            async for step in run:
                if isinstance(step, Answer):
                    return step
        raise ToolCommunicationError(Status.INTERNAL, "the run ended without an answer")


def _thought(sent: pb.ThoughtChunk) -> Thought:
    return Thought(sent.text, sent.step)


def _action(sent: pb.ActionChunk) -> Action:
    return Action(sent.tool_name, read_struct(sent.tool_input), sent.step)


def _observation(sent: pb.ObservationChunk) -> Observation:
    return Observation(read(sent.tool_output), sent.step, metrics_in(sent.metrics))
