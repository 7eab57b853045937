"""AgentHouse: what it needs, and what it loads."""

from __future__ import annotations

import subprocess
import sys

import pytest

from invoker.errors import ConfigError, StartupError
from invoker.protocols.toolbridge.service.agents.agent_runner import AgentHouse
from invoker.protocols.toolbridge.settings import BridgeSettings
from tests.protocols.toolbridge.hosts import new_host_sessions


def house(*llms: str) -> AgentHouse:
    return AgentHouse(new_host_sessions(), BridgeSettings(llms=llms), {})


def test_functions_are_loaded_when_the_server_starts() -> None:
    assert house("a=functions.agents:scripted").is_well is None
    with pytest.raises(StartupError, match="nothing_of_this_name"):
        house("a=nothing_of_this_name:f")
    with pytest.raises(ConfigError, match="INVOKER_LLM"):
        house("a")


def test_DSPy_is_loaded_for_the_first_agent_only() -> None:
    """It takes most of a second."""
    code = "import sys, invoker.protocols.toolbridge.service.bridge; sys.exit('dspy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


async def test_a_house_without_agents_closes() -> None:
    await house().close()


def test_T139_each_endpoint_has_its_own_key() -> None:
    """The key of one is not sent to another."""
    known = BridgeSettings(llms=("my-own=http://a/v1", "other=http://b/v1"))
    made = AgentHouse(new_host_sessions(), known, {"INVOKER_LLM_KEY_MY_OWN": "sk-1", "OPENAI_API_KEY": "sk-2"})
    assert made._keys == {"my-own": "sk-1", "other": ""}
