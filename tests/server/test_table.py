"""The table of services."""

from __future__ import annotations

import subprocess
import sys

import pytest

from invoker.errors import ConfigError
from invoker.protocols.evergreen.service.action_engine import ActionEngineService, ActionEngineServiceSettings
from invoker.server.table import TABLE
from invoker.settings import flag_of, setting_of


def test_a_process_without_a_protocol_does_not_load_it():
    """Neither its modules, but for its row, nor what it is translated with; nor HTTP, where there is none."""
    code = (
        "import asyncio, sys; from invoker.cli.main import build; from invoker.server.table import TABLE\n"
        "assert not any(name.startswith('invoker.protocols.') for name in sys.modules)\n"
        "assert TABLE.settings; before = set(sys.modules)\n"
        "async def main():\n"
        "    config = TABLE.configured(host='127.0.0.1', grpc_port=0, http=False, protocols=(sys.argv[1],))\n"
        "    server = build(config, 'functions.add')\n"
        "    await server.start(); await server.stop(drain_s=0)\n"
        "asyncio.run(main())\n"
        "new = sorted(set(sys.modules) - before)\n"
        "print(*sorted({name.split('.')[2] for name in new if name.startswith('invoker.protocols.')}))\n"
        "print(*(name for name in ('prometheus_client', 'h2', 'numpy') if name in sys.modules))"
    )
    for protocol in ("riff", "evergreen"):
        shown = subprocess.run([sys.executable, "-c", code, protocol], check=True, capture_output=True, text=True)
        assert shown.stdout.split() == [protocol]


@pytest.mark.parametrize(
    ("env", "flags", "text"),
    [
        ({}, {"workers": "2", "graphpipe_unix": "z"}, "--graphpipe-unix works with one process only, because"),
        (
            {"INVOKER_GRAPHPIPE_UNIX": "z"},
            {"workers": "2"},
            "INVOKER_GRAPHPIPE_UNIX works with one process only, because",
        ),
        (
            {"INVOKER_WORKERS": "2"},
            {"graphpipe_tcp": "127.0.0.1:0"},
            "--graphpipe-tcp has port 0; with several workers",
        ),
        ({}, {"tls_cert": "c.pem"}, "--tls-cert is set without INVOKER_TLS_KEY; TLS needs both"),
        ({"INVOKER_HTTP_UNIX": "z"}, {"http": False}, "INVOKER_HTTP_UNIX is set, but http is not served"),
        ({}, {"protocols": ["http"], "http": False}, "--protocols is http and --no-http is"),
        ({}, {"port": "8080", "grpc_port": "8080"}, "--port and --grpc-port are both 8080; HTTP and gRPC need a port"),
        ({}, {"protocols": ["graphpipe"]}, "--protocols is graphpipe, which needs a socket of its own"),
    ],
)
def test_what_does_not_go_together_is_named_as_it_was_given(env, flags, text):
    """By its flag, or by its variable."""
    with pytest.raises(ConfigError) as caught:
        TABLE.read(env, flags)
    assert caught.value.detail.startswith(text)
    assert caught.value.exit_code == 2


def test_every_setting_has_its_own_variable_and_flag():
    """And a sentence of help."""
    names = [setting_of(one).env for one in TABLE.settings]
    flags = [flag_of(one) for one in TABLE.settings]
    assert len(set(names)) == len(names) == len(set(flags))
    assert all(setting_of(one).help.endswith(".") for one in TABLE.settings)


def test_something_is_served():
    """`--no-http` takes the HTTP transport away from what INVOKER_PROTOCOLS says."""
    read = TABLE.read({"INVOKER_PROTOCOLS": "http,evergreen"}, {"http": False})
    assert [one.name for one in TABLE.served(read)] == ["evergreen"]
    assert not TABLE.has_http(read)
    with pytest.raises(ConfigError, match="nothing would be served"):
        TABLE.read({"INVOKER_PROTOCOLS": "http"}, {"http": False})


def test_action_engine_is_served_on_the_http_transport_when_it_is_asked_for():
    """Not by default, and not without that transport."""
    assert ActionEngineService not in TABLE.served(TABLE.read({}))
    assert ActionEngineService in TABLE.served(TABLE.read({"INVOKER_PROTOCOLS": "riff,http,action-engine"}))
    for env, flags in (
        ({"INVOKER_PROTOCOLS": "riff,action-engine"}, {}),
        ({"INVOKER_PROTOCOLS": "http,action-engine"}, {"http": False}),
    ):
        with pytest.raises(ConfigError, match="without http; action-engine is served on the HTTP port"):
            TABLE.read(env, flags)


def test_sessions_over_sockets_have_a_path():
    """It starts with a slash."""
    assert TABLE.read({}, {"socket_path": "/actions"}).of(ActionEngineServiceSettings).socket_path == "/actions"
    for text in ("actions", "/a?b", "/a b", "/a#b"):
        with pytest.raises(ConfigError, match=r"INVOKER_SOCKET_PATH.*a path that starts with /"):
            TABLE.read({"INVOKER_SOCKET_PATH": text})
