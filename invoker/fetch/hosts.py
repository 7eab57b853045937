"""Decides which hosts and addresses a reference may reach, so that clients cannot use this server's network (E-055).

There are two checks, and both are needed. The *name* must have its canonical spelling, so that `0x7f.1`, `localhost.`
or a percent-encoded letter cannot mean something else to the resolver than to us. All *addresses* of the name are
checked after resolving, since any of them may be used.

| host is | public address | private | loopback | link-local, metadata, multicast, reserved, embedded |
|--|--|--|--|--|
| any, or by ``*.example.org`` | yes | no | no | no |
| listed by its own name | yes | yes | no | no |
| listed, and `localhost` or a loopback address itself | yes | yes | yes | no |
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

from invoker.errors import ConfigError

Address: TypeAlias = IPv4Address | IPv6Address
Resolver: TypeAlias = Callable[[str, int], Sequence[Address]]
"""Returns all addresses of a host; raises OSError when it has none."""

_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_NAME_LENGTH = 253

_GLOBAL = IPv6Network("2000::/3")  # all IPv6 addresses that are assigned for unicast
_NAT64 = IPv6Network("64:ff9b::/96")
# Python 3.11 reports these blocks as `is_global`: protocols, 6to4 relays, and tunnels that hold an IPv4 address.
_SPECIAL = (
    IPv4Network("192.0.0.0/24"),
    IPv4Network("192.88.99.0/24"),
    IPv6Network("2001::/23"),
    IPv6Network("2002::/16"),
    IPv6Network("3fff::/20"),
)
_PRIVATE = (
    IPv4Network("10.0.0.0/8"),
    IPv4Network("172.16.0.0/12"),
    IPv4Network("192.168.0.0/16"),
    IPv4Network("100.64.0.0/10"),
    IPv6Network("fc00::/7"),
)
# Addresses where clouds offer secrets to their machines; 169.254.169.254 is link-local anyway.
_METADATA = frozenset(map(ip_address, ("100.100.100.200", "fd00:ec2::254", "fd20:ce::254")))


def is_public(address: Address) -> bool:
    """Whether an address is a unicast address of the public internet, and not a tunnel to another address."""
    if isinstance(address, IPv6Address):
        if address in _NAT64:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF))
        if address not in _GLOBAL or _is_isatap(address):
            return False
    special = any(address in block for block in _SPECIAL if block.version == address.version)
    return address.is_global and not address.is_multicast and not address.is_reserved and not special


def is_private(address: Address) -> bool:
    """Whether an address belongs to a private network, and is not one where clouds offer secrets of their machines."""
    return address not in _METADATA and any(address in block for block in _PRIVATE if block.version == address.version)


def is_loopback(address: Address) -> bool:
    """Whether an address is the loopback of its own family.

    An IPv6 address that contains an IPv4 address does not count, whatever the version of Python.
    """
    # Python 3.13 also reports ::ffff:127.0.0.1 as loopback.
    return address.is_loopback and (address.version == 4 or address.ipv4_mapped is None)


def host_of(text: str) -> str | None:
    """The canonical spelling of a URI's host: lower case, IPv6 in short form and without brackets; or None.

    The result is None for spellings that another program might read differently: IPv4 in octal, in hexadecimal, with
    fewer than four parts or as one number; a dot at the end; escapes; zones; and characters other than ASCII
    (international names are written as ``xn--``).
    """
    if text.startswith("["):
        try:
            return _spelt(IPv6Address(text[1:-1])) if text.endswith("]") and "%" not in text else None
        except ValueError:
            return None
    name = text.lower()
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):  # an IPv4 address; or a form such as 127.1, which some resolvers accept as one
        try:
            return str(IPv4Address(name))
        except ValueError:
            return None
    fits = text.isascii() and len(name) <= _NAME_LENGTH and all(map(_LABEL.fullmatch, labels))
    return name if fits else None


def resolve(host: str, port: int) -> list[Address]:
    """All addresses of a host, in the system's order of preference. Blocks.

    Raises:
        OSError: The host has no addresses, or the resolver does not answer.
    """
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    # A zone (`%eth0`) means that the address is only valid on this machine: cut, and refused as link-local.
    return list(dict.fromkeys(ip_address(str(entry[4][0]).partition("%")[0]) for entry in found))


class Hosts:
    """The hosts that references may name.

    Args:
        setting: ``off`` for none, ``public`` for any, or a comma list of names and addresses; ``*.example.org`` means
            all below ``example.org``, not itself. An IPv6 address may have its brackets.
        is_public: Returns whether an address is public; replaced in tests, which have only loopback.

    Raises:
        ConfigError: An entry of the list is not a host.
    """

    def __init__(self, setting: str, is_public: Callable[[Address], bool] = is_public) -> None:
        self._is_public = is_public
        self.is_off = setting == "off"
        self._is_any = setting == "public"
        entries = [] if self.is_off or self._is_any else [entry.strip() for entry in setting.split(",")]
        self._suffixes = tuple(f".{_listed(entry[2:])}" for entry in entries if entry.startswith("*."))
        self._listed = frozenset(_listed(entry) for entry in entries if not entry.startswith("*."))

    def allows(self, host: str) -> bool:
        """Whether a reference may name this host, in the spelling of `host_of`."""
        return self._is_any or host in self._listed or host.endswith(self._suffixes)

    def allows_address(self, host: str, address: Address) -> bool:
        """Whether an address of an allowed host may be connected to."""
        if self._is_public(address):
            return True
        if host not in self._listed:
            return False
        return is_private(address) or (is_loopback(address) and _names_loopback(host))


def _spelt(address: IPv6Address) -> str:
    # Python 3.13 writes an address that holds an IPv4 address with dots, older ones write hexadecimal digits only.
    mapped = address.ipv4_mapped
    return address.compressed if mapped is None else f"::ffff:{int(mapped) >> 16:x}:{int(mapped) & 0xFFFF:x}"


def _is_isatap(address: IPv6Address) -> bool:
    """Whether the lower half marks an embedded IPv4 address: RFC 5214."""
    return (int(address) >> 32) & 0xFDFFFFFF == 0x00005EFE


def _listed(entry: str) -> str:
    host = host_of(f"[{entry}]" if ":" in entry and not entry.startswith("[") else entry)
    if host is None:
        raise ConfigError(f"--ref-http: {entry!r} is not a host; expected off, public, or names such as *.example.org")
    return host


def _names_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return is_loopback(ip_address(host))
    except ValueError:
        return False
