"""The table of what a gRPC transport serves."""

from __future__ import annotations

from contextlib import nullcontext

import grpc
import pytest

from invoker import Context, Status, StatusError
from invoker.core.steps import Close, Send
from invoker.message import EMPTY
from invoker.protocols.riff.service.method import riff_method
from invoker.transports.grpc.methods import CallMethod, CallWire, LoopMethod, OnClose, SessionMethod, metadata_of
from tests.transports.riff import KINDS, Riff, form, start


def test_a_method_has_the_path_of_http2():
    """Of each kind."""
    assert CallMethod("a.B", "C", session=None).path == "/a.B/C"  # type: ignore[arg-type]
    assert LoopMethod("a.B", "C", session=None).path == "/a.B/C"  # type: ignore[arg-type]
    assert SessionMethod("a.B", "C", begin=None).path == "/a.B/C"  # type: ignore[arg-type]


def test_metadata_are_texts():
    """Values of names that end in -bin are bytes, which no function is given; nothing is made of nothing."""
    assert metadata_of([("a", "1"), ("b-bin", b"2")]) == {"a": "1"}
    assert metadata_of(()) is EMPTY
    assert metadata_of(None) is EMPTY


def test_names_that_come_several_times_have_all_their_values():
    """Joined by commas, in order (gRPC over HTTP/2, "Requests")."""
    pairs = [("a", "1"), ("b", "x"), ("a", "2, 3"), ("a", "4"), ("c-bin", b"1"), ("c-bin", b"2")]
    assert metadata_of(pairs) == {"a": "1, 2, 3, 4", "b": "x"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_has_all_values_of_its_metadata(kind):
    """Through each transport."""

    def told(x: bytes, ctx: Context) -> str:
        return ctx.metadata["x-many"]

    async def atold(x: bytes, ctx: Context) -> str:
        return ctx.metadata["x-many"]

    with Riff(kind, form(kind, told, atold)) as riff:
        call = riff.raw(start("text/plain"), metadata=(("x-many", "1"), ("x-many", "2")))
        call.data(b"x")
        assert call.half_close().rest() == [b"1, 2"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_status_text_has_no_blanks_at_its_ends(kind):
    """Node's clients lose the whole text over one; see tests/interop/test_node.py."""

    def fail(x: bytes) -> bytes:
        raise StatusError(Status.NOT_FOUND, "  nothing here \n ")

    async def afail(x: bytes) -> bytes:
        raise StatusError(Status.NOT_FOUND, "  nothing here \n ")

    with Riff(kind, form(kind, fail, afail)) as riff:
        _, code, text = riff.call(b"x").half_close().ending()
        assert (code.name, text) == ("NOT_FOUND", "nothing here")


@pytest.mark.parametrize("kind", KINDS)
def test_a_transport_serves_what_its_table_says_and_nothing_else(kind):
    """Here riff under another name."""

    def echo(x: bytes) -> bytes:
        return x

    async def aecho(x: bytes) -> bytes:
        return x

    method = CallMethod("other.Service", "Echo", riff_method().session)
    with Riff(kind, form(kind, echo, aecho), transport={"methods": [method]}) as riff:
        call = riff.raw(start(), path="/other.Service/Echo")
        call.data(b"x")
        assert call.rest() == [b"x"]
        assert riff.call().half_close().code.name == "UNIMPLEMENTED"


class Thrice:
    """A session that answers its one frame with three."""

    def receive(self, frame: bytes) -> list[Send | Close]:
        return [Send(frame), Send(frame), Send(frame), Close()]

    def half_close(self) -> list[Close]:
        return []

    def deliver(self, event: object) -> list[Close]:
        raise AssertionError(event)


@pytest.mark.parametrize("kind", KINDS)
def test_the_frames_of_a_method_on_the_loop_are_not_joined(kind):
    """Though a turn writes several of them, and whatever the functions are."""

    def echo(x: bytes) -> bytes:
        return x

    async def aecho(x: bytes) -> bytes:
        return x

    method = LoopMethod("a.B", "C", lambda _: Thrice())
    with Riff(kind, form(kind, echo, aecho), transport={"methods": [method, riff_method()]}) as riff:
        call = riff.channel.stream_stream("/a.B/C")(iter([b"x"]), timeout=20)
        assert list(call) == [b"x", b"x", b"x"]


TRAILERS = (("a", "1"), ("a", "2"), ("b-bin", b"\x00\xff"))


class Echo:
    """A session that opens nothing: a frame comes back, and the half-close ends it with trailers."""

    def __init__(self, error: StatusError | None) -> None:
        self.error = error

    def receive(self, frame: bytes) -> list[Send]:
        return [Send(frame), Send(frame)]

    def half_close(self) -> list[Close]:
        return [Close(self.error, TRAILERS)]

    def deliver(self, event: object) -> list[Send]:
        raise AssertionError(f"nothing was opened, and {event} came")


class EchoCall:
    """The same as the conversation at the end of a call."""

    settles = False

    def __init__(self, session: Echo, wire: CallWire, close: OnClose) -> None:
        self.session, self.wire, self.close = session, wire, close

    def arrived(self, frame: bytes | None) -> bool:
        if frame is None:
            self.close(self.session.half_close()[0])
        else:
            for step in self.session.receive(frame):
                self.wire.write(step.frame)
        return True

    def gone(self) -> None:
        """Nothing is left to do."""


@pytest.mark.parametrize("error", [None, StatusError(Status.ABORTED, "enough")])
@pytest.mark.parametrize(("kind", "is_session"), [(kind, is_session) for kind in KINDS for is_session in (False, True)])
def test_a_conversation_that_opens_nothing_has_headers_frames_and_trailers(kind, is_session, error):
    """The transport sends the headers before the first frame by itself, and the trailers with the status."""

    def sync(x: bytes) -> bytes:
        return x

    async def asyn(x: bytes) -> bytes:
        return x

    call_method = CallMethod("a.B", "C", lambda _: Echo(error))
    session_method = SessionMethod("a.B", "C", lambda wire, _, close, __: EchoCall(Echo(error), wire, close))
    method = session_method if is_session else call_method
    with Riff(kind, form(kind, sync, asyn), transport={"methods": [method]}) as riff:
        rpc = riff.channel.stream_stream("/a.B/C")(iter([b"x", b"y"]), timeout=20)
        got = []
        with nullcontext() if error is None else pytest.raises(grpc.RpcError):
            got.extend(rpc)
        assert b"".join(got) == b"xxyy"
        assert (rpc.code().name, rpc.details()) == (("OK", "") if error is None else ("ABORTED", str(error)))
        assert [one for one in rpc.trailing_metadata() if one[0] in ("a", "b-bin")] == list(TRAILERS)
