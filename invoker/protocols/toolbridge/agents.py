"""CreateReActAgent and ExecuteAgent: agents that use the tools of a host session (T-133 to T-149).

Theory. An agent belongs to one process: it is kept in ``HostSession.agents``, and is dropped with its host session. The
two classes here check requests, and translate the reports of a run into chunks. `Agents` runs agents on the event loop.
A run continues only while its next report is awaited, so it ends with the conversation.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, ClassVar, Final, Protocol, TypeAlias

import msgspec
from google.protobuf.any_pb2 import Any as AnyMessage

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import BadAny, unpack
from invoker.core.steps import Ask, Await, Close, Send, Step
from invoker.core.store import Look
from invoker.errors import InvocationError, Status
from invoker.message import EMPTY, Headers
from invoker.protocols.toolbridge.errors import ENDS_RPC, BridgeError, Kind, session_gone, translated
from invoker.protocols.toolbridge.host_sessions import HostSession, HostSessions, Operation, space_of
from invoker.protocols.toolbridge.llms import Llm, Llms
from invoker.protocols.toolbridge.sessions import check_id, found_session, question_about
from invoker.protocols.toolbridge.signature import AgentSignature
from invoker.protocols.toolbridge.unary import UnarySession

FINISH: Final = "finish"
"""The name of the tool that the model calls to finish; no tool of an agent can have this name."""

_ITERS: Final = 5
_MOST_ITERS: Final = 100
_MOST_AGENTS: Final = 100
_DIGITS: Final = 8


class Thought(msgspec.Struct, frozen=True):
    """A thought of the model in one step."""

    step: int
    text: str


class Action(msgspec.Struct, frozen=True):
    """The tool that the model calls, and its arguments."""

    step: int
    tool: str
    given: dict[str, Any]


class Observation(msgspec.Struct, frozen=True):
    """The result of the tool, a serialised ``Any``, and the time that the tool took, in milliseconds."""

    step: int
    payload: bytes
    took_ms: int = 0


class Result(msgspec.Struct, frozen=True):
    """The values of the signature's outputs, and the number of steps."""

    answer: dict[str, Any]
    steps: int


News: TypeAlias = Thought | Action | Observation | Result


class Agent(msgspec.Struct, frozen=True, eq=False):
    """An agent that CreateReActAgent made.

    Attributes:
        id: The id, ``react_<session>_<8 hex>``.
        signature: The inputs and outputs.
        tools: The descriptions of the tools.
        max_iters: How many steps a run may take.
        llm: The language model.
        wants_steps: Whether the result of a run lists the steps.
        runner: The object that runs the agent; made once for all runs.
    """

    id: str
    signature: AgentSignature
    tools: tuple[pb.ToolSpec, ...]
    max_iters: int
    llm: Llm
    wants_steps: bool
    runner: Any = None


class Running(Operation):
    """The run of an agent in its host session.

    Attributes:
        context: The context of the caller, for the tools.
    """

    __slots__ = ("context",)

    def __init__(self, session: HostSession, context: Mapping[str, str]) -> None:
        super().__init__(session, is_tool=False)
        self.context = context


class AgentRun(Protocol):
    """A run of an agent; it continues only while the caller awaits its next report."""

    def next(self) -> Awaitable[News]:
        """Wait for the next report; the last one is a `Result`, unless a BridgeError is raised."""


class Agents(Protocol):
    """Makes and runs agents; see `invoker.protocols.toolbridge.service.agents`."""

    llms: Llms

    def is_installed(self) -> bool:
        """Whether the extra ``agents`` is installed, without which no agent can be made."""

    async def prepare(self, agent: Agent) -> Agent:
        """Return the agent with its runner; may raise BridgeError."""

    def run(self, agent: Agent, running: Running, given: dict[str, Any], metadata: Headers) -> AgentRun:
        """Start a run; may raise BridgeError."""


class CreateReActAgent(UnarySession[pb.CreateReActAgentRequest]):
    """Makes an agent in a host session (T-133 to T-139)."""

    reads, answers = pb.CreateReActAgentRequest, pb.CreateReActAgentResponse
    _session: HostSession

    def __init__(self, host_sessions: HostSessions, agents: Agents, metadata: Headers = EMPTY) -> None:
        super().__init__(host_sessions, metadata)
        self._agents = agents

    def asked(self, request: pb.CreateReActAgentRequest) -> Sequence[Step]:
        """Look for the host session of the request, if necessary in the store."""
        check_id(request.session_id)
        self._request = request
        return (Ask("session", Look(space_of(request.session_id))),)

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Check the request and make the agent, once the host session is found."""
        request = self._request
        if key == "session":
            session = self._session = found_session(self.host_sessions, request.session_id, value)
            agent = self._checked(session, request)
            return (Await("agent", lambda: self._agents.prepare(agent)),)
        if isinstance(value, InvocationError):
            raise value
        agents = self._session.agents
        if len(agents) >= _MOST_AGENTS:
            text = f"the session has {len(agents)} agents, which is the limit ({_MOST_AGENTS})"
            raise BridgeError(Kind.EXHAUSTED, text, code="agents", limit=_MOST_AGENTS)
        if self._session.gone is not None:
            raise session_gone(self._session.id, self._session.gone)
        agents[value.id] = value
        return self.reply(
            pb.CreateReActAgentResponse(
                agent_id=value.id, tool_count=len(value.tools), capabilities=("react", "streaming", "cancellation")
            )
        )

    def _checked(self, session: HostSession, request: pb.CreateReActAgentRequest) -> Agent:
        signature = AgentSignature.parse(request.signature)
        tools = _selected(self.host_sessions, session, request.tool_names)
        if not 0 <= request.max_iters <= _MOST_ITERS:
            raise BridgeError(
                Kind.VALIDATION,
                f"max_iters is {request.max_iters}; expected 1 to {_MOST_ITERS}, or 0, which means {_ITERS}",
                code="range", field="max_iters",
            )  # fmt: skip
        if not self._agents.is_installed():
            error = BridgeError(
                Kind.INTERNAL, "agents need DSPy: pip install 'stream-invoker[agents]'", code="missing_dependency"
            )
            error.status = Status.FAILED_PRECONDITION
            raise error
        llm = self._agents.llms.choose(_unpacked(request.config.llm_config))
        return Agent(
            f"react_{session.id}_{secrets.token_hex(_DIGITS // 2)}",
            signature,
            tools,
            request.max_iters or _ITERS,
            llm,
            request.config.return_intermediate_steps,
        )


class ExecuteAgent(UnarySession[pb.ExecuteAgentRequest]):
    """Runs an agent, and streams its steps as they are made (T-140 to T-149)."""

    reads: ClassVar[type[Any]] = pb.ExecuteAgentRequest
    answers: ClassVar[type[Any]] = pb.AgentExecutionChunk
    _agent: Agent
    _run: AgentRun

    def __init__(self, host_sessions: HostSessions, agents: Agents, metadata: Headers = EMPTY) -> None:
        super().__init__(host_sessions, metadata)
        self._agents = agents
        self._steps: list[pb.IntermediateStep] = []

    def asked(self, request: pb.ExecuteAgentRequest) -> Sequence[Step]:
        """Find the agent, whose id contains the id of its host session."""
        self._request = request
        session_id = request.agent_id.removeprefix("react_")[: -_DIGITS - 1]
        if not session_id or not request.agent_id.startswith("react_"):
            return self.refuse(_unknown(request.agent_id))
        session = self.host_sessions.find(session_id)
        if session is None:
            return (Ask("session", question_about(self.host_sessions, session_id)),)
        return self._begin(session)

    def answered(self, key: str, value: Any) -> Sequence[Step]:
        """Send the next step or the result of the run."""
        if key == "session":
            session_id = self._request.agent_id.removeprefix("react_")[: -_DIGITS - 1]
            try:
                return self._begin(found_session(self.host_sessions, session_id, value))
            except BridgeError as error:
                return self.refuse(error)
        if isinstance(value, InvocationError):
            raise value
        chunk = self._chunk(value)
        if isinstance(value, Result):
            return self.reply(chunk)
        following = Await("next", self._run.next)
        return (Send(chunk.SerializeToString()), following) if self._request.stream else (following,)

    def fail(self, error: InvocationError) -> Sequence[Step]:
        """Send an error as the last chunk."""
        if isinstance(error, ENDS_RPC):
            return self.refuse(error)
        chunk = pb.AgentExecutionChunk(agent_id=self._request.agent_id, error=translated(error).info())
        return (Send(chunk.SerializeToString()), self._closing(Close()))

    def _begin(self, session: HostSession) -> Sequence[Step]:
        request = self._request
        agent = session.agents.get(request.agent_id)
        if agent is None:
            return self.refuse(_unknown(request.agent_id))
        self._agent = agent
        given = agent.signature.given(_values(request.input))
        context = {key: str(value) for key, value in _unpacked(request.context).items()}
        self._run = self._agents.run(agent, Running(session, context), given, self.metadata)
        return (Await("next", self._run.next),)

    def _chunk(self, news: News) -> pb.AgentExecutionChunk:
        chunk = pb.AgentExecutionChunk(agent_id=self._agent.id)
        steps = self._steps
        if isinstance(news, Thought):
            chunk.thought.text, chunk.thought.step = sendable(news.text), news.step
            steps.append(pb.IntermediateStep(thought=chunk.thought))
        elif isinstance(news, Action):
            chunk.action.tool_name, chunk.action.step = sendable(news.tool), news.step
            chunk.action.tool_input.update(plain(news.given))
            steps[-1].action.CopyFrom(chunk.action)
        elif isinstance(news, Observation):
            chunk.observation.tool_output.MergeFromString(news.payload)
            chunk.observation.step = news.step
            chunk.observation.metrics.duration_ms = news.took_ms
            steps[-1].observation.CopyFrom(chunk.observation)
        else:
            chunk.result.final_answer.update(plain(news.answer))
            chunk.result.total_steps = news.steps
            if self._agent.wants_steps:
                chunk.result.steps.extend(steps)
        if not self._agent.wants_steps:
            del steps[:-1]
        return chunk


def _selected(host_sessions: HostSessions, session: HostSession, names: Sequence[str]) -> tuple[pb.ToolSpec, ...]:
    """The tools of a session with these names; without names, all of them (T-134)."""
    specs = [*host_sessions.tools.specs, *(() if session.callback is None else session.callback.specs)]
    if not names:
        return tuple(one for one in specs if one.name != FINISH)
    known = {one.tool_id: one for one in specs} | {one.name: one for one in specs}
    found: dict[str, pb.ToolSpec] = {}
    for name in names:
        if name not in known:
            raise BridgeError(Kind.TOOL_NOT_FOUND, f"there is no tool {name!r} in the session", tool_id=name)
        if known[name].name == FINISH:
            text = "agents have a tool of their own named 'finish', so no tool of the session may have this name"
            raise BridgeError(Kind.VALIDATION, text, code="reserved", field="tool_names")
        found[known[name].name] = known[name]
    return tuple(found.values())


def _values(struct: Any) -> dict[str, Any]:
    packed = AnyMessage()
    packed.Pack(struct)
    return dict(_unpacked({"input": packed})["input"])


def _unpacked(values: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {name: unpack(value.SerializeToString()) for name, value in values.items()}
    except BadAny as error:
        raise BridgeError(Kind.VALIDATION, f"a value cannot be read: {error.reason}", code=error.code) from None


def _unknown(agent_id: str) -> BridgeError:
    text = f"there is no agent {agent_id[:300]!a} in this process; CreateReActAgent makes it"
    return BridgeError(Kind.TOOL_NOT_FOUND, text, code="agent")


def sendable(text: str) -> str:
    """A text with its surrogates escaped, since protobuf does not accept them."""
    return text.encode("utf-8", "backslashreplace").decode()


def plain(value: Any) -> Any:
    """A value in a form that a ``Struct`` can hold."""
    if isinstance(value, dict):
        return {sendable(str(key)): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    if isinstance(value, str):
        return sendable(value)
    return value if value is None or isinstance(value, (bool, int, float)) else sendable(str(value))
