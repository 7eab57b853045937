"""`AgentHouse`: makes and runs the agents of the tool bridge; it loads DSPy for the first one."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from invoker.author.loader import load
from invoker.message import Headers
from invoker.protocols.toolbridge.agents import Agent, Running
from invoker.protocols.toolbridge.host_sessions import HostSessions
from invoker.protocols.toolbridge.llms import Llm, Llms
from invoker.protocols.toolbridge.service.agents.run import Run
from invoker.protocols.toolbridge.settings import BridgeSettings

KEY: Final = "INVOKER_LLM_KEY_"
"""The prefix of the environment variables of API keys; the provider's name follows, in capital letters."""


class AgentHouse:
    """Makes and runs the agents of one process.

    Args:
        host_sessions: The host sessions.
        settings: The settings, with the models that the operator allows.
        environ: The environment variables, with the API keys.

    Attributes:
        llms: The allowed models.
        is_well: Whether the last answer of a model came; None before the first.

    Raises:
        StartupError: A function among the models cannot be loaded.
    """

    def __init__(self, host_sessions: HostSessions, settings: BridgeSettings, environ: Mapping[str, str]) -> None:
        llms = self.llms = Llms(settings.llms, settings.llm_models)
        self.is_well: bool | None = None
        self._host_sessions = host_sessions
        self._functions: dict[str, Callable[..., Any]] = {name: load(where) for name, where in llms.functions.items()}
        self._keys = {name: environ.get(KEY + name.upper().replace("-", "_"), "") for name in llms.urls}
        self._settings = settings
        self._engines: dict[str, Any] = {}

    def is_installed(self) -> bool:
        """Whether DSPy is installed, without importing it."""
        return importlib.util.find_spec("dspy") is not None

    async def prepare(self, agent: Agent) -> Agent:
        """Return a copy of the agent that has a DSPy runner.

        Raises:
            BridgeError: DSPy refuses the agent.
        """
        react = await asyncio.to_thread(_react)  # the first import takes most of a second
        try:
            runner = await asyncio.to_thread(react.Runner, agent, self._engine(react, agent.llm))  # takes some ms
        except ValueError as error:
            raise react.refused(error) from None
        return msgspec.structs.replace(agent, runner=runner)

    def run(self, agent: Agent, running: Running, given: dict[str, Any], metadata: Headers) -> Run:
        """Begin a run.

        Raises:
            BridgeError: The session is gone.
        """
        return Run(self._host_sessions, agent, running, given, metadata)

    def _engine(self, react: Any, llm: Llm) -> Any:
        """The engine of a model; the agents of one provider share it, and its connections."""
        engine = self._engines.get(llm.provider)
        if engine is None:
            models, known = react.models, self._settings
            if llm.is_url:
                engine = models.Endpoint(
                    llm.where, self._keys[llm.provider], known.llm_timeout_s, known.llm_delays_s, self._tell
                )
            else:
                engine = models.FunctionModel(self._functions[llm.provider], self._tell)
            self._engines[llm.provider] = engine
        return engine

    def _tell(self, is_well: bool) -> None:  # noqa: FBT001 - a callback of one fact
        self.is_well = is_well

    async def close(self) -> None:
        """Close the connections to all language models."""
        engines, self._engines = list(self._engines.values()), {}
        for engine in engines:
            await engine.aclose()


def _react() -> Any:
    from invoker.protocols.toolbridge.service.agents import react

    return react
