"""CreateReActAgent and ExecuteAgent as pure sessions; a test says what the run tells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.core.steps import Answered, Ask, Await, Close, Send, Step
from invoker.core.store import Reason, Refused
from invoker.errors import Cancelled, Status, StatusError
from invoker.protocols.toolbridge.agents import (
    Action,
    CreateReActAgent,
    ExecuteAgent,
    Observation,
    Result,
    Thought,
    plain,
)
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.llms import Llms
from tests.protocols.toolbridge.calls import host_sessions_with, square
from tests.protocols.toolbridge.hosts import a_space, known
from tests.transports.bridge import packed, unpacked


def finish(x: int) -> int:
    return x


class StoreChanged:
    """A house of agents that notes what it is asked."""

    def __init__(self) -> None:
        self.llms = Llms(("scripted=m:f", "big=https://h/v1"))
        self.has_extra = True
        self.runs: list[tuple[Any, ...]] = []

    def is_installed(self) -> bool:
        return self.has_extra

    async def prepare(self, agent: Any) -> Any:
        raise AssertionError("the tests answer it")

    def run(self, *of: Any) -> Any:
        self.runs.append(of)
        return self

    async def next(self) -> Any:
        raise AssertionError("the tests answer it")


class Case:
    """`HostSessions` with one session, and agents in it."""

    def __init__(self, *functions: Any) -> None:
        self.host_sessions = host_sessions_with(*functions)
        self.session = known(self.host_sessions)
        self.house = StoreChanged()

    def create(self, signature: str = "question -> answer", **fields: Any) -> Any:
        """The response, or the Close of a refusal."""
        wants_steps = fields.pop("steps", False)
        config = {name: packed(value) for name, value in fields.pop("llm", {}).items()}
        fields.setdefault("config", pb.AgentConfig(llm_config=config, return_intermediate_steps=wants_steps))
        request = pb.CreateReActAgentRequest(session_id="s1", signature=signature, **fields)
        made = CreateReActAgent(self.host_sessions, self.house)
        (asked,) = made.receive(request.SerializeToString())
        assert isinstance(asked, Ask)
        steps = made.deliver(Answered("session", a_space()))
        if not isinstance(steps[0], Await):
            return steps[0]
        self.waiting = made
        prepared = steps[0].begin.__closure__
        assert prepared is not None
        (agent,) = [cell.cell_contents for cell in prepared if hasattr(cell.cell_contents, "max_iters")]
        self.agent = agent
        sent = made.deliver(Answered("agent", agent))
        return pb.CreateReActAgentResponse.FromString(sent[0].frame) if isinstance(sent[0], Send) else sent[0]

    def execute(self, agent_id: str, *, stream: bool = True, **values: Any) -> tuple[ExecuteAgent, Sequence[Step]]:
        request = pb.ExecuteAgentRequest(agent_id=agent_id, stream=stream)
        request.input.update(values)
        made = ExecuteAgent(self.host_sessions, self.house)
        return made, made.receive(request.SerializeToString())


def chunks(steps: Sequence[Step]) -> list[pb.AgentExecutionChunk]:
    return [pb.AgentExecutionChunk.FromString(one.frame) for one in steps if isinstance(one, Send)]


def told(session: ExecuteAgent, *news: Any) -> list[pb.AgentExecutionChunk]:
    """The chunks of all that a run tells."""
    found = []
    for one in news:
        found += chunks(session.deliver(Answered("next", one)))
    return found


def status_of(close: Any) -> tuple[Status, str]:
    assert isinstance(close, Close)
    assert isinstance(close.error, StatusError)
    info = pb.ErrorInfo.FromString(dict(close.trailers)["dspex-error-bin"])
    return close.error.status, info.details["code"]


TWO_STEPS = (
    Thought(1, "hm"),
    Action(1, "square", {"x": 3}),
    Observation(1, pack(9), 5),
    Thought(2, "ah"),
    Action(2, "finish", {}),
    Result({"answer": 9}, 2),
)


def test_T133_a_malformed_signature_ends_the_rpc() -> None:
    assert status_of(Case().create("question")) == (Status.INVALID_ARGUMENT, "signature")


def test_T134_an_unknown_tool_is_an_error() -> None:
    close = Case().create(tool_names=["square", "cube"])
    assert isinstance(close.error, BridgeError)
    assert (close.error.status, close.error.kind) == (Status.NOT_FOUND, Kind.TOOL_NOT_FOUND)


def test_T134_no_names_are_all_tools_of_the_session_and_its_host() -> None:
    case = Case()
    case.session.callback = type("Host", (), {"specs": (pb.ToolSpec(name="callback:theirs"),)})()
    assert case.create().tool_count == 3
    assert case.create(tool_names=["callback:theirs", "square", "square"]).tool_count == 2


def test_T134_a_tool_that_is_named_as_the_end_of_agents_is_none_of_theirs() -> None:
    case = Case(square, finish)
    assert case.create().tool_count == 1
    assert status_of(case.create(tool_names=["finish"])) == (Status.INVALID_ARGUMENT, "reserved")


@pytest.mark.parametrize(("asked", "used"), [(0, 5), (1, 1), (100, 100)])
def test_T135_max_iters(asked: int, used: int) -> None:
    case = Case()
    case.create(max_iters=asked)
    assert case.agent.max_iters == used


@pytest.mark.parametrize("asked", [-1, 101])
def test_T135_max_iters_out_of_range(asked: int) -> None:
    assert status_of(Case().create(max_iters=asked)) == (Status.INVALID_ARGUMENT, "range")


def test_T136_the_id_names_the_session() -> None:
    case = Case()
    made = case.create(tool_names=["square"])
    assert re.fullmatch(r"react_s1_[0-9a-f]{8}", made.agent_id)
    assert made.tool_count == 1
    assert case.session.agents == {made.agent_id: case.agent}


def test_T137_T138_the_model_is_the_operators_choice() -> None:
    case = Case()
    assert status_of(case.create(llm={"provider": "os:system"})) == (Status.PERMISSION_DENIED, "llm_forbidden")
    assert status_of(case.create(llm={"base_url": "http://h/v1"})) == (Status.PERMISSION_DENIED, "llm_forbidden")
    case.house.llms = Llms()
    assert status_of(case.create()) == (Status.FAILED_PRECONDITION, "llm_missing")


def test_T139_a_key_stays_nowhere() -> None:
    case = Case()
    made = case.create(llm={"api_key": "sk-secret"})
    assert "sk-secret" not in repr(made) + repr(case.agent)


def test_without_the_extra_the_error_says_what_to_install() -> None:
    case = Case()
    case.house.has_extra = False
    close = case.create()
    assert status_of(close) == (Status.FAILED_PRECONDITION, "missing_dependency")
    assert "pip install 'stream-invoker[agents]'" in str(close.error)


def test_a_session_has_so_many_agents() -> None:
    case = Case()
    for _ in range(100):
        case.create()
    assert status_of(case.create()) == (Status.RESOURCE_EXHAUSTED, "agents")


def test_agents_go_with_their_session() -> None:
    case = Case()
    case.create()
    case.host_sessions.remove(case.session, Reason.DROPPED)
    assert case.session.agents == {}
    assert isinstance(case.waiting, CreateReActAgent)


def test_an_agent_is_not_made_in_a_session_that_went_meanwhile() -> None:
    case = Case()
    made = CreateReActAgent(case.host_sessions, case.house)
    made.receive(pb.CreateReActAgentRequest(session_id="s1", signature="q -> a").SerializeToString())
    made.deliver(Answered("session", a_space()))
    case.host_sessions.remove(case.session, Reason.DROPPED)
    (close,) = made.deliver(Answered("agent", None))
    assert status_of(close) == (Status.NOT_FOUND, "cleaned")


def test_T140_each_step_is_told_as_it_comes() -> None:
    case = Case()
    session, steps = case.execute(case.create().agent_id, question="?")
    assert [type(one) for one in steps] == [Await]
    assert [type(one) for one in session.deliver(Answered("next", TWO_STEPS[0]))] == [Send, Await]
    found = told(session, *TWO_STEPS[1:])
    assert [one.WhichOneof("content") for one in found] == ["action", "observation", "thought", "action", "result"]
    assert [found[0].action.step, found[1].observation.step, found[2].thought.step] == [1, 1, 2]
    assert unpacked(found[1].observation.tool_output) == 9
    assert found[1].observation.metrics.duration_ms == 5
    assert session.is_closed


def test_T141_without_stream_there_is_the_result_only() -> None:
    case = Case()
    session, _ = case.execute(case.create().agent_id, question="?", stream=False)
    (only,) = told(session, *TWO_STEPS)
    assert only.result.final_answer["answer"] == 9


def test_T142_steps_are_listed_if_they_are_wanted() -> None:
    case = Case()
    session, _ = case.execute(case.create(steps=True).agent_id, question="?", stream=False)
    (only,) = told(session, *TWO_STEPS)
    assert only.result.total_steps == 2
    assert [one.thought.text for one in only.result.steps] == ["hm", "ah"]
    assert only.result.steps[0].observation.step == 1
    assert not only.result.steps[1].HasField("observation")

    session, _ = case.execute(case.create().agent_id, question="?")
    assert list(told(session, *TWO_STEPS)[-1].result.steps) == []


def test_T142_a_result_holds_whatever_a_signature_may_give() -> None:
    value = {"n": 1, "x": [1.5, None, True], "s": "a\ud800", "d": {"k": object}, "t": (1,)}
    made = plain(value)
    assert made["x"] == [1.5, None, True]
    assert made["s"].isascii()
    pb.ResultChunk().final_answer.update(made)


def test_T145_a_model_that_fails_is_told_by_a_chunk() -> None:
    case = Case()
    session, _ = case.execute(case.create().agent_id, question="?")
    (only,) = told(session, BridgeError(Kind.EXHAUSTED, "no more", code="llm"))
    assert (only.error.type, only.error.details["code"]) == ("ResourceExhausted", "llm")


@pytest.mark.parametrize(("values", "code"), [({}, "missing"), ({"question": "?", "more": 1}, "unknown")])
def test_T146_a_wrong_input_is_told_before_anything_runs(values: dict[str, Any], code: str) -> None:
    case = Case()
    _, steps = case.execute(case.create().agent_id, **values)
    (only,) = chunks(steps)
    assert (only.error.type, only.error.details["code"]) == ("ValidationError", code)
    assert isinstance(steps[-1], Close)
    assert steps[-1].error is None
    assert case.house.runs == []


@pytest.mark.parametrize("agent_id", ["", "x", "react_", "react_12345678", "react_s1_00000000", "react_s1"])
def test_T147_an_unknown_agent_ends_the_rpc(agent_id: str) -> None:
    case = Case()
    session, steps = case.execute(agent_id, question="?")
    if isinstance(steps[0], Ask):
        steps = session.deliver(Answered("session", Refused(Reason.UNKNOWN)))
        assert status_of(steps[0]) == (Status.NOT_FOUND, "unknown")
    else:
        assert status_of(steps[0]) == (Status.NOT_FOUND, "agent")


def test_T147_a_session_that_is_gone_ends_the_rpc() -> None:
    case = Case()
    agent_id = case.create().agent_id
    case.host_sessions.remove(case.session, Reason.EXPIRED)
    session, _ = case.execute(agent_id, question="?")
    (close,) = session.deliver(Answered("session", Refused(Reason.EXPIRED)))
    assert status_of(close) == (Status.NOT_FOUND, "expired")


def test_a_session_of_another_process_has_no_agents_here() -> None:
    case = Case()
    agent_id = case.create().agent_id
    case.host_sessions.remove(case.session, Reason.UNKNOWN)
    session, _ = case.execute(agent_id, question="?")
    (close,) = session.deliver(Answered("session", a_space()))
    assert status_of(close) == (Status.NOT_FOUND, "agent")


def test_context_goes_to_the_tools() -> None:
    case = Case()
    request = pb.ExecuteAgentRequest(agent_id=case.create().agent_id, context={"user": packed("ann")})
    request.input.update({"question": "?"})
    ExecuteAgent(case.host_sessions, case.house).receive(request.SerializeToString())
    assert case.house.runs[0][1].context == {"user": "ann"}


def test_a_caller_that_is_gone_is_told_nothing() -> None:
    case = Case()
    session, _ = case.execute(case.create().agent_id, question="?")
    (close,) = session.deliver(Answered("next", Cancelled()))
    assert isinstance(close, Close)
    assert isinstance(close.error, Cancelled)
