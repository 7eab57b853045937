"""`invoker.fetch.web`: one GET, and nothing else that a URI could make us do."""

from __future__ import annotations

import contextlib
import socket
from ipaddress import ip_address

import pytest

from invoker.errors import InvocationError, Status
from invoker.fetch.fetcher import Fetcher, FetchPolicy
from invoker.fetch.hosts import Address
from invoker.fetch.web import target_of
from tests.transports.webpeer import LOOPBACK, MOST, Answer, error, fetcher, get, ok, peer, redirect, reply


async def answered(answer: Answer, most: int = MOST) -> bytes:
    async with peer(answer) as served, fetcher(served.port) as fetching:
        return await get(fetching, f"http://example.org:{served.port}/", most)


async def failed(answer: Answer, most: int = MOST) -> InvocationError:
    async with peer(answer) as served, fetcher(served.port) as fetching:
        return await error(fetching, f"http://example.org:{served.port}/", most)


# Requests.


async def test_E055_one_plain_get_is_made() -> None:
    """The host as it was written; nothing of ours but a name; no cookies, no user name; fragments stay here."""
    async with peer({"/a/%20b?q=1&r": ok(b"hello", "Set-Cookie: a=b"), "/?x": ok(b"x")}) as served:
        async with fetcher(served.port) as fetching:
            assert await get(fetching, f"HTTP://EXAMPLE.org:{served.port}/a/%20b?q=1&r#fragment") == b"hello"
            assert await get(fetching, f"http://example.org:{served.port}?x") == b"x"
        first = served.requests[0].split("\r\n")
        assert first[0] == "GET /a/%20b?q=1&r HTTP/1.1"
        assert sorted(line for line in first[1:] if line) == [
            "Accept-Encoding: identity",
            "Accept: */*",
            "Connection: close",
            f"Host: example.org:{served.port}",
            "User-Agent: invoker",
        ]
        assert "ookie" not in served.requests[1]
        assert served.connections == 2


async def test_E055_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would resolve names by itself."""
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1/")
    assert await answered(ok(b"direct")) == b"direct"


@pytest.mark.parametrize(
    ("uri", "authority", "path"),
    [
        ("http://example.org", "example.org", "/"),
        ("http://example.org:80/x", "example.org", "/x"),
        ("https://example.org:443/x?y", "example.org", "/x?y"),
        ("https://example.org:80", "example.org:80", "/"),
        ("http://[2606:2800::1]/", "[2606:2800::1]", "/"),
        ("http://[2606:2800:0::1]:8080/", "[2606:2800::1]:8080", "/"),
    ],
)
def test_a_uri_is_taken_apart(uri: str, authority: str, path: str) -> None:
    """Default ports are not said."""
    target = target_of(uri)
    assert (target.authority, target.path) == (authority, path)


@pytest.mark.parametrize(
    "uri",
    [
        "http:example.org",
        "http:/example.org",
        "http:///example.org",
        "http://",
        "http://?x",
        "http://user@example.org/",
        "http://user:pw@example.org/",
        "http://example.org@127.0.0.1/",
        "http://127.0.0.1:80@example.org/",
        "http://example.org\\@127.0.0.1/",
        "http://example.org%00/",
        "http://example.org:/",
        "http://example.org:0/",
        "http://example.org:080/",
        "http://example.org:8a/",
        "http://example.org:80:80/",
        "http://example.org:+80/",
        "http://[::1/",
        "http://::1/",
        "http://[::1]x/",
        "http://x[::1]/",
        "http://0x7f.1/",
        "http://0/",
        "http://2130706433/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://localhost./",
        "http://%6cocalhost/",
        "http://ⓛocalhost/",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://bücher.example/",
        "http://exam ple.org/",
        "http://example.org/a b",
        "http://example.org/a\r\nX-Injected: 1",
        "http://example.org/a\tb",
        "http://example.org\n.evil/",
        "http://example.org/%",
        "http://example.org/%g0",
        "http://example.org/é",
        'http://example.org/"',
        "http://example.org/{x}",
    ],
)
def test_E055_what_could_be_read_in_two_ways_is_refused(uri: str) -> None:
    """User names, odd hosts, odd ports, and signs that no URI has."""
    with pytest.raises(InvocationError) as caught:
        target_of(uri)
    assert caught.value.status is Status.PERMISSION_DENIED


def test_E055_a_user_name_is_named_as_the_reason() -> None:
    """Without repeating the password."""
    with pytest.raises(InvocationError) as caught:
        target_of("http://user:secret@example.org/")
    assert str(caught.value) == "Invoker: Reference Refused: a reference must not have a user name or password"


# Addresses.


async def refused(uri: str, addresses: list[str], http: str = "public") -> str:
    """The text of the refusal, by the real judgement of addresses; nothing may be connected to."""

    def resolve(host: str, port: int) -> list[Address]:
        return [ip_address(text) for text in addresses]

    fetching = Fetcher(FetchPolicy(http=http), resolve=resolve)
    met = await error(fetching, uri)
    await fetching.close()
    assert met.status is Status.PERMISSION_DENIED
    return str(met)


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever connects fails the test with an error of another kind than a refusal."""

    def no(*_: object) -> None:
        raise AssertionError("a connection was made")

    monkeypatch.setattr(socket.socket, "connect", no)


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["10.1.2.3"],
        ["100.64.0.1"],
        ["169.254.169.254"],
        ["::ffff:127.0.0.1"],
        ["::ffff:93.184.216.34"],
        ["64:ff9b::7f00:1"],
        ["2002:7f00:1::1"],
        ["0.0.0.0"],
        ["224.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["2606:2800:220:1::1", "fe80::1"],
    ],
)
async def test_E055_ET67_every_address_of_a_host_must_be_public(addresses: list[str], unreachable: None) -> None:
    """One that is not is enough to refuse; the text does not say which."""
    text = await refused("http://example.org/", addresses)
    assert text == "Invoker: Reference Refused: the host 'example.org' has an address that is not allowed"


@pytest.mark.parametrize(
    "uri",
    [
        "http://127.0.0.1/",
        "http://localhost/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::ffff:169.254.169.254]/",
        "http://[::ffff:7f00:1]/",
        "https://10.0.0.1/",
    ],
)
async def test_E055_ET67_ref_http_loopback_metadata_ip_and_mapped_ipv6(uri: str, unreachable: None) -> None:
    """With the system's own resolver."""
    fetching = Fetcher(FetchPolicy(http="public"))
    met = await error(fetching, uri)
    await fetching.close()
    assert met.status is Status.PERMISSION_DENIED


async def test_E055_a_listed_host_is_judged_by_the_list(unreachable: None) -> None:
    """Others are refused before anybody asks for their addresses."""
    text = await refused("http://other.example/", ["93.184.216.34"], http="example.org,*.files.example")
    assert text == "Invoker: Reference Refused: the host 'other.example' is not allowed"
    await refused("http://a.files.example/", ["10.0.0.1"], http="example.org,*.files.example")
    await refused("http://example.org/", ["169.254.169.254"], http="example.org,*.files.example")


async def test_E055_a_listed_private_host_is_fetched_from() -> None:
    """Here loopback itself, by its name."""
    async with peer(ok(b"ours")) as served:
        fetching = Fetcher(FetchPolicy(http="localhost", ports=(served.port,)), resolve=lambda *_: [LOOPBACK])
        assert await get(fetching, f"http://localhost:{served.port}/") == b"ours"
        await fetching.close()


async def test_E055_ports_are_those_of_the_policy(unreachable: None) -> None:
    """22 is none of them."""
    text = await refused("http://example.org:22/", ["93.184.216.34"])
    assert text.endswith("the port 22 is not allowed; 80, 443 may be used")


async def test_E055_ET67_ref_dns_rebinding() -> None:
    """A host is resolved once, and connected to where it was then, whatever it resolves to next."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> list[Address]:
        asked.append(host)
        return [LOOPBACK] if len(asked) == 1 else [ip_address("127.0.0.2")]

    async with peer(ok(b"first")) as served:
        policy = FetchPolicy(http="public", ports=(served.port,))
        fetching = Fetcher(policy, resolve=resolve, is_public=lambda address: address == LOOPBACK)
        assert await get(fetching, f"http://rebind.example:{served.port}/") == b"first"
        assert asked == ["rebind.example"]
        met = await error(fetching, f"http://rebind.example:{served.port}/")
        await fetching.close()
        assert met.status is Status.PERMISSION_DENIED
        assert served.connections == 1


async def test_the_next_address_is_tried_when_one_is_dead() -> None:
    """All were checked; the first that answers is taken."""
    async with peer(ok(b"alive")) as served:
        policy = FetchPolicy(http="public", ports=(served.port,))
        dead = ip_address("127.0.0.3")  # nobody listens there
        fetching = Fetcher(policy, resolve=lambda *_: [dead, LOOPBACK], is_public=lambda address: address.is_loopback)
        assert await get(fetching, f"http://example.org:{served.port}/") == b"alive"
        await fetching.close()


async def test_an_address_that_does_not_answer_leaves_time_for_the_next() -> None:
    """Each has its part of the time."""
    dead = ip_address("127.0.0.3")
    async with peer(ok(b"alive")) as served:
        with contextlib.ExitStack() as stack:
            full = stack.enter_context(socket.create_server((str(dead), served.port), backlog=0))
            for _ in range(4):  # the queue of connections overflows, and the next are not answered
                waiting = stack.enter_context(socket.socket())
                waiting.setblocking(False)
                waiting.connect_ex(full.getsockname())
            policy = FetchPolicy(http="public", ports=(served.port,), timeout_s=1)
            fetching = Fetcher(policy, resolve=lambda *_: [dead, LOOPBACK], is_public=lambda address: True)
            assert await get(fetching, f"http://example.org:{served.port}/") == b"alive"
            await fetching.close()


# Redirects.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_E055_redirects_are_followed(status: int) -> None:
    """Relative ones too, each with a connection of its own."""
    answers = {"/a/b": redirect("../c?d", status), "/c?d": ok(b"there")}
    async with peer(answers) as served, fetcher(served.port) as fetching:
        assert await get(fetching, f"http://example.org:{served.port}/a/b") == b"there"
        assert served.paths == ["/a/b", "/c?d"]
        assert served.connections == 2


async def test_E055_the_number_of_redirects_is_limited() -> None:
    """Three are followed; a fourth is a failure."""
    answers: dict[str, Answer] = {f"/{n}": redirect(f"/{n - 1}") for n in range(1, 9)}
    async with peer({**answers, "/0": ok(b"end")}) as served, fetcher(served.port) as fetching:
        assert await get(fetching, f"http://example.org:{served.port}/3") == b"end"
        met = await error(fetching, f"http://example.org:{served.port}/8")
        assert met.status is Status.UNAVAILABLE
        assert "more than 3 redirects" in str(met)
        assert served.paths[4:] == ["/8", "/7", "/6", "/5"]


@pytest.mark.parametrize(
    "location",
    [
        "http://private.example:{port}/",
        "//private.example:{port}/",
        "http://127.0.0.2:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://user@example.org:{port}/",
        "http://example.org:1/",
        "http://0x7f.1:{port}/",
        "file:///etc/passwd",
        "ftp://example.org/",
        "data:,x",
        "http:x",
        "http://[::1",
        "//[::1",
        "/a b",
    ],
)
async def test_E055_ET67_ref_redirect_to_private_and_other_bad_places(location: str) -> None:
    """A redirect is checked like what a client sends."""
    hosts = {"private.example": ["10.0.0.1"], "127.0.0.2": ["127.0.0.2"], "::ffff:7f00:1": ["::ffff:127.0.0.1"]}
    answers: dict[str, Answer] = {"/": b""}
    async with peer(answers) as served, fetcher(served.port, hosts=hosts) as fetching:
        answers["/"] = redirect(location.format(port=served.port))
        met = await error(fetching, f"http://example.org:{served.port}/")
        assert met.status is Status.PERMISSION_DENIED
        assert served.connections == 1


async def test_a_redirect_to_nowhere_fails() -> None:
    """It says 302 and no more."""
    met = await failed(reply(302, "Content-Length: 0"))
    assert met.status is Status.UNAVAILABLE
    assert "redirects without saying where to" in str(met)
