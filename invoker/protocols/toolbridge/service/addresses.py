"""`Addresses`: where hosts of the tool bridge may be called back, so that no caller can misuse this server.

A host names the address of its own tools in InitializeSession. It is checked in two steps, as a reference is
(`invoker.fetch.hosts`): the name as it is written, and all addresses that it resolves to. The connection is then made
to those addresses and not to the name, since a name may resolve to others a moment later. The path of a Unix socket is
judged by where its links lead, and the connection is made there.
"""

from __future__ import annotations

import asyncio
import os
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, ip_address
from pathlib import PurePosixPath
from typing import Final
from urllib.parse import quote, unquote

from invoker.errors import ConfigError
from invoker.fetch.hosts import Address, Hosts, Resolver, host_of, is_loopback, resolve
from invoker.protocols.toolbridge.errors import BridgeError, Kind
from invoker.settings import parsers as parse

_MOST_PORT: Final = 65_535
_PORT_DIGITS: Final = 5
_SHOWN: Final = 300
_UNIX: Final = ("unix:", "unix-abstract:")


class Addresses:
    """The addresses that may be called back.

    Args:
        setting: ``off``, or a comma list: ``loopback``; hosts as INVOKER_REF_HTTP has them; ``unix:PATH`` and
            ``unix-abstract:NAME``, where ``*`` stands for any characters but a slash, or ``unix`` for every socket.
        resolver: Finds the addresses of a name.

    Raises:
        ConfigError: An entry of the list is neither a host nor an absolute path.
    """

    def __init__(self, setting: str, resolver: Resolver = resolve) -> None:
        entries = {entry.strip() for entry in setting.split(",")} - {"off", ""}
        self._allows_loopback = "loopback" in entries
        self._allows_unix = "unix" in entries
        self._sockets = {one for one in entries if one.startswith(_UNIX)}
        for one in self._sockets:
            if one.startswith("unix:") and not one.startswith("unix:/"):
                raise ConfigError(f"INVOKER_CALLBACK_HOSTS: {one!r} is not an absolute path; expected unix:/PATH")
        hosts = sorted(entries - self._sockets - {"loopback", "unix"})
        for one in hosts:
            if one != "public" and host_of(one.removeprefix("*.")) is None:
                raise ConfigError(
                    f"INVOKER_CALLBACK_HOSTS: {one!r} is not a host; expected off, loopback, unix:/PATH, unix, public, "
                    "or names such as *.example.org"
                )
        listed = ",".join(one for one in hosts if one != "public")
        self._hosts = (Hosts("public" if "public" in hosts else "off"), Hosts(listed or "off"))
        self._resolve = resolver

    async def target(self, text: str) -> str:
        """The target to which gRPC connects.

        Args:
            text: ``host:port``, ``[IPv6]:port``, or ``unix:PATH``.

        Raises:
            BridgeError: The text is not an address (T-169), or the address must not be called (T-170).
        """
        if text.startswith(_UNIX):
            return await asyncio.to_thread(self._socket, text)
        name, _, digits = text.rpartition(":")
        host = host_of(name)
        is_number = digits.isascii() and digits.isdigit() and len(digits) <= _PORT_DIGITS
        if host is None or not is_number or not 0 < int(digits) <= _MOST_PORT:
            raise _none(text)
        may_be_here = self._allows_loopback and parse.is_loopback(host)
        hosts = [one for one in self._hosts if one.allows(host)]
        if not may_be_here and not hosts:
            raise _forbidden(text)
        found = await self._addresses(host, int(digits))
        for one in found:
            if not (may_be_here and is_loopback(one)) and not any(two.allows_address(host, one) for two in hosts):
                raise _forbidden(text)
        same = [one for one in found if one.version == found[0].version]
        if isinstance(found[0], IPv4Address):
            return "ipv4:" + ",".join(f"{one}:{digits}" for one in same)
        return "ipv6:" + ",".join(f"[{one}]:{digits}" for one in same)

    def _socket(self, text: str) -> str:
        """The target of a Unix socket, in the form in which gRPC connects to the checked path."""
        scheme, _, rest = text.partition(":")
        name = unquote(rest.removeprefix("//"))
        if not name or not name.isprintable():
            raise _none(text)
        is_path = scheme == "unix"
        if is_path:
            name = os.path.realpath(name)
        if not self._allows_unix and not any(
            PurePosixPath(name).match(pattern) if is_path else fnmatchcase(name, pattern)
            for kind, _, pattern in (one.partition(":") for one in self._sockets)
            if kind == scheme
        ):
            raise _forbidden(text)
        return f"{scheme}:{quote(name)}"

    async def _addresses(self, host: str, port: int) -> list[Address]:
        try:
            return [ip_address(host)]
        except ValueError:
            pass
        try:
            return list(await asyncio.to_thread(self._resolve, host, port))
        except OSError:
            raise BridgeError(
                Kind.INTERNAL,
                f"the host of callback_address {host[:_SHOWN]!a} is not known",
                code="callback_unreachable",
            ) from None


def _none(text: str) -> BridgeError:
    return BridgeError(
        Kind.VALIDATION,
        f"callback_address is {text[:_SHOWN]!a}; expected 'host:port' or 'unix:PATH'",
        code="callback_address", field="callback_address",
    )  # fmt: skip


def _forbidden(text: str) -> BridgeError:
    return BridgeError(
        Kind.VALIDATION,
        f"callback_address {text[:_SHOWN]!a} is not one that this server may call; INVOKER_CALLBACK_HOSTS lists those",
        code="callback_forbidden", field="callback_address",
    )  # fmt: skip
