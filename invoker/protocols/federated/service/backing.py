"""`RoundBacking`.

It does what the coordinator cannot do itself: run aggregations, commit rounds, compute in threads, set timers.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from invoker.core.invocation import Invocation
from invoker.core.steps import Close, Open
from invoker.core.store import Item, Reason, Refused
from invoker.errors import InvocationError, Status, StatusError, let_go
from invoker.execution.asker import Asker
from invoker.execution.driver import Driver
from invoker.execution.loop.sessions import SessionReactor
from invoker.protocols.federated import saved
from invoker.protocols.federated.aggregating import AHEAD, AggregatingSession, Word
from invoker.protocols.federated.backing import Commit
from invoker.protocols.federated.saved import Saved
from invoker.protocols.federated.service.resources import Resources, hash_of

log = logging.getLogger(__name__)

_LARGE_BYTES: Final = 16 * 1024 * 1024
"""A larger blob is hashed in a thread; this much takes 10 to 40 ms."""

_COMMIT_S: Final = 30.0
"""How long the store may take over a commit. Beyond it nobody knows what it has, so the population begins anew."""

_ROUND_BYTES: Final = 2**40
"""The most bytes that the function has not read; the session feeds far less ahead."""


class RoundBacking:
    """The service from the coordinator's view.

    Args:
        driver: Runs rounds.
        resources: Makes bytes available to devices.
        wake: Called with the time at which the coordinator should be called.
        is_behind: Called with a population whose state has to be read from the store again: another process has
            committed a round, so that a commit was refused, or the store has not answered.
    """

    def __init__(
        self,
        driver: Driver,
        resources: Resources,
        wake: Callable[[float], None],
        is_behind: Callable[[str], None],
    ) -> None:
        self.publish = resources.publish
        self._resources = resources
        self.wake = wake
        self._driver = driver
        self._is_behind = is_behind
        self._saved: dict[tuple[str, str], Saved] = {}
        self._asker = Asker(driver.store)
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="invoker-rounds")
        self._packing: dict[Hashable, asyncio.Future[Any]] = {}
        self._loop = asyncio.get_running_loop()

    def remember(self, population: str, tasks: Mapping[str, Saved]) -> None:
        """Remember the stored state of a population's tasks, on which the next commits build."""
        for task, one in tasks.items():
            self._saved[population, task] = one

    def close(self) -> None:
        """Stop the threads that compute; waiting jobs are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._asker.leave()

    def new_id(self) -> str:
        """A random name for a round or an eligibility task."""
        return secrets.token_urlsafe(18)

    def aggregate(self, session: AggregatingSession) -> Callable[[Word], None]:
        """Run a conversation without a peer; returns a function that gives it a message, in a later turn."""
        reactor = RoundReactor(session, _Silent(), self._driver, _ignore, hard_bytes=_ROUND_BYTES, window=AHEAD,
                               fetch=_no_fetch)  # fmt: skip
        return lambda word: self._call(reactor.arrived, word)

    def commit(self, commit: Commit, done: Callable[[bool], None]) -> None:
        """Store a checkpoint, if the store still has the one that the round started from (F-083)."""
        before = self._saved[commit.population, commit.task]
        if before.round != commit.number - 1:
            self._call(self._is_behind, commit.population)  # the commit was stored after its round was given up
            self._call(done, False)
            return
        late = self._loop.call_later(_COMMIT_S, self._late, commit)
        put = saved.commit(commit.population, commit.task, before, commit.checkpoint, commit.phase_id)

        def hashed(digest: Any) -> None:
            self._resources.expect(commit.checkpoint, digest)
            self._asker.later(put, partial(self._committed, commit, done, late))

        if len(commit.checkpoint) > _LARGE_BYTES:
            self.compute(partial(hash_of, commit.checkpoint), hashed)
        else:
            hashed(hash_of(commit.checkpoint))

    def _late(self, commit: Commit) -> None:
        log.warning("the store does not answer a commit", extra={"phase_id": commit.phase_id, "seconds": _COMMIT_S})
        self._is_behind(commit.population)

    def _committed(self, commit: Commit, done: Callable[[bool], None], late: asyncio.TimerHandle, answer: Any) -> None:
        late.cancel()
        if isinstance(answer, Item):
            self._saved[commit.population, commit.task] = saved.saved_of(answer)
            log.info(
                "round committed",
                extra={
                    "population": commit.population, "task": commit.task, "round": commit.number,
                    "phase_id": commit.phase_id, "bytes": len(commit.checkpoint),
                },
            )  # fmt: skip
        else:
            why = answer.reason if isinstance(answer, Refused) else Reason.UNKNOWN
            log.warning("round not committed: %s", why.value, extra={"phase_id": commit.phase_id})
            if why in (Reason.CHANGED, Reason.UNKNOWN, Reason.EXPIRED, Reason.DROPPED):
                self._call(self._is_behind, commit.population)
        self._call(done, isinstance(answer, Item))

    def compute(self, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Run ``job`` in a thread, then call ``then`` with its result or exception (F-131)."""
        self._loop.run_in_executor(self._threads, _caught, job).add_done_callback(partial(_give, then))

    async def pack(self, key: Hashable, job: Callable[[], Any]) -> Any:
        """Compress or inflate a large message in a thread, once for all conversations that want the same now."""
        packing = self._packing.get(key)
        if packing is None:
            packing = self._packing[key] = self._loop.run_in_executor(self._threads, job)
            packing.add_done_callback(lambda _: self._packing.pop(key))
        return await asyncio.shield(packing)

    def _call(self, function: Callable[[Any], object], *given: Any) -> None:
        self._loop.call_soon(function, *given)


class RoundReactor(SessionReactor):
    """Runs a round. A drain neither ends nor refuses it, since devices have already reported to it (F-143)."""

    def _admit(self, step: Open) -> Invocation:
        return self.driver.engine.open(step, limits=self._limits, is_early=True)

    def _drained(self) -> None:
        """Do nothing; the coordinator is notified of the drain, and ends its rounds."""

    def _tell_end(self, error: InvocationError | None) -> None:
        """Do nothing: a round is no session of a peer, and the coordinator counts it."""
        self.driver.sessions.running -= 1
        if error is not None:
            log.info("the invocation of a round was cut", extra={"detail": str(error)})


class _Silent:
    """The wire of an aggregation, which has no peer: all frames are dropped."""

    is_gone = False
    headers: tuple[tuple[str, str], ...] = ()

    def accepted(self) -> None:
        """Do nothing, since there are no headers."""

    def ask(self) -> None:
        """Do nothing: the messages of a round are never held back."""

    def write(self, frame: Any) -> bool:
        raise AssertionError(f"a round sends nothing, but it has sent {frame!r}")

    async def room(self) -> None:
        """Return at once, since there is always room."""


def _ignore(_: Close) -> None:
    """Do nothing: the session has notified the round."""


async def _no_fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:  # noqa: ARG001 - of reactors
    raise StatusError(Status.UNIMPLEMENTED, "a round cannot fetch references")


def _caught(job: Callable[[], Any]) -> Any:
    try:
        return job()
    except Exception as error:  # noqa: BLE001 - the coordinator decides what becomes of it
        return error


def _give(then: Callable[[Any], None], future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        found = future.result()
        try:
            then(found)
        finally:
            if isinstance(found, Exception):
                let_go(found)  # the error's frames refer to a report, and form a cycle with the error
