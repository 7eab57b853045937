"""The table of what a gRPC door serves."""

from __future__ import annotations

import pytest

from invoker import Context, Status, StatusError
from invoker.doors.grpc.methods import CallMethod, SessionMethod, metadata_of
from invoker.message import EMPTY
from invoker.services.riff.grpc import riff_method
from tests.doors.riff import KINDS, Riff, form, start


def test_a_method_has_the_path_of_http2():
    """Of either kind."""
    assert CallMethod("a.B", "C", session=None).path == "/a.B/C"  # type: ignore[arg-type]
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
    """Through each door."""

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
def test_a_door_serves_what_its_table_says_and_nothing_else(kind):
    """Here riff under another name."""

    def echo(x: bytes) -> bytes:
        return x

    async def aecho(x: bytes) -> bytes:
        return x

    method = CallMethod("other.Service", "Echo", riff_method().session)
    with Riff(kind, form(kind, echo, aecho), door={"methods": [method]}) as riff:
        call = riff.raw(start(), path="/other.Service/Echo")
        call.data(b"x")
        assert call.rest() == [b"x"]
        assert riff.call().half_close().code.name == "UNIMPLEMENTED"
