"""What a caller can tell from an error."""

from __future__ import annotations

import pickle
from http.client import BadStatusLine

import pytest

from invoker.client import CallFailed, ConnectFailed
from invoker.errors import Status
from invoker.protocols.graphpipe.client.failure import GraphPipeError, NotReached, lost, silent
from invoker.tensors import RemoteError


def test_G085_an_error_has_code_message_and_http_status() -> None:
    """And is a CallFailed, whose status follows from that of HTTP."""
    error = GraphPipeError(9, "bad shape", 400, errors=(RemoteError(9, "bad shape"),))
    assert isinstance(error, CallFailed)
    assert (error.code, error.message, error.http_status) == (9, "bad shape", 400)
    assert error.status is Status.INVALID_ARGUMENT
    assert error.errors[0].code == 9
    assert str(error) == "code 9, HTTP 400: bad shape"


@pytest.mark.parametrize(
    ("http", "status"),
    [
        (None, Status.UNKNOWN),
        (200, Status.UNKNOWN),
        (404, Status.NOT_FOUND),
        (413, Status.RESOURCE_EXHAUSTED),
        (500, Status.UNKNOWN),
        (502, Status.UNAVAILABLE),
        (503, Status.UNAVAILABLE),
        (504, Status.DEADLINE_EXCEEDED),
    ],
)
def test_the_status_of_a_call_follows_http(http: int | None, status: Status) -> None:
    """Codes of others are their own, so they say nothing of it."""
    assert GraphPipeError(3, "no", http).status is status


def test_G112_only_what_was_not_sent_may_be_sent_again() -> None:
    """A lost connection says nothing about the function."""
    gone = lost(ConnectionResetError("reset"), "it gave no answer")
    assert (gone.code, gone.http_status, gone.is_retryable, gone.status) == (None, None, False, Status.UNAVAILABLE)
    assert str(gone) == "UNAVAILABLE: it gave no answer: reset"
    unreached = NotReached("nobody is there")
    assert isinstance(unreached, ConnectFailed)
    assert (unreached.code, unreached.is_retryable, unreached.status) == (None, True, Status.UNAVAILABLE)


def test_an_error_without_words_has_a_name() -> None:
    """Instead of nothing behind a colon."""
    assert str(lost(ConnectionError(), "it gave no answer")).endswith("it gave no answer: ConnectionError")


def test_what_a_server_of_another_protocol_says_can_be_read() -> None:
    """Its bytes are escaped, and cut."""
    gone = lost(BadStatusLine("\0\x04\xff" + "x" * 5000), "it gave no answer")
    assert str(gone).startswith(r"UNAVAILABLE: it gave no answer: '\x00\x04\xffxxx")
    assert len(str(gone)) < 300


def test_a_timeout_is_a_deadline() -> None:
    """Whoever notices it."""
    assert lost(TimeoutError("timed out"), "no answer").status is Status.DEADLINE_EXCEEDED
    assert silent("no answer").status is Status.DEADLINE_EXCEEDED


def test_errors_go_between_processes() -> None:
    """With code, text and status."""
    back = pickle.loads(pickle.dumps(GraphPipeError(9, "bad shape", 400)))
    assert (back.code, back.message, back.http_status) == (9, "bad shape", 400)
    assert pickle.loads(pickle.dumps(NotReached("nobody"))).message == "nobody"
