"""Errors of the tool bridge: the closed set, what carries them, and what becomes of the invoker's own."""

from __future__ import annotations

import pytest

from invoker._pb.dspex import bridge_pb2 as pb
from invoker.core.limits import LimitReached, TimedOut
from invoker.core.store import Reason
from invoker.errors import (
    Cancelled,
    DeadlineExceeded,
    DecodeError,
    EncodeError,
    InternalError,
    InvocationError,
    LimitExceeded,
    NotReady,
    Overloaded,
    ShuttingDown,
    Status,
    StatusError,
)
from invoker.execution.bodies.runner import production_failed
from invoker.protocols.toolbridge.errors import (
    ENDS_RPC,
    TRAILER,
    BridgeError,
    Kind,
    close_with,
    session_gone,
    translated,
)
from invoker.protocols.toolbridge.toolerror import ToolError

SET = {"ToolNotFound", "ValidationError", "TimeoutError", "ResourceExhausted", "SessionExpired", "InternalError"}


class Odd(Exception):
    """An exception of an author."""


def test_T159_the_kinds_are_a_closed_set_and_the_timestamp_is_set() -> None:
    """There are six, and each error says when it was made."""
    assert {one.value for one in Kind} == SET
    info = BridgeError(Kind.VALIDATION, "no", field="a", code=3).info()
    assert (info.type, info.message, dict(info.details)) == ("ValidationError", "no", {"field": "a", "code": "3"})
    assert info.timestamp.seconds > 1_600_000_000


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (DeadlineExceeded("late"), Kind.TIMEOUT, ""),
        (Overloaded("full"), Kind.EXHAUSTED, "limit"),
        (LimitExceeded("full"), Kind.EXHAUSTED, "limit"),
        (DecodeError("bad"), Kind.VALIDATION, "decode"),
        (EncodeError("odd"), Kind.INTERNAL, "unserializable"),
        (StatusError(Status.INVALID_ARGUMENT, "no"), Kind.VALIDATION, ""),
        (StatusError(Status.NOT_FOUND, "no"), Kind.INTERNAL, ""),
        (InternalError("ours"), Kind.INTERNAL, ""),
    ],
)
def test_T159_each_error_of_the_invoker_has_a_kind(error: InvocationError, kind: Kind, code: str) -> None:
    """Whatever an invocation ends with is one of the six."""
    told = translated(error)
    assert told.kind is kind
    assert told.details.get("code", "") == code


@pytest.mark.parametrize("kind", list(Kind))
def test_T161_an_rpc_that_cannot_tell_the_error_ends_with_its_status_and_a_trailer(kind: Kind) -> None:
    """The trailer holds the whole ErrorInfo."""
    expected = {
        "ToolNotFound": Status.NOT_FOUND,
        "ValidationError": Status.INVALID_ARGUMENT,
        "TimeoutError": Status.DEADLINE_EXCEEDED,
        "ResourceExhausted": Status.RESOURCE_EXHAUSTED,
        "SessionExpired": Status.NOT_FOUND,
        "InternalError": Status.INTERNAL,
    }
    close = close_with(BridgeError(kind, "why"))
    assert close.error is not None
    assert close.error.status is expected[kind.value]
    ((name, value),) = close.trailers
    assert name == TRAILER == "dspex-error-bin"
    assert isinstance(value, bytes)
    assert pb.ErrorInfo.FromString(value).type == kind.value


@pytest.mark.parametrize("error", [Cancelled("gone"), NotReady("wait"), ShuttingDown("leaving")])
def test_who_cannot_be_served_here_hears_it_by_the_status(error: InvocationError) -> None:
    """A client may try another server then."""
    assert isinstance(error, ENDS_RPC)
    assert close_with(error).error is error


def test_T065_an_exception_of_the_author_keeps_its_text_and_class() -> None:
    """The message is its text, or the name of its class where it has none."""
    told = translated(production_failed(ValueError("boom")))
    assert (told.kind, told.detail, told.details) == (Kind.INTERNAL, "boom", {"exception": "ValueError"})
    told = translated(production_failed(Odd()))
    assert (told.detail, told.details["exception"]) == ("Odd", f"{__name__}.Odd")


def test_T065_what_the_operator_hides_stays_hidden() -> None:
    """Where peers see the type only, the message is the type; where they see nothing, not even that."""
    error = production_failed(ValueError("secret"))
    error.withhold("type")
    assert "secret" not in translated(error).detail
    error = production_failed(ValueError("secret"))
    error.withhold("none")
    assert "ValueError" not in str(translated(error).info())


def test_T054_a_timeout_tells_how_long_the_call_might_take() -> None:
    """In milliseconds."""
    told = translated(TimedOut(1.5, is_functions=True))
    assert (told.kind, told.details) == (Kind.TIMEOUT, {"timeout_ms": "1500"})


@pytest.mark.parametrize(("scope", "told"), [("function", "tool"), ("party", "session"), ("process", "global")])
def test_T058_T059_a_limit_tells_what_it_is_for(scope: str, told: str) -> None:
    """And when the next call will be allowed, where that is known."""
    error = translated(LimitReached("no", code="rate_limit", scope=scope, limit=5, retry_after_s=0.25))
    assert error.kind is Kind.EXHAUSTED
    assert error.details == {"code": "rate_limit", "scope": told, "limit": "5", "retry_after_ms": "250"}
    error = translated(LimitReached("no", code="concurrency", scope=scope, limit=5))
    assert "retry_after_ms" not in error.details


def test_T066_a_tool_may_choose_its_error() -> None:
    """The kind, the text and the details are its own; an unknown kind is an internal error."""
    told = translated(ToolError("ResourceExhausted", "later", {"retry_after_ms": 5}))
    assert (told.kind, told.detail, told.details) == (Kind.EXHAUSTED, "later", {"retry_after_ms": "5"})
    told = translated(ToolError("Odd", "no"))
    assert (told.kind, told.details) == (Kind.INTERNAL, {"original_type": "Odd"})


def test_an_error_that_knows_details_keeps_them() -> None:
    """They win over those that every error of its class gets."""
    error = LimitExceeded("slow down")
    error.details = {"code": "rate_limit", "retry_after_ms": 7}  # type: ignore[attr-defined]
    assert translated(error).details == {"code": "rate_limit", "retry_after_ms": "7"}


@pytest.mark.parametrize(
    ("reason", "code"), [(Reason.UNKNOWN, "unknown"), (Reason.EXPIRED, "expired"), (Reason.DROPPED, "cleaned")]
)
def test_T009_a_session_that_is_not_there_has_one_kind(reason: Reason, code: str) -> None:
    """Only the code tells why."""
    error = session_gone("s1", reason)
    assert (error.kind, error.details["code"]) == (Kind.EXPIRED, code)


def test_a_text_that_is_no_unicode_can_be_told() -> None:
    """A lone surrogate is escaped, because protobuf takes none."""
    assert BridgeError(Kind.INTERNAL, "a\ud800", where="\udfff").info().message == "a\\ud800"


def test_T161_a_trailer_fits_into_the_metadata_that_clients_take() -> None:
    """Callers choose what errors tell of; a client that takes 8 KiB of metadata would see another status instead."""
    details = {f"d{number}": "\x7f" * 3000 for number in range(50)} | {"field": "\u20ac" * 10_000}
    close = close_with(BridgeError(Kind.VALIDATION, "\U0001f600" * 2_000_000, code="x", **details))
    ((_, value),) = close.trailers
    assert isinstance(value, bytes)
    assert len(value) <= 2100
    info = pb.ErrorInfo.FromString(value)
    assert (info.type, info.details["code"], info.message[:3]) == ("ValidationError", "x", "\U0001f600" * 3)


def test_T159_a_response_does_not_tell_texts_of_any_length() -> None:
    """The name of a tool that does not exist may be as large as the largest request, and is told twice."""
    text = "x" * 9_000_000
    info = BridgeError(Kind.TOOL_NOT_FOUND, f"there is no tool {text}", tool_id=text).info()
    assert 4096 <= len(info.message) < 4200
    assert info.message.endswith("more characters)")
    assert len(info.details["tool_id"]) == 16_384
    assert info.details["tool_id"].endswith("x…")
    assert BridgeError(Kind.INTERNAL, "y" * 4096).info().message == "y" * 4096
