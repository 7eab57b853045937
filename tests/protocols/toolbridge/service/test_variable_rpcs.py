"""Variables over real gRPC: each rpc once at each transport, and watches that end."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import grpc
import pytest
from google.protobuf import any_pb2

from invoker._pb.dspex import bridge_pb2 as pb
from tests.conftest import SLOW
from tests.transports.bridge import SERVICE, TRANSPORTS, Bridged, error_of, packed, unpacked
from tests.transports.riff import eventually, form


def square(x: int) -> int:
    return x * x


async def asquare(x: int) -> int:
    return x * x


def watching(served, *names, initial=False, channel=None):
    """A watch, which has begun once its first update has come."""
    make = (channel or served.channel).unary_stream(
        f"/{SERVICE}/WatchSessionVariables", pb.WatchVariablesRequest.SerializeToString, pb.VariableUpdate.FromString
    )
    request = pb.WatchVariablesRequest(session_id="s1", variable_names=names, include_initial=initial)
    return make(request, timeout=20 * SLOW)


def put(served, name, value, **more):
    return served.rpc(
        "SetSessionVariable",
        session_id="s1", variable_name=name, value=packed(value), create_if_missing=True, **more,
    )  # fmt: skip


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_each_rpc_is_served(kind):
    """Set, get, list, delete; and a session tells how many variables it has."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        assert put(served, "a", [1, 2]).success
        got = served.rpc("GetSessionVariable", session_id="s1", variable_name="a")
        assert unpacked(got.value) == [1, 2]
        (info,) = served.rpc("ListSessionVariables", session_id="s1").variables
        assert (info.name, info.type) == ("a", "list")
        assert served.rpc("GetSessionInfo", session_id="s1").variable_count == 1
        assert served.rpc("SetSessionVariable", session_id="s1", variable_name="a").success
        assert not served.rpc("GetSessionVariable", session_id="s1", variable_name="a").exists
        with pytest.raises(grpc.RpcError) as caught:
            served.rpc("GetSessionVariable", session_id="nobody", variable_name="a")
        code, info = error_of(caught.value)
        assert (code, info.type) == (grpc.StatusCode.NOT_FOUND, "SessionExpired")


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_T131_a_watch_that_is_cancelled_is_forgotten(kind):
    """At once, in the store."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        put(served, "a", 1)
        watch = watching(served, initial=True)
        assert next(watch).operation == "set"
        space = served.driver.store._spaces["toolbridge/s1"]
        listening = len(space.news)
        watch.cancel()
        assert eventually(lambda: len(space.news) == listening - 1)


def test_T127_a_watch_amid_a_thousand_writes_misses_nothing():
    """The first value is one of those that were written, and all later ones follow in their order."""
    with Bridged("lending", asquare) as served:
        served.session()
        put(served, "a", -1)
        begun = threading.Event()

        def write() -> None:
            for number in range(1000):
                put(served, "a", number)
                if number == 100:
                    begun.set()

        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(write)
            begun.wait()
            watch = watching(served, "a", initial=True)
            values = []
            for update in watch:
                values.append(unpacked(update.value))
                if values[-1] == 999:
                    break
            writing.result()
        assert values == list(range(values[0], 1000))


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_a_drain_ends_watches_at_once(kind):
    """With UNAVAILABLE, so that their callers watch again elsewhere; they hold up no stop."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        put(served, "a", 1)
        watch = watching(served, initial=True)
        next(watch)
        assert served.run(served.driver.drain(20 * SLOW)), "nothing had to be cut"
        with pytest.raises(grpc.RpcError) as caught:
            next(watch)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_T052_values_are_read_when_they_are_set(kind):
    """Small and large ones, of which the latter are read elsewhere; what nobody can read changes nothing."""
    with Bridged(kind, form(kind, square, asquare)) as served:
        served.session()

        for value in (["x" * 100] * 3000, b"y" * 3_000_000, 5):
            assert put(served, "a", value).success
            for size in (1, 300_000):
                odd = any_pb2.Any(type_url="x/own.Type", value=b"z" * size)
                error = served.rpc("SetSessionVariable", session_id="s1", variable_name="a", value=odd).error
                assert (error.type, error.details["code"], error.details["field"]) == (
                    "ValidationError",
                    "decode",
                    "value",
                )
            assert unpacked(served.rpc("GetSessionVariable", session_id="s1", variable_name="a").value) == value


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_watches_share_a_large_update_until_the_last_has_sent_it_or_is_gone(kind):
    """Then nothing is kept, although watches go on."""
    size = 3_900_000
    with ExitStack() as stack, Bridged(kind, form(kind, square, asquare)) as served:
        served.session()
        put(served, "a", 0)
        updates = served.bridge.host_sessions.updates
        stack.enter_context(channel := served.connect(**{"http2.bdp_probe": 0}))  # its window does not grow
        watches = [watching(served, initial=True, channel=channel) for _ in range(3)]
        for letters in (b"xy", b"zw"):
            for watch in watches:
                next(watch)
            for letter in letters:  # the client receives the first one although nobody reads it, and no more
                put(served, "a", bytes([letter]) * size)
            assert eventually(lambda: len(updates) == 1)
            watches.pop().cancel()
            for watch in watches:
                assert unpacked(next(watch).value)[:1] == letters[:1]
                assert unpacked(next(watch).value) == letters[1:] * size
            assert eventually(lambda: not len(updates))
            put(served, "a", 0)
        put(served, "a", b"x" * size)
        put(served, "a", b"y" * size)
        assert eventually(lambda: len(updates) == 1)
        watches.pop().cancel()
        assert eventually(lambda: not len(updates))
