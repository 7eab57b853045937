"""Settings that a program gives."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoker.errors import ConfigError
from invoker.protocols.evergreen.actions import ActionServiceSettings
from invoker.server.given import config_of


def test_H092_values_of_python_win_over_the_environment():
    """What is not given, or is None, is what the environment says, or the default."""
    config = config_of(
        {
            "port": 0, "http": True, "drain_s": 1.5, "allowed_origins": ["https://a.example", "https://b.example"],
            "allowed_hosts": "c.example", "protocols": ("riff", "http"), "tls_cert": None, "log_level": "error",
            "http_unix": Path("/tmp/s"),
        },
        env={"PORT": "9", "GRPC_PORT": "10", "INVOKER_HTTP": "false", "INVOKER_LOG_LEVEL": "debug"},
    )  # fmt: skip
    assert (config.port, config.grpc_port, config.http, config.drain_s) == (0, 10, True, 1.5)
    assert config.allowed_origins == ("https://a.example", "https://b.example")
    assert config.allowed_hosts == ("c.example",)
    assert (config.log_level, config.http_unix, config.tls_cert) == ("error", "/tmp/s", "")
    assert config.services[0].protocols == ("riff", "http")
    assert config_of({"actions": {"ask": "m:f"}}, env={}).of(ActionServiceSettings).actions == (("ask", "m:f"),)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"drain_s": "soon"}, "drain_s is 'soon'; expected"),
        ({"max_message_bytes": True}, "max_message_bytes is 'True'; expected"),
        ({"port": 70000}, "port is '70000'; expected a port number"),
        ({"allowed_origins": ["nonsense"]}, "allowed_origins is 'nonsense'; expected"),
        ({"threads": object}, "threads is <class 'object'>; expected a str, a number"),
        ({"port": 7, "grpc_port": 7}, "port and grpc_port are both 7; HTTP and gRPC need a port each"),
        ({"protocols": ["evergreen", "ftp"]}, "protocols is 'evergreen,ftp'; expected"),
    ],
)
def test_H092_a_value_that_cannot_be_is_named_as_the_program_says_it(values, text):
    """And not as a flag or variable, which nobody has written."""
    with pytest.raises(ConfigError) as raised:
        config_of(values, env={})
    assert raised.value.detail.startswith(text)


def test_H092_an_unknown_setting_is_a_mistake_in_the_program():
    """As for any function of Python; the nearest one is named."""
    with pytest.raises(
        TypeError, match=r"^there is no setting 'max_mesage_bytes'; did you mean 'max_message_bytes'\?$"
    ):
        config_of({"max_mesage_bytes": 1}, env={})
    with pytest.raises(TypeError, match=r"^there is no setting 'xyzzy'$"):
        config_of({"xyzzy": 1}, env={})
