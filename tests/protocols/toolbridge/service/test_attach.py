"""The tool bridge's row in the table of services: when it is served, and which rpcs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from invoker import function
from invoker.errors import ConfigError, SpecError
from invoker.protocols.toolbridge.service.attach import ToolBridgeService, ToolBridgeServiceSettings
from invoker.protocols.toolbridge.service.bridge import Bridge
from invoker.protocols.toolbridge.service.rpcs import ROWS, methods_of
from invoker.protocols.toolbridge.settings import BridgeSettings
from invoker.server.table import TABLE
from invoker.settings.setting import given
from tests.protocols.toolbridge.service.test_rpcs import around, square

TLS = {"INVOKER_TLS_CERT": "cert.pem", "INVOKER_TLS_KEY": "key.pem"}


def served(**env: str) -> bool:
    return ToolBridgeService in TABLE.served(TABLE.read({"INVOKER_HOST": "127.0.0.1", **env}))


def test_it_is_served_on_the_grpc_port_when_chosen() -> None:
    """The table knows it by its name."""
    config = TABLE.read({"INVOKER_PROTOCOLS": "toolbridge", "INVOKER_HOST": "127.0.0.1"})
    assert TABLE.served(config) == (ToolBridgeService,)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.8.8.8"])
def test_T166_loopback_needs_no_tls(host: str) -> None:
    """Only this machine can reach it."""
    assert served(INVOKER_HOST=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_T166_an_address_for_others_needs_tls_or_the_operators_word(host: str) -> None:
    """Chosen: the start is refused with the ways out. Served with the others: it is left out."""
    with pytest.raises(ConfigError, match=f"binds {host}.*--insecure-public"):
        served(INVOKER_HOST=host, INVOKER_PROTOCOLS="riff,toolbridge")
    assert not served(INVOKER_HOST=host)
    assert list(TABLE.left_out(TABLE.read({"INVOKER_HOST": host}))) == ["toolbridge"]
    assert served(INVOKER_HOST=host, INVOKER_INSECURE_PUBLIC="true")
    assert served(INVOKER_HOST=host, INVOKER_PROTOCOLS="riff,toolbridge", **TLS)


PHASES = {
    1: {"InitializeSession", "CleanupSession", "ExecuteTool", "StreamTool"},
    2: {"GetSessionVariable", "SetSessionVariable"},
    3: {"BatchExecuteTools", "CreateReActAgent", "ExecuteAgent"},
    4: {
        "GetSessionInfo",
        "GetSessionTools",
        "ListSessionVariables",
        "WatchSessionVariables",
        "HealthCheck",
        "GetMetrics",
    },
}


@pytest.mark.parametrize("phase", PHASES)
def test_T176_a_phase_serves_its_rpcs(phase: int) -> None:
    """Those of later phases are refused as unimplemented, and are no capability."""
    bridge = Bridge(around(square), BridgeSettings())
    methods = {one.name: one for one in methods_of(bridge, phase=phase)}
    served = {one.name for one in ROWS if not is_refused(methods[one.name])}
    named = {name for number, names in PHASES.items() if number <= phase for name in names}
    assert served == named & {one.name for one in ROWS if one.is_built}
    assert ("variables" in bridge.host_sessions.capabilities) == (phase >= 2)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("INVOKER_TOOL_PHASE", "5", "a whole number of at least 1 and at most 4"),
        ("INVOKER_TOOL_CRITICAL", "lm", "some of audit, isolation, llm, callback"),
    ],
)
def test_a_setting_refuses_what_means_nothing(name: str, text: str, words: str) -> None:
    """A slip of the pen stops the start; it does not switch something else on."""
    with pytest.raises(ConfigError, match=f"{name} is '{text}'; expected {words}"):
        given(ToolBridgeServiceSettings, {name: text}, {})


def is_refused(method: object) -> bool:
    from invoker.protocols.toolbridge.unary import Unbuilt

    return isinstance(method.session({}), Unbuilt)  # type: ignore[attr-defined]


@function(name="gr\u00fc\u00dfe")
def odd(x: int) -> int:
    return x


def logged(caplog: pytest.LogCaptureFixture, text: str) -> int:
    return sum(text in one.getMessage() for one in caplog.records)


def test_T022_a_name_that_no_tool_may_have_stops_those_who_asked_for_tools(caplog: pytest.LogCaptureFixture) -> None:
    """Others are served without that function, and without the bridge if it is the only one."""
    asked = replace(around(odd, square), config=TABLE.configured(host="127.0.0.1"))
    with pytest.raises(SpecError, match="gr\u00fc\u00dfe"):
        ToolBridgeService(asked).grpc_methods()
    service = ToolBridgeService(replace(asked, is_asked=False))
    assert service.grpc_methods()
    assert [one.name for one in service._bridge.host_sessions.tools] == ["square"]
    assert logged(caplog, "'gr\u00fc\u00dfe' is left out of the tool bridge") == 1
    alone = replace(around(odd), config=TABLE.configured(host="127.0.0.1"), is_asked=False)
    assert ToolBridgeService(alone).grpc_methods() == ()
    assert logged(caplog, "the tool bridge is not served") == 1


def test_T061_a_bound_of_memory_that_nobody_enforces_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    @function(memory_bytes=1 << 30)
    def bound(x: int) -> int:
        return x

    @function(memory_bytes=1 << 30, isolation="process")
    def apart(x: int) -> int:
        return x

    served = replace(around(bound, apart, square), config=TABLE.configured(host="127.0.0.1"))
    assert ToolBridgeService(served).grpc_methods()
    assert logged(caplog, "memory_bytes of bound is not enforced") == 1
    assert logged(caplog, "memory_bytes") == 1
