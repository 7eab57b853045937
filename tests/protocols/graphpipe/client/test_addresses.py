"""URLs of servers."""

from __future__ import annotations

import pytest

from invoker.protocols.graphpipe.client.addresses import Address, parse


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("http://h:9000", Address("h", 9000, target="/")),
        ("http://h/graphpipe?a=b", Address("h", 80, target="/graphpipe?a=b")),
        ("HTTP://H:1/", Address("h", 1, target="/")),
        ("https://h", Address("h", 443, target="/", is_tls=True)),
        ("http://[::1]:80/x", Address("::1", 80, target="/x")),
        ("unix+http:///run/m.sock", Address(socket="/run/m.sock", target="/")),
        ("unix+http://%2Frun%2FM.sock/graphpipe", Address(socket="/run/M.sock", target="/graphpipe")),
        ("tcp://127.0.0.1:10000", Address("127.0.0.1", 10000)),
        ("tcp://h:1/name", Address("h", 1, model="name")),
        ("tcp://h:1/", Address("h", 1)),
        ("unix://%2Frun%2Fm.sock/a%20name", Address(socket="/run/m.sock", model="a name")),
        ("unix://%2Frun%2Fm.sock", Address(socket="/run/m.sock")),
        ("unix:///run/a%20b.sock", Address(socket="/run/a b.sock")),
        ("unix:m.sock", Address(socket="m.sock")),
    ],
)
def test_G097_schemes_of_urls(url: str, address: Address) -> None:
    """HTTP, HTTPS, HTTP over a Unix socket, raw TCP and raw Unix sockets."""
    assert parse(url) == address
    assert address.is_http is bool(address.target)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("127.0.0.1:80", "begin with http"),
        ("ftp://h", "the scheme is 'ftp', not http"),
        ("", "begin with"),
        ("http://", "no host"),
        ("http://h:port", "not a URL"),
        ("http://h:99999", "not a URL"),
        ("http://me:secret@h", "headers"),
        ("http://h/#part", "#"),
        ("http://h/é", "percent-encoded"),
        ("http://h/a b", "percent-encoded"),
        ("tcp://h", "tcp://host:port"),
        ("tcp://h:1/graphpipe/name", "tcp://host:port"),
        ("unix://", "unix:///path"),
        ("unix://run/m.sock", "unix:///path"),
        ("unix://%2Frun%2Fm.sock/a/b", "unix:///path"),
        ("unix+http://", "unix\\+http:///path"),
    ],
)
def test_what_is_no_address_is_refused(url: str, why: str) -> None:
    """Before anything is sent, with what to write instead."""
    with pytest.raises(ValueError, match=why):
        parse(url)


def test_an_address_is_shown_without_its_path() -> None:
    """As errors name it."""
    assert [str(parse(one)) for one in ("http://h/p", "http://[::1]:1", "unix:///m")] == ["h:80", "[::1]:1", "unix:/m"]
