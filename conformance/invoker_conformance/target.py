"""`Target`: the server under test, with the addresses of functions, and channels to them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias
from urllib.parse import urlsplit

import grpc
import grpc.aio

_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.enable_http_proxy", 0),
)
_LISTENS_S = 1.0
Ask: TypeAlias = Callable[[str], Awaitable[grpc.StatusCode]]

_ABSENT = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.UNIMPLEMENTED)


class Unreachable(Exception):
    """An address of the target has no listener."""


@dataclass(frozen=True, slots=True)
class Address:
    """An address at which functions are served.

    Attributes:
        host: The name or IP address; IPv6 is without brackets.
        port: The TCP port.
        is_shared: Whether several functions are served here, so that a call must name one.
    """

    host: str
    port: int
    is_shared: bool

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Addresses:
    """Addresses by the name of a function, and a default address."""

    by_function: dict[str, Address] = field(default_factory=dict)
    default: Address | None = None

    def of(self, function: str) -> Address | None:
        """The address of a function; None: it is not served."""
        return self.by_function.get(function, self.default)

    def __bool__(self) -> bool:
        return bool(self.by_function) or self.default is not None

    def __str__(self) -> str:
        named = [f"{name}={address}" for name, address in self.by_function.items()]
        return ", ".join([str(self.default)] * (self.default is not None) + named)


def parse_addresses(texts: Sequence[str]) -> Addresses:
    """Parse ``HOST:PORT`` (for every function) and ``NAME=HOST:PORT`` (for this function); later items replace earlier.

    Raises:
        ValueError: A text has neither form.
    """
    by_function: dict[str, Address] = {}
    default: Address | None = None
    for text in texts:
        name, equals, place = text.rpartition("=")
        with suppress(ValueError):
            parts = urlsplit(f"//{place}")
            if parts.hostname and parts.port and not parts.path and bool(name) == bool(equals):
                address = Address(parts.hostname, parts.port, is_shared=not name)
                if name:
                    by_function[name] = address
                else:
                    default = address
                continue
        raise ValueError(f"{text!r} is neither HOST:PORT nor NAME=HOST:PORT")
    return Addresses(by_function, default)


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """The facts about the target that the GraphPipe chapters need.

    Attributes:
        tcp: ``HOST:PORT`` of a raw socket; empty: none is given.
        unix: The path of a raw Unix socket; empty: none is given.
        http_unix: The path of a Unix socket for HTTP; empty: none is given.
        limit_bytes: The target's limit of a request, in bytes.
        timeout_s: The target's time limit of an inference, in seconds.
        most: The target's limit of inferences at once; 0: none is given.
        is_plain_status: Whether errors have the HTTP status 200.
        is_root: Whether the model ``mirror`` is also served at /.
    """

    tcp: str = ""
    unix: str = ""
    http_unix: str = ""
    limit_bytes: int = 64 << 20
    timeout_s: float = 30.0
    most: int = 0
    is_plain_status: bool = False
    is_root: bool = False


async def _touch(address: Address, timeout_s: float) -> None:
    """Connect to an address, and disconnect."""
    async with asyncio.timeout(timeout_s):
        _, writer = await asyncio.open_connection(address.host, address.port)
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


class Target:
    """The server under test.

    Args:
        grpc_at: The gRPC addresses of functions.
        http_at: The HTTP addresses of functions; may be empty.
        timeout_s: The limit of each single wait, in seconds.
        message_bytes: The target's limit of a message that it receives, in bytes.
        ref_root: A local directory from which the target may read references; empty: none.
        models: The facts for the GraphPipe chapters.
    """

    def __init__(
        self,
        grpc_at: Addresses,
        http_at: Addresses,
        *,
        timeout_s: float,
        message_bytes: int,
        ref_root: str = "",
        models: ModelFacts = ModelFacts(),  # frozen
    ) -> None:
        self.grpc_at = grpc_at
        self.http_at = http_at
        self.timeout_s = timeout_s
        self.message_bytes = message_bytes
        self.ref_root = ref_root
        self.models = models
        self._channels: dict[Address, grpc.aio.Channel] = {}
        self._provided: dict[tuple[str, str], bool] = {}
        self._answered: set[Address] = set()

    def addresses(self, functions: Sequence[str], *, over_http: bool) -> list[Address]:
        """The addresses of functions, each once; with ``over_http``, the first function is looked up over HTTP."""
        places = [(self.http_at if over_http and not n else self.grpc_at).of(name) for n, name in enumerate(functions)]
        return [address for address in dict.fromkeys(places) if address is not None]

    def has_answered(self, address: Address) -> bool:
        """Whether an address has had a listener since the run began."""
        return address in self._answered

    async def listens(self, address: Address) -> bool:
        """Whether an address has a listener now."""
        try:
            await _touch(address, _LISTENS_S)
        except (OSError, TimeoutError):
            return False
        return True

    def channel(self, function: str) -> grpc.aio.Channel:
        """The shared channel to the address of a function."""
        address = self.grpc_at.of(function)
        if address is None:
            raise Unreachable(f"no --target address serves {function}")
        if address not in self._channels:
            self._channels[address] = self.new_channel(str(address))
        return self._channels[address]

    def new_channel(self, address: str, *options: tuple[str, int]) -> grpc.aio.Channel:
        """Open a channel with its own connection; the caller closes it."""
        chosen = {**dict(_OPTIONS), "grpc.use_local_subchannel_pool": 1, **dict(options)}
        return grpc.aio.insecure_channel(address, options=tuple(chosen.items()))

    def metadata(self, function: str) -> tuple[tuple[str, str], ...]:
        """The metadata that name a function at an address which serves several."""
        address = self.grpc_at.of(function)
        return (("invoker-function", function),) if address is not None and address.is_shared else ()

    async def provides(self, function: str, address: Address | None, *, noun: str, ask: Ask) -> bool:
        """Whether the target serves a function; this is tested once, by a call that no function accepts.

        Args:
            function: The name of the function.
            address: The address of the function; None: it is not served.
            noun: The protocol's word for a function.
            ask: Makes the call, and returns the code of the answer.

        Raises:
            Unreachable: The address has no listener.
        """
        if address is None:
            return False
        key = (noun, function)
        if key not in self._provided:
            await self._connect(address)
            code = await ask(function)
            if code is grpc.StatusCode.UNAVAILABLE:
                raise Unreachable(f"no gRPC server answers at {address}")
            # A function that hangs until the deadline is served; scenarios test whether that is right.
            self._provided[key] = code not in _ABSENT
        return self._provided[key]

    async def _connect(self, address: Address) -> None:
        """Check that the address has a listener, since gRPC itself would retry without end."""
        try:
            await _touch(address, self.timeout_s)
        except (OSError, TimeoutError) as error:
            reason = getattr(error, "strerror", None) or f"no connection within {self.timeout_s:g} s"
            raise Unreachable(f"nothing answers at {address}: {reason}") from None
        self._answered.add(address)

    async def close(self) -> None:
        """Close every channel."""
        for channel in self._channels.values():
            await channel.close()
