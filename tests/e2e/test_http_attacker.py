"""An attacker's script for the HTTP transport: a sync function (the short cut) and an async one (the loop's server)."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

import pytest

from tests.conftest import SLOW
from tests.e2e.rawhttp import RawHttp, post
from tests.serving import Served, serving

pytestmark = pytest.mark.timeout(20)

FORMS = ("work", "awork")


@pytest.fixture(scope="module", params=FORMS)
def served(request: pytest.FixtureRequest) -> Iterator[Served]:
    """One server for all tests of a form: what one does to it, the next one would see."""
    with serving(f"tests.e2e.attacked_functions:{request.param}", "--log-format", "json") as server:
        yield server
    assert not [line for line in server.lines if '"level":"error"' in line or "Traceback" in line]


# Pipelining.


def test_R155_pipelined_requests_are_answered_in_order_none_lost_none_doubled(served):
    """200 in one write."""
    with RawHttp(served.http) as client:
        client.send(b"".join(map(post, range(200))))
        assert [client.read().body for _ in range(200)] == [b"%d" % (n * n) for n in range(200)]
        assert client.ask(post(9)).body == b"81"


@pytest.mark.parametrize("seed", range(5))
def test_R155_pipelined_requests_cut_anywhere(served, seed):
    """A few requests of all kinds, in pieces that end within heads, bodies and chunk sizes."""
    chance = random.Random(seed)
    asked = [
        (post(3), 200, b"9"),
        (post(b"", "Transfer-Encoding: chunked", length=False) + b"1\r\n4\r\n0\r\nX-T: 1\r\n\r\n", 200, b"16"),
        (post(5, path="/nothing/here"), 404, None),
        (post(b"{"), 400, None),
        (post(b" " * 100_000 + b"6"), 200, b"36"),
        (b"DELETE / HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, None),
        (post(7, "Expect: 100-continue"), 200, b"49"),
        (b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n", 200, None),
        (post(1020), 200, b"1040400"),
        (post(8), 200, b"64"),
    ]
    chance.shuffle(asked)
    data = b"".join(one for one, _, _ in asked)
    cuts = sorted(chance.sample(range(1, len(data)), 12))
    with RawHttp(served.http) as client:
        for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
            client.send(data[begin:end])
            time.sleep(0.003)
        for _, status, body in asked:
            response = client.read()
            if response.status == 100:
                response = client.read()
            assert response.status == status
            assert body is None or response.body == body


def test_R155_a_request_cut_at_each_byte(served):
    """Where the short cut has no whole request, the server of the loop takes over what was read."""
    request = post(11)
    with RawHttp(served.http) as client:
        for at in range(1, len(request)):
            client.send(request[:at])
            time.sleep(0.001)
            client.send(request[at:])
            assert client.read().body == b"121"


@pytest.mark.parametrize("also", [1, 30, 90])
def test_R155_a_request_and_a_part_of_the_next(served, also):
    """The first is answered although the second is not here; then that one is."""
    second = post(13)
    with RawHttp(served.http) as client:
        for _ in range(20):
            client.send(post(12) + second[:also])
            assert client.read().body == b"144"
            client.send(second[also:])
            assert client.read().body == b"169"


def test_a_client_that_writes_thousands_before_it_reads(served):
    """It gets each answer, in order."""
    count = 3000
    with RawHttp(served.http) as client:
        data = b"".join(post(number % 1000) for number in range(count))
        writer = threading.Thread(target=client.send, args=(data,))
        writer.start()
        time.sleep(0.2)
        for number in range(count):
            assert client.read().body == b"%d" % ((number % 1000) ** 2)
        writer.join()


# Connections that are used again.


def test_R155_the_connection_goes_on_after_each_refusal(served):
    """404, 405, 415, 406 and what no function takes."""
    refused = [
        (post(5, path="/nothing/here"), 404),
        (b"PUT / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n5", 405),
        (post(5).replace(b"application/json", b"image/png"), 415),
        (post(5, "Accept: image/png"), 406),
        (post(b"{"), 400),
        (post(b"1 2"), 400),
    ]
    with RawHttp(served.http) as client:
        for _ in range(5):
            for request, status in refused:
                assert client.ask(request).status == status
                assert client.ask(post(4)).body == b"16"


def test_heads_that_look_alike_are_told_apart(served):
    """Whatever a connection remembers of its last head: another length, type or path is seen."""
    with RawHttp(served.http) as client:
        for _ in range(10):
            assert client.ask(post(5)).body == b"25"
            assert client.ask(post(12)).body == b"144"
            assert client.ask(post(b"7 ")).body == b"49"
            assert client.ask(post(5, path="/x")).status == 404
            assert client.ask(post(5, "Accept: image/png")).status == 406
            assert client.ask(post(5, "Accept: text/plain")).body == b"25"
            assert client.ask(post(6)).body == b"36"


def test_R155_who_asks_for_the_end_gets_it(served):
    """Connection: close, and HTTP/1.0 without keep-alive; with it the connection goes on."""
    with RawHttp(served.http) as client:
        assert client.ask(post(5, "Connection: close")).head["connection"] == "close"
        assert client.rest() == b""
    with RawHttp(served.http) as client:
        assert client.ask(post(5).replace(b"HTTP/1.1", b"HTTP/1.0")).body == b"25"
        assert client.rest() == b""


@pytest.mark.parametrize("count", [1, 3])
def test_R155_a_client_may_half_close_behind_its_requests(served, count):
    """`nc -N` does so: what is quick is answered, then the connection ends."""
    for _ in range(20):
        with RawHttp(served.http) as client:
            client.send(b"".join(map(post, range(5, 5 + count))))
            client.half_close()
            assert [client.read().body for _ in range(count)] == [b"%d" % (n * n) for n in range(5, 5 + count)]
            assert client.rest() == b""


# Expect.


def test_G005_expect_in_all_orders(served):
    """The body after the word, before it, with the head, in two parts, never; and none at all."""
    head, body = post(b"   12", "Expect: 100-continue")[:-5], b"   12"
    with RawHttp(served.http) as client:
        for _ in range(3):
            assert client.ask(head).status == 100
            assert client.ask(body).body == b"144"
            client.send(head + body)
            response = client.read()
            assert (response if response.status == 200 else client.read()).body == b"144"
            client.send(head + body[:2])
            time.sleep(0.005)
            client.send(body[2:])
            response = client.read()
            assert (response if response.status == 200 else client.read()).body == b"144"
            assert client.ask(post(b"", "Expect: 100-continue")).status in (200, 400)
    with RawHttp(served.http) as client:
        assert client.ask(post(b"   12", "Expect: 100-continue", path="/nothing/here")[:-5]).status == 404


# Upgrades.


@pytest.mark.parametrize(
    "lines",
    [
        ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA"),
        ("Connection: Upgrade", "Upgrade: websocket"),
        ("Connection: upgrade", "Upgrade: TLS/1.3"),
    ],
)
def test_R155_an_upgrade_that_is_not_offered_is_ignored(served, lines):
    """The request is answered as one of HTTP/1.1, and so is the next one."""
    with RawHttp(served.http) as client:
        assert client.ask(post(5, *lines)).body == b"25"
        assert client.ask(post(6)).body == b"36"


def test_R155_a_preface_in_the_middle_is_garbage(served):
    """Nobody comes to HTTP/2 on a connection that has begun with HTTP/1.1."""
    with RawHttp(served.http) as client:
        client.send(post(5) + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
        assert client.read().body == b"25"
        rest = client.rest()
        assert rest.startswith((b"HTTP/1.1 400", b"HTTP/1.1 505")) or rest == b""


# Clients that leave.


def test_R115_resets_at_every_stage_leave_the_server_well(served):
    """Within the head, the body, the function and the response; a good call beside each."""
    request = post(1030)
    with RawHttp(served.http) as good:
        for at in (1, 20, len(request) - 1, len(request)):
            for after_s in (0, 0.01):
                for _ in range(5):
                    client = RawHttp(served.http)
                    client.send(request[:at])
                    time.sleep(after_s)
                    client.reset()
                assert good.ask(post(3)).body == b"9"


def test_R115_who_leaves_cancels_a_function_that_takes_long(served):
    """It is logged as cancelled."""
    before = len([line for line in served.lines if '"CANCELLED"' in line])
    client = RawHttp(served.http)
    client.send(post(1700))
    time.sleep(0.05)
    client.socket.close()
    until = time.monotonic() + 5 * SLOW
    while len([line for line in served.lines if '"CANCELLED"' in line]) == before:
        assert time.monotonic() < until, "the call was not cancelled"
        time.sleep(0.02)


def test_one_that_takes_long_does_not_hold_up_others(served):
    """40 quick requests on four connections, beside two functions that sleep for half a second."""
    slow = [RawHttp(served.http) for _ in range(2)]
    clients = [RawHttp(served.http) for _ in range(4)]
    for one in slow:
        one.send(post(1600))
    began = time.monotonic()
    for number in range(40):
        assert clients[number % 4].ask(post(number)).body == b"%d" % (number * number)
    assert time.monotonic() - began < 0.5 * SLOW
    assert [one.read().body for one in slow] == [b"2560000"] * 2
    for one in (*slow, *clients):
        one.socket.close()


# The whole server.


@pytest.mark.parametrize("form", ["pour", "apour"])
def test_R127_who_never_reads_holds_nobody_else(form):
    """Sixty answers of a MiB that nobody takes; others are served meanwhile."""
    with (
        serving(f"tests.e2e.attacked_functions:{form}") as server,
        RawHttp(server.http) as deaf,
        RawHttp(server.http) as good,
    ):
        writer = threading.Thread(target=deaf.send, args=(post(1024) * 60,))
        writer.start()
        for _ in range(50):
            assert good.ask(post(1)).body == b"x" * 1024
        writer.join(10)
        assert not writer.is_alive()
        for _ in range(60):
            assert len(deaf.read().body) == 1 << 20


@pytest.mark.timeout(30)
@pytest.mark.parametrize("form", FORMS)
def test_R024_what_runs_when_the_process_stops_is_answered(form):
    """Clients on kept connections under load: as many 200 were read as functions ended well."""
    answered, lock = [0], threading.Lock()
    with serving(f"tests.e2e.attacked_functions:{form}", "--log-format", "json") as server:
        begun = threading.Barrier(9)

        def load(number: int) -> None:
            count = 0
            try:
                with RawHttp(server.http) as client:
                    begun.wait(10)
                    while True:
                        response = client.ask(post(1000 + number % 4 * 5))
                        if response.status == 200:
                            count += 1
                        if response.head.get("connection") == "close":
                            break
            except (EOFError, OSError):
                pass
            with lock:
                answered[0] += count

        threads = [threading.Thread(target=load, args=(number,)) for number in range(8)]
        for one in threads:
            one.start()
        begun.wait(10)
        time.sleep(0.3)
    for one in threads:
        one.join(20)
    ended = [line for line in server.lines if '"invocation ended"' in line]
    assert answered[0] == sum('"status":"OK"' in line for line in ended) == len(ended) > 0
