"""`FederatedClient`: a device that takes part in the rounds of a population.

::

    def train(checkpoint: Checkpoint, examples: Iterator[Example]) -> Update: ...

    client = FederatedClient("127.0.0.1:8081", "iris", {"functions.federated:train": train}, my_examples)
    await client.run()        # takes part again and again, whenever the server asks for it
    attempt = await client.once()
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from invoker.codecs.chunks import Limits
from invoker.connect.metadata import metadata_pairs
from invoker.connect.tls import Tls, open_channel
from invoker.protocols.federated.client.cache import Cache
from invoker.protocols.federated.client.conversation import POLL_S, Conversation, Means
from invoker.protocols.federated.client.downloads import MOST_BYTES, Downloads
from invoker.protocols.federated.client.messages import Attempt, Hello, NewSecAgg
from invoker.protocols.federated.client.running import CallingRunner, Runner
from invoker.protocols.federated.client.session import DeviceSession
from invoker.protocols.federated.client.windows import Retry, Windows
from invoker.protocols.federated.wire.names import API_KEY, POPULATION_KEY


class DeviceOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a `FederatedClient`; the defaults suit a device that runs unattended.

    Attributes:
        api_key: The API key that is sent with each conversation; empty: none.
        tls: The TLS settings of the connection; None: plain text.
        download_tls: The TLS settings of downloads; None: the certificate authorities of this machine are trusted.
        attestation: A measurement for the server, which may verify it; opaque to the client.
        client_version: The version of the program, which is sent to the server.
        session_timeout_s: How many seconds one conversation may take, including the wait for a round.
        connect_timeout_s: How many seconds to wait for a connection.
        plan_timeout_s: How many seconds a plan may run.
        most_bytes: The largest plan, checkpoint or message that is accepted, in bytes.
        cache: A folder that keeps downloads; None: they are kept in memory.
        pickle_key: The key that signs plans which contain their function; None: such plans are refused.
        secagg: Whether the device offers secure aggregation; None: it does if ``cryptography`` is installed.
        seed: The seed for random times at which the device checks in; None: a random seed.
        now: Returns the time for retry windows and the cache, in seconds.
        sleep: Waits for a number of seconds.
    """

    api_key: str = ""
    tls: Tls | None = None
    download_tls: ssl.SSLContext | None = None
    attestation: str = ""
    client_version: str = "invoker"
    session_timeout_s: float = 3600.0
    connect_timeout_s: float = 20.0
    plan_timeout_s: float = 600.0
    most_bytes: int = MOST_BYTES
    cache: Path | str | None = None
    pickle_key: bytes | None = None
    secagg: bool | None = None
    seed: int | None = None
    now: Callable[[], float] = time.time
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class FederatedClient:
    """One device of a population.

    Args:
        target: ``host:port`` of the server's gRPC port, or any name that gRPC understands.
        population: The name of the population.
        functions: The functions that this device runs, by the names in plans: ``module:function``. Each takes a
            `Checkpoint`, an iterator of examples, and the parameters of the plan by name. It returns an `Update`; for
            an eligibility plan, it returns weights of tasks. A plan that names another function is not run.
        examples: Makes an iterator of this device's examples.
        options: The other options.
        runner: Runs plans; ``functions`` and ``examples`` are then not needed.
        should_abort: Called several times per second; when it returns True, the device stops within a second, in any
            state.
        tell: Called with each event: `EligibilityAsked`, `Assigned`, `Report`, the exception of a plan, or `Attempt`.

    Attributes:
        retry: When to check in again; None: at once.

    All methods must be called on the same event loop.
    """

    def __init__(
        self,
        target: str,
        population: str,
        functions: Mapping[str, Callable[..., Any]] | None = None,
        examples: Callable[[], Iterable[Any]] = tuple,
        *,
        options: DeviceOptions | None = None,
        runner: Runner | None = None,
        should_abort: Callable[[], bool] = lambda: False,
        tell: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self.target, self.population = target, population
        self.retry: Retry | None = None
        self._options = said = options or DeviceOptions()
        self._should_abort, self._tell = should_abort, tell
        self._rng = random.Random(said.seed)  # noqa: S311 - the random times only spread load
        downloads = Downloads(Cache(said.cache, said.now), most_bytes=said.most_bytes, tls=said.download_tls)
        self._means = Means(
            runner or CallingRunner(functions or {}, examples),
            downloads,
            said.plan_timeout_s,
            said.pickle_key,
            should_abort,
            tell,
        )
        keys = {POPULATION_KEY: population} | ({API_KEY: said.api_key} if said.api_key else {})
        self._metadata = metadata_pairs(keys)

    async def once(self) -> Attempt:
        """Take part once, from the checkin to the answer to the report, without waiting for a retry window."""
        said = self._options
        windows = Windows(said.now, self._rng)
        token = "" if self.retry is None else self.retry.token
        new_secagg = _secagg() if said.secagg is not False else None
        hello = Hello(self.population, token, said.attestation, said.client_version, new_secagg is not None)
        limits = Limits(message_bytes=said.most_bytes)
        session = DeviceSession(hello, windows, new_secagg=new_secagg, limits=limits)
        conversation = Conversation(session, self._means)
        channel = open_channel(self.target, said.tls, said.most_bytes)
        try:
            await conversation.run(
                channel,
                self.target,
                metadata=self._metadata,
                timeout_s=said.session_timeout_s,
                connect_timeout_s=said.connect_timeout_s,
            )
        finally:
            await channel.close()
        attempt = session.attempt(metrics=conversation.metrics)
        self.retry = attempt.retry
        self._tell(attempt)
        return attempt

    async def run(self, times: int = 0) -> None:
        """Take part repeatedly, each time in the retry window of the last conversation.

        Args:
            times: How many times to take part; 0: until `should_abort` returns True.
        """
        count = 0
        while not self._should_abort():
            await self.wait()
            if self._should_abort():
                return
            await self.once()
            count += 1
            if count == times:
                return

    async def wait(self) -> None:
        """Sleep until the time to check in again, or until `should_abort` returns True."""
        while (
            self.retry is not None and (left := self.retry.in_s(self._options.now())) > 0 and not self._should_abort()
        ):
            await self._options.sleep(min(left, POLL_S))


def _secagg() -> NewSecAgg | None:
    """The class of the client's side of secure aggregation, if its libraries are installed."""
    if importlib.util.find_spec("cryptography") is None or importlib.util.find_spec("numpy") is None:
        return None
    from invoker.protocols.federated.client.secagg import SecAggClient

    return SecAggClient
