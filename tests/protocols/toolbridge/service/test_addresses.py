"""Where hosts may be called back (T-170)."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

import pytest

from invoker.errors import ConfigError
from invoker.fetch.hosts import Address
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.protocols.toolbridge.service.addresses import Addresses

DEFAULT = "loopback"


def addresses(setting: str, **known: str) -> Addresses:
    """With a resolver that knows these names; ``_`` stands for a dot, ``|`` between addresses."""
    table = {name.replace("_", "."): value for name, value in known.items()}

    def resolver(host: str, port: int) -> Sequence[Address]:
        if host not in table:
            raise OSError("unknown")
        return [ip_address(one) for one in table[host].split("|")]

    return Addresses(setting, resolver)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("127.0.0.1:5000", "ipv4:127.0.0.1:5000"),
        ("[::1]:5000", "ipv6:[::1]:5000"),
        ("localhost:5000", "ipv4:127.0.0.1:5000"),
        ("LOCALHOST:5000", "ipv4:127.0.0.1:5000"),
    ],
)
async def test_T170_loopback_is_allowed_by_default(text: str, target: str) -> None:
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
        "unix:/run/docker.sock",
        "unix:///run/docker.sock",
        "unix:docker.sock",
        "unix-abstract:bus",
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
    with pytest.raises(ConfigError, match="INVOKER_CALLBACK_HOSTS: 'unix:run/x' is not an absolute path"):
        Addresses("loopback,unix:run/x")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """``hosts`` is listed; ``other`` is not, and links lead to and fro. It is the current directory."""
    for name in ("hosts/deep", "other"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "hosts/out.sock").symlink_to(tmp_path / "other/a.sock")
    (tmp_path / "in.sock").symlink_to(tmp_path / "hosts/a.sock")
    (tmp_path / "door").symlink_to(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    return tmp_path.resolve()


@pytest.mark.parametrize("text", ["{}/hosts/a.sock", "//{}/hosts/a.sock", "hosts/a.sock", "{}/other/../hosts/a.sock",
    "{}/in.sock", "{}/hosts/%61.sock", "{}/hosts/deep/../a.sock"])  # fmt: skip
async def test_T170_a_unix_socket_is_allowed_by_its_path(place: Path, text: str) -> None:
    """However it is written; gRPC is told the place that was judged."""
    made = Addresses(f"unix:{place}/hosts/*.sock")
    assert await made.target(f"unix:{text.format(place)}") == f"unix:{place}/hosts/a.sock"
    assert await Addresses(f"unix:{place}/hosts/a.sock").target(f"unix:{text.format(place)}")
    assert await Addresses("unix").target(f"unix:{text.format(place)}") == f"unix:{place}/hosts/a.sock"


@pytest.mark.parametrize("text", ["{}/other/a.sock", "{}/hosts/../other/a.sock", "{}/hosts/%2e%2e/other/a.sock",
    "{}/hosts/out.sock", "{}/door/a.sock", "{}/hosts/deep/a.sock", "{}/hosts/a.sock2", "{}/hosts/a.sock%3Fx",
    "{}/hosts/a.sock/../../other/a.sock", "{}/hosts%2Fdeep/a.sock", "//other/a.sock", "{}", "/"])  # fmt: skip
async def test_T170_a_unix_socket_elsewhere_is_forbidden(place: Path, text: str) -> None:
    """By whatever way it leads out of what is listed."""
    for setting in (f"unix:{place}/hosts/*.sock", f"loopback,unix:{place}/hosts/a.sock", "unix-abstract:*", "public"):
        with pytest.raises(BridgeError) as caught:
            await Addresses(setting).target(f"unix:{text.format(place)}")
        assert caught.value.details["code"] == "callback_forbidden"


@pytest.mark.parametrize("text", ["unix:", "unix://", "unix:a\0b", "unix:a%00b", "unix-abstract:", "unix:%0a"])
async def test_T169_a_unix_socket_without_a_name_is_none(text: str) -> None:
    with pytest.raises(BridgeError) as caught:
        await Addresses("unix").target(text)
    assert caught.value.details["code"] == "callback_address"


async def test_T170_abstract_sockets_are_listed_by_name() -> None:
    made = Addresses("unix-abstract:host-*")
    assert await made.target("unix-abstract:host-1") == "unix-abstract:host-1"
    for text in ("unix-abstract:bus", "unix:host-1", "unix:/host-1"):
        with pytest.raises(BridgeError):
            await made.target(text)


@pytest.mark.parametrize("text", ["127.0.0.1:" + "1" * 5000, "127.0.0.1:000001", "a." * 4000 + ":1", ":", "x" * 4000])
async def test_T169_what_is_no_address_is_told_in_short(text: str) -> None:
    """A port of thousands of digits is no number that Python reads, and no answer is as long as the request."""
    with pytest.raises(BridgeError) as caught:
        await addresses(DEFAULT).target(text)
    assert (caught.value.kind, caught.value.details["code"]) == (Kind.VALIDATION, "callback_address")
    assert len(caught.value.detail) < 500
