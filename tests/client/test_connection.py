"""Tests of what the commands that call a server have in common."""

from __future__ import annotations

import argparse

import pytest

from invoker.client.connection import add_connection, add_tls, pairs, positive, target_of, tls_of
from invoker.client.failure import UsageError


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection(parser.add_argument_group("connection"))
    add_tls(parser)
    return parser.parse_args(arguments)


def test_target_is_host_and_port() -> None:
    """A lone port is on this machine; other names that gRPC knows go through."""
    assert target_of(":8081") == "127.0.0.1:8081"
    assert target_of("unix:/tmp/x") == "unix:/tmp/x"
    for wrong in ("localhost", "http://localhost:80"):
        with pytest.raises(UsageError, match="is not HOST:PORT"):
            target_of(wrong)


def test_metadata_are_pairs() -> None:
    """The value may hold the sign."""
    assert pairs("--metadata", parsed("--metadata", "a=b=c", "--metadata", " d =").metadata) == [
        ("a", "b=c"),
        ("d", ""),
    ]
    with pytest.raises(UsageError, match="--metadata 'x': give NAME=VALUE"):
        pairs("--metadata", ["x"])


def test_times_are_positive() -> None:
    """And finite."""
    assert parsed("--connect-timeout", "2.5").connect_timeout == positive("2.5") == 2.5
    for wrong in ("0", "-1", "inf", "nan", "x"):
        with pytest.raises(argparse.ArgumentTypeError, match="give seconds, more than 0"):
            positive(wrong)


def test_options_of_tls_imply_it(tmp_path) -> None:  # type: ignore[no-untyped-def]
    """And their files are looked at before anything is sent."""
    assert tls_of(parsed()) is None
    assert tls_of(parsed("--tls")) is not None
    made = tls_of(parsed("--server-name", "a"))
    assert made is not None
    assert made.server_name == "a"
    with pytest.raises(UsageError, match="--ca: cannot read"):
        tls_of(parsed("--ca", str(tmp_path)))
