"""Tests of what the commands that call a server have in common."""

from __future__ import annotations

import argparse

import pytest

from invoker.connect.connection import add_connection, add_tls, count, ended, pairs, positive, target_of, tls_of
from invoker.connect.failure import CallFailed, ConnectFailed, UsageError
from invoker.errors import EncodeError, Status


def parsed(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection(parser.add_argument_group("connection"))
    add_tls(parser)
    return parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("given", "target"),
    [(":8081", "127.0.0.1:8081"), ("[::1]:8081", "[::1]:8081"), ("unix:/tmp/x", "unix:/tmp/x"),
     ("dns:///example.org:80", "dns:///example.org:80"), ("example.org:65535", "example.org:65535")],
)  # fmt: skip
def test_target_is_host_and_port(given: str, target: str) -> None:
    """A lone port is on this machine; other names that gRPC knows go through."""
    assert target_of(given) == target


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("localhost", "names no port, and is not HOST:PORT; give for example 127.0.0.1:8081"),
        ("127.0.0.1:", "names no port, and is not HOST:PORT; give for example 127.0.0.1:8081"),
        ("example.org:", "give for example example.org:8081"),
        ("example.org:http", "has the port 'http', and is not HOST:PORT; give for example example.org:8081"),
        ("example.org:65536", "has the port '65536'"),
        ("example.org:0", "has the port '0'"),
        ("::1", r"give for example \[::1\]:8081"),
        ("http://localhost:80", "is not HOST:PORT; leave http:// out: localhost:80"),
        ("grpc://localhost", "leave grpc:// out: 127.0.0.1:8081"),
    ],
)
def test_a_target_without_a_port_is_refused(given: str, text: str) -> None:
    """gRPC would dial port 443, or what is left of a number that is too large."""
    with pytest.raises(UsageError, match=text):
        target_of(given)


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


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (UsageError("give \x1b"), 2, "error: give \\x1b\n"),
        (CallFailed(Status.INTERNAL, "boom"), 1, "error: INTERNAL: boom\nhint: try boom\n"),
        (ConnectFailed(Status.UNAVAILABLE, "nobody"), 3, "error: UNAVAILABLE: nobody\nhint: try nobody\n"),
        (KeyboardInterrupt(), 130, ""),
        (OSError("disk"), 1, "error: disk\n"),
        (EncodeError("no"), 1, f"error: {EncodeError('no')}\n"),
    ],
)
def test_a_command_ends_with_a_code_and_a_sentence(
    error: BaseException, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failed call may have a hint; a defect of ours is not hidden."""

    def command() -> int:
        raise error

    assert ended(command, lambda failed: f"try {failed.detail}") == code
    assert capsys.readouterr().err == said
    assert ended(lambda: 5) == 5
    with pytest.raises(ZeroDivisionError):
        ended(lambda: 1 // 0)


def test_counts_are_whole_and_not_zero() -> None:
    assert count("12") == 12
    for text in ("0", "-1", "1.5", "\u00b2", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a count; give 1 or more"):
            count(text)
