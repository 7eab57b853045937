"""`Fetcher`: fetches the content of external references, by the policy of the operator (E-050 to E-058).

The default `FetchPolicy` allows nothing. It can allow `file:` below certain directories, and `http:` and `https:` to
certain hosts; see `invoker.fetch.files` and `invoker.fetch.web` for the checks. ``data:`` URIs hold their content
themselves and are decoded by `invoker.fetch.data_uri`.

Each fetch has a daemon thread, since files and resolvers block; the loop only takes the bytes from it. When a fetch is
cancelled or late, its connection is shut down, so that the thread ends at once. A thread that is stuck in the system's
resolver or file system cannot be ended: it is abandoned, but keeps its slot until it returns.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from invoker.errors import ConfigError
from invoker.errors.wording import quoted
from invoker.fetch.data_uri import scheme_of
from invoker.fetch.errors import ReferenceFailed, ReferenceRefused
from invoker.fetch.files import read_file
from invoker.fetch.hosts import Address, Hosts, Resolver, is_public, resolve
from invoker.fetch.transfer import Transfer
from invoker.fetch.web import WebReader

_SLOTS = 32
_CLOSE_S = 1.0


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """The files and hosts that references may name. The default allows nothing.

    Attributes:
        roots: Directories below which ``file:`` may read.
        http: Hosts of ``http:`` and ``https:``: ``off``; ``public``: any host whose addresses are all public; or a
            comma list of names. ``*.example.org`` in the list means all names below that one, if their addresses are
            public. A host whose own name is in the list may also have private addresses. Loopback needs ``localhost``
            or the loopback address itself in the list. Link-local addresses, where clouds offer secrets of their
            machines, are never allowed.
        timeout_s: Seconds from the start of a fetch, including the wait for a thread, to its last byte.
        redirects: How many redirects are followed.
        ports: The ports that may be connected to.
    """

    roots: tuple[Path, ...] = ()
    http: str = "off"
    timeout_s: float = 10
    redirects: int = 3
    ports: tuple[int, ...] = (80, 443)


class Fetcher:
    """Fetches references on one loop. The code that makes it has to close it.

    Args:
        policy: The files and hosts that are allowed.
        resolve: Returns the addresses of a host; may block.
        is_public: Returns whether an address is public.
        tls: The TLS context that verifies servers; None: with the authorities of the system.
        slots: How many fetches may run at once; further ones wait.

    Raises:
        ConfigError: An entry of the policy is not a host, or a root is not absolute.
    """

    def __init__(
        self,
        policy: FetchPolicy,
        *,
        resolve: Resolver = resolve,
        is_public: Callable[[Address], bool] = is_public,
        tls: ssl.SSLContext | None = None,
        slots: int = _SLOTS,
    ) -> None:
        for root in policy.roots:
            if not root.is_absolute():
                raise ConfigError(f"roots of references: {root} is not absolute")
        self._policy = policy
        self._hosts = Hosts(policy.http, is_public)
        self._web = WebReader(
            self._hosts,
            ports=policy.ports,
            redirects=policy.redirects,
            timeout_s=policy.timeout_s,
            resolve=resolve,
            tls=tls,
        )
        self._slots = asyncio.Semaphore(slots)
        self._transfers: set[Transfer] = set()
        self._is_idle = asyncio.Event()
        self._is_idle.set()

    async def fetch(self, uri: str, most: int, deliver: Callable[[bytes], None]) -> None:
        """Fetch the content that a URI refers to, piece by piece as it comes; return at its end.

        If the fetch is cancelled, or ``deliver`` raises, the transfer ends and nothing more is delivered.

        Args:
            uri: An absolute URI of any scheme; a scheme that is not allowed is refused here.
            most: How many bytes the content may have.
            deliver: Called on the loop with pieces of at most about 64 KiB.

        Raises:
            ReferenceRefused, ReferenceFailed, LimitExceeded: The fetch failed, before or after some pieces.
            InternalError: There is a bug in the fetcher.
        """
        work = self._work(uri, most)
        timeout_s = self._policy.timeout_s
        timeout = asyncio.timeout(timeout_s)
        try:
            async with timeout:
                await self._slots.acquire()
                transfer = self._start(work, most)
                try:
                    while piece := await transfer.take():
                        deliver(piece)
                finally:
                    transfer.stop()
        except TimeoutError:
            if not timeout.expired():
                raise
            raise ReferenceFailed(f"{quoted(uri)} took longer than {timeout_s:g} s") from None

    async def close(self) -> None:
        """End the running fetches, and wait a moment for their threads."""
        for transfer in self._transfers:
            transfer.stop()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._is_idle.wait(), _CLOSE_S)

    def _work(self, uri: str, most: int) -> Callable[[Transfer], None]:
        """Check the scheme and the host of a URI, and return the function that its thread runs.

        Raises:
            ReferenceRefused: The policy does not allow it.
        """
        scheme = scheme_of(uri)
        if scheme == "file" and self._policy.roots:
            return lambda transfer: read_file(uri, self._policy.roots, most, transfer.give)
        if scheme in {"http", "https"} and not self._hosts.is_off:
            return partial(self._web.read, self._web.check(uri))
        hint, rest = "", uri.partition(":")[2]
        authority = rest[2:].partition("/")[0] if rest.startswith("//") else ""
        if scheme == "file" and authority.lower() not in {"", "localhost"}:
            hint = f", and {quoted(authority)} in it is an authority: a path needs three slashes, file:///path"
        raise ReferenceRefused(f"references of the scheme {quoted(scheme)} are not allowed here{hint}")

    def _start(self, work: Callable[[Transfer], None], most: int) -> Transfer:
        """Start a thread, which owns a slot until it ends."""
        transfer = Transfer(work, most, lambda: self._ended(transfer))
        self._transfers.add(transfer)
        self._is_idle.clear()
        try:
            transfer.start()
        except RuntimeError:
            self._ended(transfer)
            raise ReferenceFailed("no thread is free to fetch a reference") from None
        return transfer

    def _ended(self, transfer: Transfer) -> None:
        self._transfers.discard(transfer)
        self._slots.release()
        if not self._transfers:
            self._is_idle.set()
