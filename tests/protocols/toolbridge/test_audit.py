"""The line of the audit log about a tool call."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from invoker.author.decorator import function
from invoker.author.prepare import prepare_function
from invoker.codecs.anyvalue import pack
from invoker.errors import Cancelled, InvocationError
from invoker.message import Headers
from invoker.protocols.toolbridge.audit import Redaction, args_sha256, entry_of, line_of
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.toolcall import Asked
from invoker.protocols.toolbridge.tools import Tool


@function
def login(user: str, password: str, *, settings: dict[str, Any] | None = None) -> str:
    """A tool with a secret."""
    return f"{user} {password} {settings}"


TOOL = Tool(prepare_function(login).spec)


def told(
    asked: Asked, error: InvocationError | None = None, *, redaction: Redaction | None = None, tool: Any = TOOL
) -> dict[str, Any]:
    """The object of the line."""
    call = SimpleNamespace(
        asked=asked, tool=tool, via="execute", error=error, took_s=0.0123456, correlation_id="c1"
    )  # fmt: skip
    line = line_of(entry_of(call), redaction)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    made: dict[str, Any] = json.loads(line)
    return made


def test_T167_a_line_tells_who_called_what_and_how_it_ended() -> None:
    """Never an argument."""
    metadata = Headers({"x-invoker-peer": "ipv4:10.0.0.1:5", "x-invoker-identity": "host"})
    asked = Asked("s1", "login", (pack("ann"), pack("hunter2")), {}, "r1", metadata=metadata)
    made = told(asked)
    time = made.pop("time")
    assert time.endswith("Z")
    assert len(time) == len("2026-01-01T00:00:00.000Z")
    assert made == {
        "session_id": "s1", "tool_id": TOOL.id, "request_id": "r1", "correlation_id": "c1", "peer": "ipv4:10.0.0.1:5",
        "identity": "host",
        "via": "execute", "outcome": "ok", "error_type": "", "duration_ms": 12.346,
        "args_sha256": args_sha256(asked.args, asked.kwargs),
    }  # fmt: skip
    assert "hunter2" not in json.dumps(made)


@pytest.mark.parametrize(
    ("error", "outcome", "kind"),
    [(BridgeError(Kind.EXHAUSTED, "x"), "error", "ResourceExhausted"), (Cancelled("gone"), "cancelled", "Cancelled")],
)
def test_T167_refused_and_cancelled_calls_are_told_by_the_type_of_their_error(
    error: InvocationError, outcome: str, kind: str
) -> None:
    """And by what the caller called the tool, if there is none."""
    made = told(Asked("s1", "nope"), error, tool=None)
    assert (made["outcome"], made["error_type"], made["tool_id"]) == (outcome, kind, "nope")


def test_T167_the_hash_is_that_of_the_arguments_wherever_they_stand() -> None:
    """Equal for equal ones, in any order of names; never for what only reads alike."""
    assert args_sha256((b"ab", b"c"), {}) != args_sha256((b"a", b"bc"), {})
    assert args_sha256((), {"xy": b"z"}) != args_sha256((), {"x": b"yz"})
    assert args_sha256((b"a",), {"x": b"1", "y": b"2"}) == args_sha256((b"a",), {"y": b"2", "x": b"1"})
    different = [
        args_sha256((b"a", b"b"), {}), args_sha256((b"ab",), {}), args_sha256((b"a",), {"1": b"b"}),
        args_sha256((), {"0": b"a", "1": b"b"}), args_sha256((), {}),
    ]  # fmt: skip
    assert len(set(different)) == len(different)


def test_arguments_are_shown_with_what_is_secret_hidden_by_its_name() -> None:
    """At any depth; what has no name that is known is hidden too."""
    settings = {"Api_Key": "k", "deep": [{"token": "t", "n": 1}], "data": b"123", "x": float("nan"), "email": "a@b"}
    asked = Asked(
        "s1", "login", (pack("ann"), pack("hunter2"), pack("third"), pack("fourth")), {"settings": pack(settings)}
    )
    made = told(asked, redaction=Redaction(("EMAIL",)))["args"]
    assert made == {
        "user": "ann", "password": "[redacted]", "settings": {
            "Api_Key": "[redacted]", "deep": [{"token": "[redacted]", "n": 1}], "data": "3 bytes", "x": "nan",
            "email": "[redacted]",
        }, "3": "[redacted]",
    } | {"settings": made["settings"]}  # fmt: skip
    assert made["settings"]["Api_Key"] == made["settings"]["email"] == "[redacted]"
    assert made["settings"]["deep"] == [{"token": "[redacted]", "n": 1}]
    assert made["settings"]["data"] == "3 bytes"
    for secret in ("hunter2", "fourth", "a@b"):
        assert secret not in json.dumps(made)


SECRET = (
    *("password", "passwd", "pass", "pwd", "pw", "passphrase", "passcode", "passwort", "pin", "otp", "secret", "token"),
    *("api_key", "credential", "creds", "authorization", "auth", "cookie", "jwt", "bearer", "private", "dsn", "cvv"),
)
HARMLESS = (
    *("author", "authority", "passenger", "passed", "pinned", "spin", "opinion", "pwm", "signal", "design", "island"),
    *("title", "user", "email", "count", "tangent", "obsidian", "credit_note", "shotput", "seeds_of_doubt_x"),
)
SHAPES = ("{}", "db_{}", "{}_of_user", "my-{}", "{}2", "X-{}-Header", "a.{}.b", "{} of the day")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", SECRET)
def test_T167_the_kinds_of_names_of_secrets_are_hidden_in_each_spelling(name: str, shape: str) -> None:
    """Snake, kebab, camel and capitals; in a dict, and as an argument."""
    found = shape.format(name)
    words = found.replace("-", "_").replace(" ", "_").replace(".", "_").split("_")
    camel = words[0] + "".join(one.capitalize() for one in words[1:])
    for one in (found, found.upper(), found.title(), camel, camel[:1].upper() + camel[1:]):
        assert Redaction().shown(one, "hunter2") == "[redacted]", one
        asked = Asked("s1", "login", (), {"settings": pack({"deep": [{one: "hunter2"}]}), one: pack("hunter2")})
        assert "hunter2" not in json.dumps(told(asked, redaction=Redaction())["args"])


@pytest.mark.parametrize("name", HARMLESS)
def test_names_that_only_look_like_secrets_are_shown(name: str) -> None:
    assert Redaction().shown(name, "x") == "x"


def test_long_values_are_cut_and_broken_ones_are_told() -> None:
    """A line stays short."""
    made = told(Asked("s1", "login", (pack("x" * 5000), b"\xff\xff")), redaction=Redaction())["args"]
    assert len(made["user"]) == 1000
    assert made["password"].startswith("[")
    unknown = told(Asked("s1", "nope", (pack("x"),), {"a": pack(1)}), tool=None, redaction=Redaction())["args"]
    assert unknown == {"0": "[redacted]", "a": 1}
