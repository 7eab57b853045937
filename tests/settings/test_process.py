"""Settings: environment, flags, validation."""

from __future__ import annotations

import pytest

from invoker.errors import ConfigError
from invoker.server.table import TABLE
from invoker.settings import parsers, process


def test_R002_unset_ports_have_their_defaults():
    """GRPC_PORT falls back on 8081, PORT on 8080."""
    read = TABLE.read({})
    assert (read.grpc_port, read.port) == (8081, 8080)


@pytest.mark.parametrize("blank", ["", "  "])
def test_R003_a_blank_variable_counts_as_unset(blank):
    """An empty GRPC_PORT is 8081."""
    assert TABLE.read({"GRPC_PORT": blank, "PORT": blank}) == TABLE.read({})


@pytest.mark.parametrize("value", ["abc", "-1", "65536", "80.5", "0x10", "8081 8082", "٣"])
@pytest.mark.parametrize("name", ["GRPC_PORT", "PORT"])
def test_R004_a_bad_port_is_refused_by_name_and_value(name, value):
    """One sentence that names the variable, the value, and what was expected."""
    with pytest.raises(ConfigError, match=rf"{name} is .*expected a port number from 0 to 65535") as caught:
        TABLE.read({name: value})
    assert caught.value.exit_code == 2
    assert repr(value) in str(caught.value)


def test_flags_win_over_the_environment():
    """Precedence: flag, variable, default."""
    read = TABLE.read({"GRPC_PORT": "1", "INVOKER_HTTP": "no"}, {"grpc_port": "2", "http": True})
    assert (read.grpc_port, read.http) == (2, True)


@pytest.mark.parametrize(
    ("env", "text"),
    [
        ({"INVOKER_DRAIN_S": "soon"}, "expected seconds"),
        ({"INVOKER_DRAIN_S": "-1"}, "expected seconds"),
        ({"INVOKER_THREADS": "0"}, "at least 1"),
        ({"INVOKER_WORKERS": "0"}, "INVOKER_WORKERS is '0'; expected auto, or a whole number of at least 1"),
        ({"INVOKER_WORKERS": "all"}, "expected auto, or a whole number"),
        ({"INVOKER_HTTP": "maybe"}, "expected 1, true"),
        ({"INVOKER_BAD_INPUT": "400"}, "unknown or invalid-argument"),
        ({"INVOKER_TLS_CERT": "c.pem"}, "without INVOKER_TLS_KEY"),
        ({"INVOKER_TLS_CLIENT_CA": "ca.pem"}, "without INVOKER_TLS_CERT"),
        ({"INVOKER_ALLOW_CREDENTIALS": "1", "INVOKER_ALLOWED_ORIGINS": "*"}, "name the origins whose pages may send"),
        ({"INVOKER_HIGH_FRAMES": "9", "INVOKER_HARD_FRAMES": "8"}, "high_frames is 9, which is above hard_frames, 8"),
        ({"INVOKER_HIGH_BYTES": "9", "INVOKER_HARD_BYTES": "8"}, "high_bytes is 9, which is above hard_bytes, 8"),
    ],
)
def test_values_that_a_setting_cannot_have_are_refused(env, text):
    """Each says what was expected."""
    with pytest.raises(ConfigError, match=text):
        TABLE.read(env)


def test_reading_may_pause_as_late_as_the_limit():
    """The mark at which reading pauses may be equal to the limit that ends the invocation."""
    env = {f"INVOKER_{which}_{what}": "9" for which in ("HIGH", "HARD") for what in ("FRAMES", "BYTES")}
    read = TABLE.read(env)
    assert (read.high_frames, read.hard_frames, read.high_bytes, read.hard_bytes) == (9, 9, 9, 9)


def test_workers_are_a_number_or_one_for_each_core(monkeypatch):
    """One unless told otherwise."""
    monkeypatch.setattr(parsers, "usable_cores", lambda: 6)
    assert [TABLE.read(env).workers for env in ({}, {"INVOKER_WORKERS": "3"}, {"INVOKER_WORKERS": "Auto"})] == [
        1,
        3,
        6,
    ]


def test_the_address_is_loopback_outside_a_container(monkeypatch):
    """'auto' says why it chose what it chose."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(process.Path, "exists", lambda self: False)
    assert TABLE.read({}).bind_host() == ("127.0.0.1", "loopback only, outside a container")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert TABLE.read({}).bind_host()[1] == "all interfaces, inside a pod"
    assert TABLE.read({"INVOKER_HOST": "::1"}).bind_host()[0] == "::1"


def test_a_container_binds_all_interfaces(monkeypatch):
    """Its callers come from other containers."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    monkeypatch.setattr(process.Path, "exists", lambda self: True)
    assert TABLE.read({}).bind_host()[1] == "all interfaces, inside a container"
