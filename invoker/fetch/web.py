"""``http:`` and ``https:`` references: one GET, its redirects, and no other action that a URI could cause (E-055).

The host is resolved once, each of its addresses is checked, and the connection is made to a checked address: a later
change of the name does not matter. A redirect is a new URI, which is checked from the beginning. The environment is
ignored (no proxies), no state is kept (no cookies, no connections), and no content is decompressed.

There is no total time limit here: the code that runs this in a thread shuts the connection down when it takes too long.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from urllib.parse import urljoin

from invoker.errors import LimitExceeded
from invoker.errors.wording import quoted
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused
from invoker.fetch.hosts import Address, Hosts, Resolver, host_of
from invoker.fetch.transfer import Transfer

_URI = re.compile(r"(?i:(https?)):/{2}([^/?#]*)([^#]*)(?:#.*)?")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_AUTHORITY = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([1-9][0-9]{0,4}))?")
_SIGNS = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*")
_DEFAULT_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_MISSING = (404, 410)
_PIECE_BYTES = 64 * 1024
_ATTEMPTS = 4
"""How many addresses of one host are tried; the first that answers is used."""


@dataclass(frozen=True, slots=True)
class Target:
    """The parts of an ``http:`` or ``https:`` URI, of which only the syntax is checked.

    Attributes:
        uri: The URI as it was given.
        scheme: ``http`` or ``https``.
        host: The host, in the spelling of `host_of`.
        port: The port of the URI, or the default of the scheme.
        path: The path with the query; never empty.
    """

    uri: str
    scheme: str
    host: str
    port: int
    path: str

    @property
    def shown(self) -> str:
        """The URI for texts of errors."""
        return quoted(self.uri)

    @property
    def authority(self) -> str:
        """The value of the header ``Host``."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def target_of(uri: str) -> Target:
    """Parse a URI strictly: a URI that two programs could read differently is refused.

    Raises:
        ReferenceRefused: The URI is malformed or ambiguous.
    """
    found = _URI.fullmatch(uri)
    if found is None or not _SIGNS.fullmatch(uri):
        raise ReferenceRefused(
            f"{quoted(uri)} is not an http URI; expected http://host/path, with other characters percent-encoded"
        )
    scheme, authority, rest = found[1].lower(), found[2], found[3]
    if "@" in authority:
        raise ReferenceRefused("a reference must not have a user name or password")
    parts = _AUTHORITY.fullmatch(authority)
    host = host_of(parts[1]) if parts else None
    if parts is None or host is None:
        raise ReferenceRefused(f"the host {quoted(authority)} of {quoted(uri)} is not written in its plain form")
    path = rest if rest.startswith("/") else f"/{rest}"
    return Target(uri, scheme, host, int(parts[2] or _DEFAULT_PORTS[scheme]), path)


class WebReader:
    """Reads the content of ``http:`` and ``https:`` URIs, by a policy. Holds no state between reads.

    Args:
        hosts: The hosts that may be named, and the addresses that they may have.
        ports: The ports that may be connected to.
        redirects: How many redirects are followed.
        timeout_s: The most seconds of one wait for the peer.
        resolve: Returns the addresses of a host.
        tls: The TLS context that verifies servers; None: with the authorities of the system.
    """

    def __init__(
        self,
        hosts: Hosts,
        *,
        ports: Sequence[int],
        redirects: int,
        timeout_s: float,
        resolve: Resolver,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._hosts = hosts
        self._ports = tuple(ports)
        self._redirects = redirects
        self._timeout_s = timeout_s
        self._resolve = resolve
        self._tls = tls

    def check(self, uri: str) -> Target:
        """Parse a URI, and check everything that needs no resolver.

        Raises:
            ReferenceRefused: The URI is malformed, or its host or port is not allowed.
        """
        target = target_of(uri)
        if not self._hosts.allows(target.host):
            raise ReferenceRefused(f"the host {quoted(target.host)} is not allowed")
        if target.port not in self._ports:
            raise ReferenceRefused(f"the port {target.port} is not allowed; {_listed(self._ports)} may be used")
        return target

    def read(self, target: Target, transfer: Transfer) -> None:
        """Pass the content to ``transfer``, in pieces; blocks.

        Raises:
            ReferenceRefused, ReferenceFailed, LimitExceeded: The content is not allowed, not available, or too large.
            Stopped: The loop has stopped the transfer.
        """
        for _ in range(self._redirects + 1):
            location = self._read_once(target, transfer)
            if location is None:
                return
            target = self._redirected(target, location)
        raise ReferenceFailed(f"there are more than {self._redirects} redirects; the last leads to {target.shown}")

    def _redirected(self, origin: Target, location: str) -> Target:
        try:
            # urljoin takes `http:x` for a path, so a location with a scheme is checked as it is.
            uri = location if _SCHEME.match(location) else urljoin(origin.uri, location)
        except ValueError:
            raise ReferenceRefused(f"{origin.shown} redirects to {quoted(location)}, which is not a URI") from None
        target = self.check(uri)
        if origin.scheme == "https" and target.scheme == "http":
            raise ReferenceRefused(f"{origin.shown} redirects to {target.shown}, which is not encrypted")
        return target

    def _read_once(self, target: Target, transfer: Transfer) -> str | None:
        """Pass the content of one URI to ``transfer``, or return the URI of its redirect."""
        try:
            with closing(self._connection(target, transfer)) as connection, closing(_ask(connection, target)) as answer:
                if answer.status in _REDIRECTS:
                    return _location(answer, target)
                _check_answer(answer, target, transfer.most)
                _give(answer, target, transfer)
        except (OSError, HTTPException) as error:
            # Both get texts of our own, since the system's texts may contain addresses.
            raise ReferenceFailed(f"{target.shown}: {_why(error)}") from None
        finally:
            transfer.unwatch()
        return None

    def _connection(self, target: Target, transfer: Transfer) -> HTTPConnection:
        addresses = self._addresses(target)[:_ATTEMPTS]
        for address in addresses[:-1]:
            try:
                return self._connect(target, address, transfer, self._timeout_s / len(addresses))
            except OSError:
                transfer.unwatch()
        return self._connect(target, addresses[-1], transfer, self._timeout_s)

    def _addresses(self, target: Target) -> Sequence[Address]:
        """All addresses of the host, after checking each of them."""
        try:
            addresses = self._resolve(target.host, target.port)
        except OSError:
            raise ReferenceFailed(f"the host {quoted(target.host)} has no address") from None
        if not addresses:
            raise ReferenceFailed(f"the host {quoted(target.host)} has no address")
        if not all(self._hosts.allows_address(target.host, address) for address in addresses):
            raise ReferenceRefused(f"the host {quoted(target.host)} has an address that is not allowed")
        return addresses

    def _connect(self, target: Target, address: Address, transfer: Transfer, timeout_s: float) -> HTTPConnection:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        raw = socket.socket(family, socket.SOCK_STREAM)
        try:
            raw.settimeout(timeout_s)
            transfer.watch(raw)
            raw.connect((str(address), target.port))
            raw.settimeout(self._timeout_s)
            if target.scheme == "https":
                self._tls = self._tls or ssl.create_default_context()
                raw = self._tls.wrap_socket(raw, server_hostname=target.host)
        except BaseException:
            raw.close()
            raise
        connection = HTTPConnection(target.host, target.port)
        connection.auto_open = 0  # the connection must not resolve the name again and connect to an unchecked address
        connection.sock = raw
        return connection


def _ask(connection: HTTPConnection, target: Target) -> HTTPResponse:
    connection.putrequest("GET", target.path, skip_host=True, skip_accept_encoding=True)
    for name, value in (
        ("Host", target.authority),
        ("User-Agent", "invoker"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
    ):
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def _location(answer: HTTPResponse, target: Target) -> str:
    location = answer.headers.get("Location")
    if not location:
        raise ReferenceFailed(f"{target.shown} redirects without saying where to")
    return location


def _check_answer(answer: HTTPResponse, target: Target, most: int) -> None:
    if answer.status != 200:
        is_missing = answer.status in _MISSING
        raise ReferenceFailed(f"{target.shown} answers with status {answer.status}", is_missing=is_missing)
    encodings = [text.strip().lower() for text in answer.headers.get_all("Content-Encoding", [])]
    if any(encoding not in {"", "identity"} for encoding in encodings):
        raise ReferenceFailed(f"{target.shown} is encoded as {quoted(', '.join(encodings))}; identity was expected")
    transfers = [text.strip().lower() for text in answer.headers.get_all("Transfer-Encoding", [])]
    if transfers not in ([], ["chunked"]):
        raise ReferenceFailed(f"{target.shown} comes in a transfer encoding that is not chunked")
    lengths = {text.strip() for text in answer.headers.get_all("Content-Length", [])}
    if len(lengths) > 1 or not all(text.isascii() and text.isdigit() for text in lengths):
        raise ReferenceFailed(f"{target.shown} has several lengths, or one that is not a number")
    if answer.length is not None and answer.length > most:
        raise _too_large(target, most)


def _give(answer: HTTPResponse, target: Target, transfer: Transfer) -> None:
    while piece := answer.read1(_PIECE_BYTES):
        transfer.give(piece)
    if answer.length:
        raise ReferenceFailed(f"{target.shown} ended {answer.length} bytes too early")


def _too_large(target: Target, most: int) -> LimitExceeded:
    return LimitExceeded(f"{target.shown} exceeds the limit of {most} bytes")


def _why(error: OSError | HTTPException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return "TLS cannot be spoken with it"
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if not isinstance(error, OSError):
        return "its response is not valid HTTP"
    return "it cannot be reached"


def _listed(ports: Sequence[int]) -> str:
    return ", ".join(map(str, ports))
