"""`Runner`: runs an agent by DSPy's ReAct, and reports its steps as they are made.

Theory. The loop is DSPy's own: `dspy.ReAct` asks the model, calls the tool, and in the end asks for the outputs. Three
of its public attributes are replaced, and the state of each run is in a context variable::

    react.react   `_Step`: asks the model by the same instructions, but accepts any text as the tool's name and
                  arguments, reports thought and action, and turns an answer that cannot be parsed into a failed step
    react.tools   `_Toolbox`: for a step that cannot be done it returns a tool that fails (T-143)
    each tool     calls the tool of the host session, and reports the observation

DSPy's settings are given by ``dspy.context``, which is a context variable of the run's task. DSPy's global history,
traces and caches are off, since they would keep the questions to agents.
"""

from __future__ import annotations

import ast
import json
import time
from contextvars import ContextVar
from typing import Any, Final

import dspy

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.codecs.anyvalue import ANY, Unserializable, pack
from invoker.errors import InvocationError, NestedError, Status
from invoker.protocols.toolbridge.agents import FINISH, Action, Agent, Observation, Result, Thought
from invoker.protocols.toolbridge.errors import BridgeError, Kind, translated
from invoker.protocols.toolbridge.service.agents import models
from invoker.protocols.toolbridge.service.agents.run import Hands

_SHOWN: Final = 200


class _State:
    """The state of one run."""

    def __init__(self, hands: Hands) -> None:
        self.hands = hands
        self.step = 0
        self.is_finished = False
        self.problem: tuple[str, str] | None = None


_RUN: ContextVar[_State] = ContextVar("agent_run")


class Runner:
    """Runs an agent, any number of times at once.

    Args:
        agent: The agent.
        engine: Asks the agent's model.

    Raises:
        ValueError: DSPy refuses the signature or the options of the model.
    """

    def __init__(self, agent: Agent, engine: Any) -> None:
        llm = agent.llm
        try:
            self._lm = dspy.LM(
                llm.model, engine=models.Nowhere(), async_engine=engine, cache=False, num_retries=0, **llm.options
            )
        except dspy.LMConfigurationError as error:
            raise ValueError(error.message) from None
        inputs = {name: (type_, dspy.InputField()) for name, type_ in agent.signature.inputs.items()}
        self._outputs = tuple(agent.signature.outputs)
        outputs = {name: (type_, dspy.OutputField()) for name, type_ in agent.signature.outputs.items()}
        given, made = (", ".join(f"`{name}`" for name in side) for side in (inputs, outputs))
        signature = dspy.Signature({**inputs, **outputs}, f"Given the fields {given}, produce the fields {made}.")
        tools = [_tool(spec) for spec in agent.tools]
        self._react = dspy.ReAct(signature, tools, max_iters=agent.max_iters)
        self._react.react = _Step(self._react.react.signature, frozenset(self._react.tools))
        self._react.tools = _Toolbox(self._react.tools)
        self._adapter = dspy.ChatAdapter()

    async def run(self, hands: Hands, given: dict[str, Any]) -> Result:
        """Run the agent with the inputs of its signature.

        Raises:
            BridgeError: The model has failed, or its last answer lacks the outputs.
        """
        state = _State(hands)
        _RUN.set(state)
        quiet = {"callbacks": [], "disable_history": True, "trace": None, "track_usage": False}
        with dspy.context(lm=self._lm, adapter=self._adapter, warn_on_type_mismatch=False, **quiet):
            try:
                found = await self._react.acall(**given)
            except dspy.LMError as error:
                raise _failed(error) from None
            except dspy.AdapterParseError:
                code, why = ("extract", "finished") if state.is_finished else ("max_iters", "used all its steps")
                text = f"the agent has {why}, and the model's last answer does not have the outputs of the signature"
                raise BridgeError(Kind.INTERNAL, text, code=code) from None
        return Result({name: found[name] for name in self._outputs}, state.step)


class _Step(dspy.Module):  # type: ignore[misc]  # DSPy has no types
    """Asks the model for the next step."""

    def __init__(self, signature: Any, names: frozenset[str]) -> None:
        super().__init__()
        for name in ("next_tool_name", "next_tool_args"):
            signature = signature.with_updated_fields(name, type_=str)
        self._ask = dspy.Predict(signature)
        self._names = names

    async def aforward(self, **fields: Any) -> Any:
        """Ask the model, and report its thoughts and actions."""
        state = _RUN.get()
        state.problem = None
        try:
            found = await self._ask.acall(**fields)
        except dspy.AdapterParseError as error:
            thought, name, args = str(error.lm_response), "", {}
            state.problem = (Kind.VALIDATION.value, "the answer lacks next_thought, next_tool_name or next_tool_args")
        else:
            thought, name = found.next_thought, found.next_tool_name.strip().strip("\"'`")
            args = self._arguments(state, name, found.next_tool_args)
        state.step += 1
        state.is_finished = name == FINISH
        await state.hands.tell(Thought(state.step, thought))
        await state.hands.tell(Action(state.step, name, args))
        return dspy.Prediction(next_thought=thought, next_tool_name=name, next_tool_args=args)

    def _arguments(self, state: _State, name: str, text: str) -> dict[str, Any]:
        if name == FINISH:
            return {}
        if name not in self._names:
            shown = name[:_SHOWN]
            state.problem = (Kind.TOOL_NOT_FOUND.value, f"this agent has no tool {shown!a}; it has {self._listed()}")
        found = _parsed(text)
        if isinstance(found, dict) and all(isinstance(key, str) for key in found):
            return found
        if state.problem is None:
            shown = text[:_SHOWN]
            state.problem = (Kind.VALIDATION.value, f"next_tool_args is {shown!a}; expected an object of JSON")
        return {}

    def _listed(self) -> str:
        return ", ".join(sorted(self._names))


class _Toolbox(dict[str, Any]):
    """The tools by name. For a step that cannot be done, a tool that reports why."""

    def __getitem__(self, name: str) -> Any:
        return _FAILING if _RUN.get().problem is not None else super().__getitem__(name)


def _tool(spec: pb.ToolSpec) -> Any:
    """A tool of the session for DSPy, which describes it to the model; the session checks its arguments."""
    name = spec.name

    async def call(**given: Any) -> Any:
        state = _RUN.get()
        began = time.perf_counter()
        try:
            message = await state.hands.call(name, given)
            value = state.hands.value(message)
            payload = message.payload if message.media_type == ANY else pack(value)
        except Unserializable as error:
            return await _observe_error(state, Kind.INTERNAL.value, str(error), began)
        except InvocationError as error:
            return await _observe_error(state, *_words(error), began)
        await state.hands.tell(Observation(state.step, payload, _since(began)))
        return value

    return dspy.Tool(call, name=name, desc=spec.description, args={one.name: _told(one) for one in spec.arguments})


async def _fail(**_given: Any) -> Any:
    state = _RUN.get()
    assert state.problem is not None
    return await _observe_error(state, *state.problem, time.perf_counter())


_FAILING: Final = dspy.Tool(_fail, name="failing", desc="")


async def _observe_error(state: _State, kind: str, text: str, began: float) -> dict[str, Any]:
    value = {"error": {"type": kind, "message": text}}
    await state.hands.tell(Observation(state.step, pack(value), _since(began)))
    return value


def _words(error: InvocationError) -> tuple[str, str]:
    if isinstance(error, NestedError) and error.kind:
        return error.kind, error.detail
    told = translated(error)
    return told.kind.value, told.detail


def _told(argument: pb.ArgumentSpec) -> dict[str, Any]:
    """The description of an argument for the model. It has no key `type`, with which DSPy would check values."""
    made: dict[str, Any] = {"python_type": argument.python_type or "Any"}
    if argument.description:
        made["description"] = argument.description
    if argument.allowed_values:
        made["allowed_values"] = list(argument.allowed_values)
    if not argument.required:
        made["optional"] = True
    return made


def _parsed(text: str) -> Any:
    """The arguments that a model gives: JSON, with or without a fence; or a dict that was read from JSON already.

    A broken text is not repaired: a guess could call the tool with values that the model has not given.
    """
    text = text.strip()
    if text.startswith("```"):
        text = text.strip("`").removeprefix("json").strip()
    if not text:
        return {}
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _failed(error: Any) -> BridgeError:
    """The model failed (T-145). The error's own text is withheld, since some endpoints repeat the API key in it."""
    kind = Kind.EXHAUSTED if error.status == 429 else Kind.INTERNAL
    name = type(error).__name__.removeprefix("LM")
    text = f"the language model has failed: {name}" + (f", status {error.status}" if error.status else "")
    return BridgeError(kind, text, code="llm", **({"status": error.status} if error.status else {}))


def refused(error: ValueError) -> BridgeError:
    """The error of an agent that DSPy refuses."""
    made = BridgeError(Kind.VALIDATION, f"the agent cannot be made: {error}", code="agent")
    made.status = Status.INVALID_ARGUMENT
    return made


def _since(began: float) -> int:
    return round((time.perf_counter() - began) * 1000)
