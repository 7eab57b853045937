"""`invoker.transports.http.inline_connection`: the one response to a request, and who may write it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from invoker.core.http import Response
from invoker.core.steps import Close
from invoker.errors import InvocationError, Overloaded
from invoker.transports.http.app import PreparedRequest, RequestSession
from invoker.transports.http.inline_connection import Connection, Reply
from invoker.transports.http.origins import Origins
from invoker.transports.http.plain import Plain, PlainHeads


class Tells(PreparedRequest):
    """Refuses with the text of the error."""

    timeout_s = None

    def begin(self, body: bytes) -> tuple[RequestSession, Sequence[Any]]:
        raise AssertionError("nothing begins here")

    def refusal(self, error: InvocationError) -> Response:
        return Response(500, (), type(error).__name__.encode())


class Stage:
    """A connection, its client, and what was written."""

    def __init__(self) -> None:
        ours, self.client = socket.socketpair()
        ours.setblocking(False)
        self.connection = Connection(ours, PlainHeads(lambda _: None, Origins()))
        self.written: list[bytes] = []

    def reply(self, deadline: float | None = None) -> Reply:
        return Reply(self._write, self.connection, Plain(1, 1, Tells(), ()), deadline)

    def _write(self, connection: Connection, plain: Plain, response: Response) -> None:
        assert (connection, plain.size) == (self.connection, 1)
        self.written.append(response.body)


@pytest.fixture
def stage() -> Iterator[Stage]:
    one = Stage()
    yield one
    one.client.close()
    one.connection.sock.close()


def elsewhere(work: Any) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_a_request_has_one_response(stage: Stage) -> None:
    """The first counts."""
    reply = stage.reply()
    assert not reply.is_over
    reply.answer(Response(200, (), b"a"))
    reply.answer(Response(200, (), b"b"))
    reply.cut(Overloaded("c"))
    assert (stage.written, reply.is_over) == ([b"a"], True)


def test_the_session_tells_errors_once_there_is_one(stage: Stage) -> None:
    """It knows whether its request has left a line in the log."""
    reply = stage.reply()
    reply.refusal = lambda error: Response(500, (), b"by the session: " + type(error).__name__.encode())
    reply.cut(Overloaded("c"))
    assert stage.written == [b"by the session: Overloaded"]


def test_a_client_that_leaves_is_noticed(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at once; one that is silent has not left, nor has one that sends its next request, which is not read."""
    reply = stage.reply()
    monkeypatch.setattr("invoker.transports.http.inline_connection.GRACE_S", 0.0)
    assert not reply.is_gone()
    stage.client.send(b"next")
    assert not reply.is_gone()
    assert stage.connection.sock.recv(9) == b"next"
    stage.client.close()
    assert reply.is_gone()
    monkeypatch.setattr("invoker.transports.http.inline_connection.GRACE_S", 1000.0)
    assert not reply.is_gone()


def test_a_connection_that_was_closed_has_no_client(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking does not fail."""
    monkeypatch.setattr("invoker.transports.http.inline_connection.GRACE_S", 0.0)
    stage.connection.sock.close()
    assert stage.reply().is_gone()


def test_whoever_got_a_response_waits_no_more(stage: Stage) -> None:
    """For the function that is as if the client had left, though the connection stays."""
    reply = stage.reply()
    reply.answer(Response(200, (), b"a"))
    assert reply.is_gone()
    assert not stage.connection.is_gone


def test_R154_the_time_of_a_request_ends_while_its_function_is_busy(stage: Stage) -> None:
    """Whoever looks first tells the client."""
    reply = stage.reply(time.monotonic() + 1000)
    assert not reply.is_gone()
    assert stage.written == []
    reply = stage.reply(time.monotonic())
    assert reply.is_gone()
    assert reply.is_gone()
    assert stage.written == [b"DeadlineExceeded"]


def test_a_response_leaves_early_if_the_thread_is_busy(stage: Stage) -> None:
    """The thread itself comes back soon, and writes it then."""
    frames = [Response(200, (), b"a")]
    reply = stage.reply()
    reply.early(frames, Close())
    assert (len(frames), stage.written) == (1, [])
    elsewhere(lambda: reply.early(frames, Close()))
    assert (frames, stage.written) == ([], [b"a"])
    elsewhere(lambda: reply.early([], Close()))
    assert stage.written == [b"a"]


def test_an_early_end_without_a_response_is_told(stage: Stage) -> None:
    """By the error; an end that has none either is our fault."""
    reply = stage.reply()
    elsewhere(lambda: reply.early([]))
    assert stage.written == []
    elsewhere(lambda: reply.early([], Close(Overloaded("no"))))
    other = stage.reply()
    elsewhere(lambda: other.early([], Close()))
    assert stage.written == [b"Overloaded", b"InternalError"]


def test_R109_the_end_of_a_body_is_certain(stage: Stage) -> None:
    """Its length was told, so nothing is waited for."""
    reply = stage.reply()
    reply.await_end()
    assert reply.settle_s == 0
