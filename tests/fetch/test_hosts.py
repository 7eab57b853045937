"""`invoker.fetch.hosts`: which hosts and addresses a reference may lead to."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from invoker.errors import ConfigError
from invoker.fetch.hosts import Hosts, host_of, is_loopback, is_private, is_public, resolve

PUBLIC = ["93.184.216.34", "8.8.8.8", "1.1.1.1", "2606:2800:220:1::1", "2a00:1450:4001::200e", "64:ff9b::8.8.8.8"]
PRIVATE = ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "100.127.255.255", "fd12::1"]
NEVER = [
    "0.0.0.0",
    "0.1.2.3",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "169.254.0.1",
    "192.0.0.1",
    "192.0.0.170",
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.2.3",
    "240.0.0.1",
    "255.255.255.255",
    "100.100.100.200",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:0:127.0.0.1",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2001::1",
    "2001:db8::1",
    "2001:10::1",
    "3fff::1",
    "100::1",
    "fe80::1",
    "fec0::1",
    "fd00:ec2::254",
    "ff02::1",
    "2606:2800::5efe:10.0.0.1",
    "2606:2800::200:5efe:10.0.0.1",
    "4000::1",
]


def test_E055_public_addresses() -> None:
    """Unicast of the whole internet, also behind NAT64."""
    assert [text for text in PUBLIC if not is_public(ip_address(text))] == []


def test_E055_addresses_that_are_not_public() -> None:
    """Loopback, private, link-local, multicast, unspecified, reserved, and whatever holds one of them."""
    assert [text for text in PRIVATE + NEVER if is_public(ip_address(text))] == []


def test_private_addresses_are_told_from_those_that_nobody_may_list() -> None:
    """A cloud's metadata service is in a private block too."""
    assert [text for text in PRIVATE if not is_private(ip_address(text))] == []
    assert [text for text in PUBLIC + NEVER if is_private(ip_address(text))] == []


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_never_better_than_itself(address: object) -> None:
    """Neither mapped, nor compatible, nor behind NAT64 or 6to4."""
    is_plain = is_public(ip_address(str(address)))
    assert is_public(ip_address(f"64:ff9b::{address}")) is is_plain
    for prefix in ("::ffff:", "::", "64:ff9b:1::", "2001:db8::"):
        assert not is_public(ip_address(f"{prefix}{address}"))


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("example.org", "example.org"),
        ("EXAMPLE.Org", "example.org"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
        ("a_b.example", "a_b.example"),
        ("1.example", "1.example"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[0:0:0:0:0:0:0:1]", "::1"),
        ("[::FFFF:1.2.3.4]", "::ffff:102:304"),
        ("[::ffff:0.0.0.1]", "::ffff:0:1"),
        ("[::ffff:255.255.0.0]", "::ffff:ffff:0"),
    ],
)
def test_a_host_has_one_spelling(text: str, host: str) -> None:
    """Lower case; IPv6 in short form, without brackets."""
    assert host_of(text) == host


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "example.org.",
        "127.0.0.1.",
        "localhost.",
        ".example",
        "a..b",
        "0",
        "1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "127.0.0.0x1",
        "0x",
        "017700000001",
        "0177.0.0.1",
        "127.0.0.01",
        "127.0.0.256",
        "1.2.3.4.5",
        "a.1",
        "%6cocalhost",
        "local%00host",
        "bücher.example",
        "\uff11\uff12\uff17.0.0.1",
        "①②⑦.0.0.1",
        "exa\u00admple.org",
        "example。org",
        "\u212aelvin.example",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[v1.x]",
        "[::1",
        "::1",
        "[]",
        "[127.0.0.1]",
        "a b",
        "-a.example",
        "a-.example",
        "a" * 64,
        ".".join(["a" * 60] * 5),
        "user@host",
        "host:80",
    ],
)
def test_E055_odd_spellings_of_hosts_are_none(text: str) -> None:
    """What a resolver could read differently from us is not read at all."""
    assert host_of(text) is None


def may(setting: str, host: str, address: str) -> bool:
    hosts = Hosts(setting)
    return hosts.allows(host) and hosts.allows_address(host, ip_address(address))


def test_E055_off_allows_nothing() -> None:
    """Whatever its address."""
    assert Hosts("off").is_off
    assert not may("off", "example.org", "8.8.8.8")


def test_E055_public_allows_any_host_with_public_addresses() -> None:
    """Also by its address."""
    assert not Hosts("public").is_off
    assert may("public", "example.org", "8.8.8.8")
    assert may("public", "8.8.8.8", "8.8.8.8")
    for address in PRIVATE + NEVER:
        assert not may("public", "example.org", address)


def test_E055_a_listed_host_may_be_private() -> None:
    """That is what it is listed for; but neither loopback nor where a cloud keeps its secrets."""
    setting = "files.corp.example, 10.0.0.5,[fd12::1]"
    assert may(setting, "files.corp.example", "8.8.8.8")
    assert not may(setting, "example.org", "8.8.8.8")
    assert not may(setting, "a.files.corp.example", "8.8.8.8")
    assert may(setting, "10.0.0.5", "10.0.0.5")
    assert may(setting, "fd12::1", "fd12::1")
    assert [text for text in PRIVATE if not may(setting, "files.corp.example", text)] == []
    assert [text for text in NEVER if may(setting, "files.corp.example", text)] == []


def test_E055_loopback_must_be_listed_as_such() -> None:
    """A name of the net that leads to loopback is somebody's trick."""
    assert may("localhost", "localhost", "127.0.0.1")
    assert may("localhost", "localhost", "::1")
    assert may("127.0.0.1", "127.0.0.1", "127.0.0.1")
    assert may("::1", "::1", "::1")
    assert not may("example.org", "example.org", "127.0.0.1")
    assert not may("localhost", "localhost", "169.254.169.254")
    assert not may("169.254.169.254", "169.254.169.254", "169.254.169.254")
    assert not may("0.0.0.0", "0.0.0.0", "0.0.0.0")


@pytest.mark.parametrize("address", ["::ffff:127.0.0.1", "::ffff:7f00:1"])
def test_E055_an_embedded_loopback_is_none_on_each_python(address: str) -> None:
    """Python 3.13 calls it loopback, older ones do not."""
    assert not is_loopback(ip_address(address))
    assert not may("localhost", "localhost", address)
    assert not may(f"[{address}]", "::ffff:7f00:1", address)


def test_E055_a_wildcard_means_names_below_with_public_addresses() -> None:
    """Not the name itself, nor one that only ends alike."""
    setting = "*.Example.org"
    assert may(setting, "a.example.org", "8.8.8.8")
    assert may(setting, "b.a.example.org", "8.8.8.8")
    assert not may(setting, "example.org", "8.8.8.8")
    assert not may(setting, "badexample.org", "8.8.8.8")
    assert not may(setting, "a.example.org", "10.0.0.1")
    assert not may("*.localhost", "a.localhost", "127.0.0.1")


@pytest.mark.parametrize(
    "setting", ["", "a,,b", "http://a", "a:80", "*", "*.*.a", "*.", "a.*", "0x7f.1", "on off", "bücher"]
)
def test_a_list_that_names_no_host_is_refused_at_start(setting: str) -> None:
    """Rather than silently allowing less or more."""
    with pytest.raises(ConfigError, match="is not a host"):
        Hosts(setting)


def test_loopback_is_resolved_to_addresses() -> None:
    """By the system's resolver, each address once."""
    found = resolve("localhost", 80)
    assert found
    assert all(address.is_loopback for address in found)
    assert len(set(found)) == len(found)


def test_an_address_resolves_to_itself() -> None:
    """Without asking anybody."""
    assert resolve("8.8.8.8", 80) == [ip_address("8.8.8.8")]
    assert resolve("::1", 80) == [ip_address("::1")]
