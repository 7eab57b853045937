"""`RoundBacking`: does the I/O of a coordinator.

It runs aggregations, commits rounds, computes in threads, and sets timers.
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
"""A larger blob is hashed in a thread; a blob of this size takes 10 to 40 ms."""

_COMMIT_S: Final = 30.0
"""How many seconds the store may take for a commit. After that it is unknown what was stored, so the population is
opened again."""

_ROUND_BYTES: Final = 2**40
"""How many fed bytes the function may leave unread; the session feeds far fewer ahead."""


class RoundBacking:
    """Implements `Backing` for a coordinator.

    Args:
        driver: Runs the invocations of rounds.
        resources: Makes bytes available to devices.
        wake: Called with the time at which `tick` of the coordinator is due.
        is_behind: Called with a population whose state has to be read from the store again, because a commit was
            refused (another process has committed a round), or the store has not answered.
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
        """Record the stored state of a population's tasks, from which the next commits start."""
        for task, one in tasks.items():
            self._saved[population, task] = one

    def close(self) -> None:
        """Stop the threads; waiting jobs are dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._asker.leave()

    def new_id(self) -> str:
        """Make a random id for a round or an eligibility task."""
        return secrets.token_urlsafe(18)

    def aggregate(self, session: AggregatingSession) -> Callable[[Word], None]:
        """Run the conversation of a round; returns a function that passes a message to it in a later turn."""
        reactor = RoundReactor(session, _Silent(), self._driver, _ignore, hard_bytes=_ROUND_BYTES, window=AHEAD,
                               fetch=_no_fetch)  # fmt: skip
        return lambda word: self._call(reactor.arrived, word)

    def commit(self, commit: Commit, done: Callable[[bool], None]) -> None:
        """Store a checkpoint, if the store still has the one from which the round started (F-083)."""
        before = self._saved[commit.population, commit.task]
        if before.round != commit.number - 1:
            # the commit was stored only after the round had been abandoned
            self._call(self._is_behind, commit.population)
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
        """Run ``job`` in a thread, then call ``then`` with its result or its exception (F-131)."""
        self._loop.run_in_executor(self._threads, _caught, job).add_done_callback(partial(_give, then))

    async def pack(self, key: Hashable, job: Callable[[], Any]) -> Any:
        """Compress or inflate a large message in a thread; simultaneous calls with the same key share one run."""
        packing = self._packing.get(key)
        if packing is None:
            packing = self._packing[key] = self._loop.run_in_executor(self._threads, job)
            packing.add_done_callback(lambda _: self._packing.pop(key))
        return await asyncio.shield(packing)

    def _call(self, function: Callable[[Any], object], *given: Any) -> None:
        self._loop.call_soon(function, *given)


class RoundReactor(SessionReactor):
    """Runs a round; a drain does not end or refuse it, since devices have already reported (F-143)."""

    def _admit(self, step: Open) -> Invocation:
        return self.driver.engine.open(step, limits=self._limits, is_early=True)

    def _drained(self) -> None:
        """Do nothing: the coordinator handles the drain, and ends its rounds."""

    def _tell_end(self, error: InvocationError | None) -> None:
        """Do nothing: the coordinator counts rounds, which are not sessions of peers."""
        self.driver.sessions.running -= 1
        if error is not None:
            log.info("the invocation of a round was cut", extra={"detail": str(error)})


class _Silent:
    """The wire of an invocation without a client, which sends and receives nothing."""

    is_gone = False
    headers: tuple[tuple[str, str], ...] = ()

    def accepted(self) -> None:
        """Do nothing: there are no headers."""

    def ask(self) -> None:
        """Do nothing: reading is never paused."""

    def write(self, frame: Any) -> bool:
        raise AssertionError(f"a round sends nothing, but it has sent {frame!r}")

    async def room(self) -> None:
        """Return at once: there is always room."""


def _ignore(_: Close) -> None:
    """Do nothing: the session has already notified the round."""


async def _no_fetch(uri: str, most: int, deliver: Callable[[bytes], None]) -> None:  # noqa: ARG001 - the interface of reactors
    raise StatusError(Status.UNIMPLEMENTED, "a round cannot fetch references")


def _caught(job: Callable[[], Any]) -> Any:
    try:
        return job()
    except Exception as error:  # noqa: BLE001 - the exception is passed to the coordinator
        return error


def _give(then: Callable[[Any], None], future: asyncio.Future[Any]) -> None:
    if not future.cancelled():
        found = future.result()
        try:
            then(found)
        finally:
            if isinstance(found, Exception):
                let_go(found)  # the traceback refers to a report, and would form a cycle with the error
