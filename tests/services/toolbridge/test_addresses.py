"""Where hosts may be called back (T-170)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from invoker.errors import ConfigError
from invoker.fetch.hosts import Address
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.services.toolbridge.addresses import Addresses

DEFAULT = "loopback,unix"


def addresses(knob: str, **known: str) -> Addresses:
    """With a resolver that knows these names; ``_`` stands for a dot, ``|`` between addresses."""
    table = {name.replace("_", "."): value for name, value in known.items()}

    def resolver(host: str, port: int) -> Sequence[Address]:
        if host not in table:
            raise OSError("unknown")
        return [ip_address(one) for one in table[host].split("|")]

    return Addresses(knob, resolver)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("127.0.0.1:5000", "ipv4:127.0.0.1:5000"),
        ("[::1]:5000", "ipv6:[::1]:5000"),
        ("localhost:5000", "ipv4:127.0.0.1:5000"),
        ("LOCALHOST:5000", "ipv4:127.0.0.1:5000"),
        ("unix:/run/host.sock", "unix:/run/host.sock"),
    ],
)
async def test_T170_loopback_and_unix_are_allowed_by_default(text: str, target: str) -> None:
    assert await addresses(DEFAULT, localhost="127.0.0.1|::1").target(text) == target


@pytest.mark.parametrize(
    "text",
    [
        "10.0.0.1:80",
        "169.254.169.254:80",
        "example.org:443",
        "evil.example:80",
        "[fe80::1]:80",
        "0.0.0.0:80",
        "8.8.8.8:53",
        "[::ffff:127.0.0.1]:80",
        "[::ffff:7f00:1]:80",
    ],
)
async def test_T170_others_are_forbidden(text: str) -> None:
    """Also a name that somebody else makes stand for loopback."""
    with pytest.raises(BridgeError) as caught:
        await addresses(DEFAULT, evil_example="127.0.0.1", example_org="93.184.216.34").target(text)
    assert (caught.value.kind, caught.value.details["code"]) == (Kind.VALIDATION, "callback_forbidden")


@pytest.mark.parametrize("known", ["10.0.0.1", "127.0.0.1|10.0.0.1"])
async def test_T170_a_localhost_that_is_elsewhere_is_forbidden(known: str) -> None:
    """All addresses are judged, and the connection is made to those and not to the name."""
    with pytest.raises(BridgeError) as caught:
        await addresses(DEFAULT, localhost=known).target("localhost:80")
    assert caught.value.details["code"] == "callback_forbidden"


async def test_T170_the_operator_lists_more() -> None:
    """A listed name may be private; one below a listed domain must be public; loopback is not allowed by itself."""
    made = addresses(
        "host.example,*.example.org",
        host_example="10.0.0.5|10.0.0.6", a_example_org="93.184.216.34", b_example_org="10.0.0.1",
    )  # fmt: skip
    assert await made.target("host.example:80") == "ipv4:10.0.0.5:80,10.0.0.6:80"
    assert await made.target("a.example.org:80") == "ipv4:93.184.216.34:80"
    for text in ("b.example.org:80", "127.0.0.1:80", "unix:/x"):
        with pytest.raises(BridgeError) as caught:
            await made.target(text)
        assert caught.value.details["code"] == "callback_forbidden"


async def test_T170_public_allows_the_public_internet_only() -> None:
    made = addresses("public", example_org="93.184.216.34", trick_example="169.254.169.254")
    assert await made.target("example.org:80") == "ipv4:93.184.216.34:80"
    with pytest.raises(BridgeError):
        await made.target("trick.example:80")


@pytest.mark.parametrize(
    "text", ["localhost", "localhost:0", "localhost:70000", "http://localhost:80", "0x7f.1:80", ":80"]
)
async def test_T169_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(BridgeError) as caught:
        await addresses(DEFAULT, localhost="127.0.0.1").target(text)
    assert caught.value.details["code"] == "callback_address"


async def test_T169_an_unknown_host_is_unreachable() -> None:
    with pytest.raises(BridgeError) as caught:
        await addresses("host.example").target("host.example:80")
    assert caught.value.details["code"] == "callback_unreachable"


def test_a_list_with_something_else_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="INVOKER_CALLBACK_HOSTS: 'a b' is not a host"):
        Addresses("loopback,a b")


@pytest.mark.parametrize("text", ["127.0.0.1:" + "1" * 5000, "127.0.0.1:000001", "a." * 4000 + ":1", ":", "x" * 4000])
async def test_T169_what_is_no_address_is_told_in_short(text: str) -> None:
    """A port of thousands of digits is no number that Python reads, and no answer is as long as the request."""
    with pytest.raises(BridgeError) as caught:
        await addresses(DEFAULT).target(text)
    assert (caught.value.kind, caught.value.details["code"]) == (Kind.VALIDATION, "callback_address")
    assert len(caught.value.detail) < 500
