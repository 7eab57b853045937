"""`Batching`: joins requests that come at the same time into one call, for functions with ``batch_max`` (G-076).

The first of several compatible requests waits for others; the function sets how long, and for how many rows. Then all
run as one call. If this call fails, or its outputs cannot be split, each request runs alone, so that an error reaches
only the caller that caused it. A caller that leaves, or reaches the time limit of an inference, is removed from the
batch; a call that runs only for this caller is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from invoker.core.peers import Client
from invoker.errors import DeadlineExceeded, InvocationError
from invoker.execution.driver import Driver
from invoker.protocols.graphpipe.answer import Answer, Reply
from invoker.protocols.graphpipe.batch import parted
from invoker.protocols.graphpipe.checked import CheckedRequest
from invoker.protocols.graphpipe.model import Model
from invoker.protocols.graphpipe.prepare import joint
from invoker.tensors import GraphPipeError

log = logging.getLogger(__name__)

T = TypeVar("T")

_NOTHING: Final = CheckedRequest(())

_OK: Final = 200
_TOLD: Final = 8
"""How many addresses of callers the log lists for a batch."""


class Converse(Protocol):
    """Runs one request, or a batch."""

    def __call__(self, model: Model, prepared: CheckedRequest, *, peer: str | Client) -> Awaitable[Answer | Reply]:
        """Run a checked request, and return its reply."""


class Timely(Protocol):
    """Runs ``work`` on ``size`` bytes: on the event loop, or in a thread if it would take long (G-102)."""

    async def __call__(self, size: int, work: Callable[[], T]) -> T:
        """Run ``work``, and return its result."""


@dataclass(eq=False, slots=True)
class _Place:
    """One request, with the future of its reply."""

    prepared: CheckedRequest
    done: asyncio.Future[Reply]
    peer: str | Client
    task: asyncio.Task[None] | None = None  # the task, if the request runs alone

    def fail(self, error: InvocationError) -> None:
        """Fail the request, because the time limit of the drain has passed."""
        if not self.done.done():
            self.done.set_exception(error)


@dataclass(eq=False, slots=True)
class _Batch:
    """Requests that will run as one call."""

    places: list[_Place] = field(default_factory=list)
    rows: int = 0
    timer: asyncio.TimerHandle | None = None
    task: asyncio.Task[None] | None = None


class Batching:
    """Makes the batches of one function.

    Args:
        model: The model of the function.
        converse: Runs one request, or a batch.
        timely: Joins requests and splits their answers.
        limit_bytes: The largest total size of the inputs of a batch, in bytes.
        timeout_s: The time limit of each request in seconds, including the wait for others and a failed batch (G-079);
            0 means no limit.
        driver: The driver, whose drain waits for all requests (G-104).
    """

    def __init__(
        self,
        model: Model,
        converse: Converse,
        *,
        timely: Timely,
        limit_bytes: int,
        timeout_s: float,
        driver: Driver,
    ) -> None:
        self._model = model
        self._driver = driver
        self._converse = converse
        self._timely = timely
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s or None
        self._open: dict[Hashable, _Batch] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, prepared: CheckedRequest, peer: str | Client = "") -> Reply:
        """Run a request, together with others if possible.

        Args:
            prepared: The request; those with the same ``kind`` can be joined.
            peer: The caller, for the log.

        Raises:
            DeadlineExceeded: The inference took too long.
            asyncio.CancelledError: The client has left.
        """
        joined = self._model.spec.batching
        batch = self._open.get(prepared.kind)
        if batch is not None and batch.rows + prepared.count > joined.rows:
            self._run(prepared.kind, batch)
            batch = None
        loop = asyncio.get_running_loop()
        if batch is None:
            batch = self._open[prepared.kind] = _Batch()
            batch.timer = loop.call_later(joined.wait_ms / 1000, self._run, prepared.kind, batch)
        place = _Place(prepared, loop.create_future(), peer)
        batch.places.append(place)
        batch.rows += prepared.count
        if batch.rows >= joined.rows:
            self._run(prepared.kind, batch)
        self._driver.entered(place)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await place.done
        except TimeoutError:
            raise DeadlineExceeded from None
        finally:
            self._driver.exited(place)
            if not place.done.done() or place.done.cancelled():
                self._leave(batch, place)
            # frees the tensors now: the task of the batch may stay in memory until the garbage collector runs (G-103)
            place.prepared = _NOTHING

    def hurry(self) -> None:
        """Run the waiting requests at once, since no others will come."""
        for kind, batch in list(self._open.items()):
            self._run(kind, batch)

    def _run(self, kind: Hashable, batch: _Batch) -> None:
        if batch.timer is not None:
            batch.timer.cancel()
        if self._open.get(kind) is batch:
            del self._open[kind]
        if batch.places and batch.task is None:
            batch.task = asyncio.get_running_loop().create_task(self._answer(batch.places), name="batch")
            self._running.add(batch.task)
            batch.task.add_done_callback(self._running.discard)
            batch.task.add_done_callback(_forget)

    def _leave(self, batch: _Batch, place: _Place) -> None:
        if batch.task is None:
            batch.places.remove(place)
            batch.rows -= place.prepared.count
        elif all(one.done.done() for one in batch.places):
            batch.task.cancel()
        elif place.task is not None:
            place.task.cancel()

    async def _answer(self, places: Sequence[_Place]) -> None:
        places = [one for one in places if not one.done.done()]
        if len(places) > 1 and await self._together(places):
            return
        async with asyncio.TaskGroup() as group:
            for one in places:
                if not one.done.done():
                    one.task = group.create_task(self._alone(one), name="of a batch")
                    one.task.add_done_callback(_forget)

    async def _together(self, places: Sequence[_Place]) -> bool:
        """Run several requests as one call; False if each has to run alone."""
        peer = _all_of([one.peer for one in places])
        responses = await self._responses([one.prepared for one in places], peer)
        if isinstance(peer, Client):
            if responses is None:
                peer.field = ""  # the error of the batch itself is not sent to a caller
            else:
                peer.got(_OK)
        if responses is None:
            return False
        for one, response in zip(places, responses, strict=True):
            if not one.done.done():
                one.done.set_result(response)
        return True

    async def _responses(self, several: Sequence[CheckedRequest], peer: str | Client) -> Sequence[Reply] | None:
        try:
            prepared = await self._timely(
                sum(map(_size, several)),
                lambda: joint(self._model, several, limit_bytes=self._limit_bytes),
            )
            answer = await self._converse(self._model, prepared, peer=peer)
            if not isinstance(answer, Answer):
                return None
            return await self._timely(answer.size, lambda: parted(answer, [one.count for one in several]))
        except GraphPipeError:
            return None
        except Exception:  # a bug of the invoker; each request may still succeed alone
            log.exception("a batch failed inside the invoker")
            return None

    async def _alone(self, place: _Place) -> None:
        try:
            answer = await self._converse(self._model, place.prepared, peer=place.peer)
            if isinstance(answer, Answer):
                answer = await self._timely(answer.size, answer.response)
        except Exception as error:  # noqa: BLE001 - raised again where the future is awaited
            if not place.done.done():
                place.done.set_exception(error)
        else:
            if not place.done.done():
                place.done.set_result(answer)


def _all_of(peers: Sequence[str | Client]) -> str | Client:
    """Combine the callers of a batch into one client for the log."""
    addresses = list(dict.fromkeys(one if isinstance(one, str) else one.address for one in peers))
    more = f" and {len(addresses) - _TOLD} more" if len(addresses) > _TOLD else ""
    text = ", ".join(addresses[:_TOLD]) + more
    return Client(text) if all(isinstance(one, Client) for one in peers) else text


def _forget(task: asyncio.Task[None]) -> None:
    """Drop the traceback of a cancelled task, which refers to tensors and to the task (G-103)."""
    with suppress(asyncio.CancelledError):
        task.exception()


def _size(prepared: CheckedRequest) -> int:
    """How many bytes of a request are copied to join it."""
    return sum(one.tensor.size for one in prepared.given)
