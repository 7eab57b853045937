"""One conversation of a device over gRPC: connects a `DeviceSession` to the gRPC call and to the runner of plans."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable
from typing import Any

import grpc.aio
import msgspec

from invoker.connect.exchange import Exchange
from invoker.connect.failure import CallFailed
from invoker.errors import InvokerError, Status
from invoker.errors.wording import describe
from invoker.protocols.federated.client.downloads import Downloads, Source
from invoker.protocols.federated.client.messages import Assigned, Compute, EligibilityAsked, Event, Report
from invoker.protocols.federated.client.plans import read_plan
from invoker.protocols.federated.client.running import Ran, Runner, arrays_of, bytes_of, weights_of
from invoker.protocols.federated.client.session import DeviceSession
from invoker.protocols.federated.wire.names import SERVICE, SESSION

log = logging.getLogger(__name__)

METHOD = f"/{SERVICE}/{SESSION}"

POLL_S = 0.2
"""The interval in seconds at which `should_abort` is called (F-145: a device stops within a second)."""

BROKEN_GRACE_S = 0.5
DONE_GRACE_S = 5.0
"""How many seconds a conversation waits for the server's status after its end is decided."""


class Means(msgspec.Struct, frozen=True):
    """The objects that conversations share.

    Attributes:
        runner: Runs plans.
        downloads: Fetches plans and checkpoints.
        plan_timeout_s: How many seconds a plan may run (F-077).
        pickle_key: The key that signs plans which contain code; None: they are refused.
        should_abort: Called several times per second; returns whether the device has to stop.
        tell: Called with each event, to show it to the user.
    """

    runner: Runner
    downloads: Downloads
    plan_timeout_s: float
    pickle_key: bytes | None
    should_abort: Callable[[], bool]
    tell: Callable[[Any], None]


class Conversation:
    """Drives one session to its end.

    Args:
        session: A new session, which has not started.
        means: The objects that conversations share.
    """

    def __init__(self, session: DeviceSession, means: Means) -> None:
        self._session, self._means = session, means
        self._news = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self.metrics: Any = None

    async def run(
        self,
        channel: grpc.aio.Channel,
        target: str,
        *,
        metadata: tuple[tuple[str, str | bytes], ...],
        timeout_s: float,
        connect_timeout_s: float,
    ) -> None:
        """Run the conversation to its end; after that the session has the outcome."""
        call: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(METHOD)
        exchange = Exchange(
            channel,
            lambda: call(metadata=metadata, timeout=timeout_s),
            None,
            [self._frames()],
            target=target,
            connect_timeout_s=connect_timeout_s,
        )
        reader = asyncio.create_task(self._read(exchange), name="invoker-device-reader")
        watcher = asyncio.create_task(self._watch(), name="invoker-device-watcher")
        try:
            await asyncio.wait({reader, watcher}, return_when=asyncio.FIRST_COMPLETED)
            if not reader.done():
                grace_s = BROKEN_GRACE_S if self._session.is_broken else DONE_GRACE_S
                await asyncio.wait({reader}, timeout=grace_s)
        finally:
            exchange.cancel()
            tasks = [task for task in (reader, watcher, self._work) if task is not None]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await exchange.close()
        self._session.ended(Status.CANCELLED, "the conversation was left")

    async def _frames(self) -> AsyncGenerator[bytes, None]:
        """The frames that the session sends; after the last one the call half-closes."""
        while True:
            self._news.clear()
            for frame in self._session.drain():
                yield frame
            if self._session.is_over:
                return
            await self._news.wait()

    async def _read(self, exchange: Exchange) -> None:
        self._session.start()
        try:
            await exchange.open()
            while (frame := await exchange.read()) is not None:
                for event in self._session.receive(frame):
                    self._work = asyncio.create_task(self._answer(event), name="invoker-device-plan")
                self._news.set()
            self._session.ended(Status.OK)
        except CallFailed as failure:
            self._session.ended(failure.status, failure.detail)

    async def _watch(self) -> None:
        """Return once the end of the conversation is decided."""
        while not self._session.has_ended:
            if self._means.should_abort():
                self._session.abort()
                self._news.set()
                return
            await asyncio.sleep(POLL_S)

    async def _answer(self, event: Event) -> None:
        """Handle an event of the session; an error ends the conversation, which would otherwise wait without end."""
        try:
            await self._do(event)
        except Exception as error:
            log.exception("a device could not answer its server")
            self._session.fail(Status.INTERNAL, f"the device has failed: {_text(error)}")
        self._news.set()

    async def _do(self, event: Event) -> None:
        if isinstance(event, Compute):
            self._session.computed(await asyncio.to_thread(event.job))
            return
        self._means.tell(event)
        try:
            plan, checkpoint = await asyncio.gather(
                self._fetched(event.plan, "plan"), self._fetched(event.checkpoint, "checkpoint")
            )
        except CallFailed as failure:
            self._session.fail(failure.status, failure.detail)
        else:
            if isinstance(event, EligibilityAsked):
                await self._find_eligible(plan, checkpoint)
            else:
                await self._train(event, plan, checkpoint)

    async def _fetched(self, source: Source, what: str) -> bytes:
        if source.uri is None:
            return source.data
        return await asyncio.to_thread(self._means.downloads.fetch, source, what)

    async def _find_eligible(self, plan: bytes, checkpoint: bytes) -> None:
        try:
            weights = weights_of((await self._ran(plan, checkpoint)).value)
        except Exception as error:  # noqa: BLE001 - the device's function may raise any exception
            self._session.fail(Status.INTERNAL, f"the eligibility plan failed: {_text(error)}")
        else:
            self._session.eligible(weights)

    async def _train(self, event: Assigned, plan: bytes, checkpoint: bytes) -> None:
        began = time.monotonic()
        try:
            ran = await self._ran(plan, checkpoint)
            vectors = None if event.secagg is None else arrays_of(ran.value)
            report = Report(bytes_of(ran.value) if vectors is None else b"", vectors)
            self.metrics = ran.metrics
        except Exception as error:  # noqa: BLE001 - the device's function may raise any exception
            self._means.tell(error)
            is_unknown = isinstance(error, CallFailed) and error.status is Status.UNIMPLEMENTED
            report = Report(status=Status.UNIMPLEMENTED if is_unknown else Status.INTERNAL)
        report = msgspec.structs.replace(report, duration_s=time.monotonic() - began)
        self._means.tell(report)
        self._session.report(report)

    async def _ran(self, plan: bytes, checkpoint: bytes) -> Ran:
        async with asyncio.timeout(self._means.plan_timeout_s):
            return await self._means.runner(read_plan(plan, pickle_key=self._means.pickle_key), checkpoint)


def _text(error: Exception) -> str:
    return str(error) if isinstance(error, InvokerError | CallFailed) else describe(error)
