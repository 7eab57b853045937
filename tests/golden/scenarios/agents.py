"""Agents of the tool bridge: how they are made, and what is told of a run."""

from __future__ import annotations

from typing import Any

from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import pack
from invoker.core.steps import Answered
from invoker.errors import Cancelled, Status, StatusError
from invoker.protocols.toolbridge.agents import Action, CreateReActAgent, ExecuteAgent, Observation, Result, Thought
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.llms import Llms
from tests.golden.recorder import Scenario, Trace

_STEPS = [
    Thought(1, "hm"), Action(1, "square", {"x": 3}), Observation(1, pack(9), 5), Thought(2, "ah"),
    Action(2, "finish", {}),
    Result({"answer": 9, "more": [1.5, None, "a"]}, 2),
]  # fmt: skip

_CREATED: list[dict[str, Any]] = [
    {}, {"tool_names": ["square", "square", "count"]}, {"tool_names": ["cube"]}, {"tool_names": ["finish"]},
    {"max_iters": 1},
    {"max_iters": 100}, {"max_iters": 101}, {"max_iters": -1}, {"signature": "question"}, {"signature": ""},
    {"session_id": "nobody"},
    {"signature": "question: str, n: int -> answer: list[str], why"}, {"signature": "a, a -> b"},
    {"signature": "a -> a"},
    {"llm": {"provider": "os:system"}}, {"llm": {"base_url": "http://h/v1"}},
    {"llm": {"api_key": "sk-secret", "model": "m"}},
    {"llm": {"provider": "big", "temperature": 0.5}}, {"llm": {"max_tokens": "x"}}, {"llm": {"strange": 1}},
]  # fmt: skip


class _House:
    """Runs nothing: scenarios give the answers."""

    def __init__(self) -> None:
        self.llms = Llms(("scripted=m:f", "big=https://h/v1"))
        self.has_extra = True

    def is_installed(self) -> bool:
        return self.has_extra

    def prepare(self, agent: Any) -> Any:
        return agent

    def run(self, *of: Any) -> Any:
        return self

    async def next(self) -> Any:
        raise AssertionError("scenarios answer it")


class _Case:
    """A world with one session."""

    def __init__(self, world: Any) -> None:
        self.world, self.house = world, _House()
        world.init()

    def create(self, **fields: Any) -> str:
        """Make an agent, and give its id."""
        config = {name: any_of(value) for name, value in fields.pop("llm", {}).items()}
        steps = fields.pop("steps", False)
        given = {"session_id": "s1", "signature": "question -> answer", **fields}
        config = pb.AgentConfig(llm_config=config, return_intermediate_steps=steps)
        talk = self.world.ask(CreateReActAgent, pb.CreateReActAgentRequest(config=config, **given), agents=self.house)
        if talk.agent is None:
            return ""
        talk.give(Answered("agent", talk.agent))
        return next(reversed(self.world.host_sessions.sessions["s1"].agents), "")

    def execute(self, agent_id: str, answers: Any, *, stream: bool = True, **values: Any) -> None:
        request = pb.ExecuteAgentRequest(agent_id=agent_id, stream=stream)
        request.input.update(values)
        talk = self.world.ask(ExecuteAgent, request, agents=self.house)
        talk.give(*(Answered("next", one) for one in answers))


def any_of(value: Any) -> Any:
    """A value as it travels."""
    return any_pb2.Any.FromString(pack(value))


def scenarios(world: Any) -> dict[str, Scenario]:
    """By what is asked for."""
    made: dict[str, Scenario] = {}

    def created(fields: dict[str, Any]) -> Scenario:
        def scenario(trace: Trace) -> None:
            case = _Case(world(trace))
            trace.write(f"agent {case.create(**dict(fields))}")

        return scenario

    for number, fields in enumerate(_CREATED):
        made[f"agent {number}: {fields}"] = created(fields)
    made["agent: no extra"] = lambda trace: _without(_Case(world(trace)))
    made["agent: no models"] = lambda trace: _bare(_Case(world(trace)))
    made["agent: runs"] = lambda trace: _runs(_Case(world(trace)))
    return made


def _without(case: _Case) -> None:
    case.house.has_extra = False
    case.create()


def _bare(case: _Case) -> None:
    case.house.llms = Llms()
    case.create()


def _runs(case: _Case) -> None:
    agent, listing = case.create(), case.create(steps=True)
    for one in (agent, listing):
        for stream in (True, False):
            case.execute(one, _STEPS, stream=stream, question="?")
    for error in (
        BridgeError(Kind.EXHAUSTED, "no more", code="llm"), Cancelled("x"),
        StatusError(Status.DEADLINE_EXCEEDED, "late"),
    ):  # fmt: skip
        case.execute(agent, [_STEPS[0], error], question="?")
    case.execute(agent, [])
    case.execute(agent, [], question="?", more=1)
    for unknown in ("", "x", "react_", "react_12345678", "react_s1_00000000", "react_s2_00000000"):
        case.execute(unknown, [], question="?")
    case.world.note()
