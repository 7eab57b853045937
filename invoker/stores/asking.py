"""`Asking`: sends questions to a backend in a thread, so that waiting for a disk or a network never blocks the loop.

Questions that come meanwhile are sent together, in one transaction of a file or one round trip of a network.

A backend may hang: a server may be stopped, or a file locked by another program. After `PATIENCE_S`, a caller that
waits gets the answer that the store cannot be reached; from then on all callers get this answer at once, until the
backend has answered one of this thread's own questions. A question whose caller has left is not sent, unless it was
sent already.

The thread also sends regular questions itself: the report that this process lives, and each second the order to forget
expired spaces, even if no subscriber of this process listens to them.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeAlias

from invoker.core.store import Put
from invoker.stores.backend import LEASE_S, UNAVAILABLE, Asked, Backend, Beat, Event, Sweep

log = logging.getLogger(__name__)

PATIENCE_S: Final = 2.0
"""Seconds that a caller waits for a backend that does not answer, in addition to the time for writing values."""

_BYTES_S: Final = 4 * 1024 * 1024
"""Bytes of values that a slow disk or network takes in a second."""

_PROBE_S: Final = 1.0
"""Seconds after which a backend that has failed to answer is asked again."""

_SWEEP_S: Final = 1.0
"""Seconds between two orders to forget expired spaces."""

_MOST = 256
"""The most questions in one batch; a shared file is locked for other processes meanwhile."""

_JOIN_S = 6.0
"""Seconds that the end of the process waits for a running question."""

_Answer: TypeAlias = Callable[[Any], None]


class _Question:
    """One question to the backend; it is over once it has an answer."""

    __slots__ = ("answer", "asked", "is_over", "size", "until")

    def __init__(self, asked: Asked, answer: _Answer | None, until: float) -> None:
        self.asked = asked
        self.answer = answer
        self.until = until
        self.size = len(asked.value or b"") if type(asked) is Put else 0
        self.is_over = False


class Asking:
    """Sends questions to a backend in a thread of its own, in the order of the calls.

    Args:
        backend: The backend that is asked.
        hear: Called on the loop with each event of the backend.
        lose: Called on the loop when changes may have been missed.
        late: Called on the loop with an answer that came after its question had failed.
    """

    def __init__(
        self,
        backend: Backend,
        hear: Callable[[Sequence[Event]], None],
        lose: Callable[[], None],
        late: _Answer = lambda _: None,
    ) -> None:
        self._backend = backend
        self._hear = hear
        self._lose = lose
        self._late = late
        self._asked: queue.SimpleQueue[_Question | None] = queue.SimpleQueue()
        self._open: deque[_Question] = deque()  # questions for whose answers code waits
        self._bytes = 0  # bytes of values that are waiting to be written
        self._timer: asyncio.TimerHandle | None = None
        self._is_hung = False
        self._every_s: dict[Asked, float] = {Beat(LEASE_S): LEASE_S / 4, Sweep(): _SWEEP_S}
        self._due = dict.fromkeys(self._every_s, 0.0)  # when each is due next, on the clock of ``time.monotonic``
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="invoker-store", daemon=True)

    def start(self) -> None:
        """Open the backend; raises StartupError. Called on the loop."""
        self._loop = asyncio.get_running_loop()
        self._backend.open(lambda events: self._call(self._hear, events), lambda: self._call(self._lose))
        self._thread.start()

    def put(self, asked: Asked, answer: _Answer | None = None, *, is_waited_for: bool = False) -> None:
        """Queue a question; ``answer`` is called on the loop, never within this call.

        Args:
            asked: The question.
            answer: Called with the answer.
            is_waited_for: Whether code waits for the answer, so that a backend that hangs counts as one that cannot be
                reached.
        """
        assert self._loop is not None
        if is_waited_for and self._is_hung and answer is not None:
            self._loop.call_soon(answer, UNAVAILABLE)
            return
        question = _Question(asked, answer, self._loop.time() + PATIENCE_S)
        self._bytes += question.size
        if is_waited_for and answer is not None:
            self._open.append(question)
            if self._timer is None:
                self._timer = self._loop.call_at(question.until, self._look)
        self._asked.put(question)

    def close(self) -> None:
        """Answer the open questions, and end the thread. Idempotent."""
        if self._timer is not None:
            self._timer.cancel()
        if self._thread.is_alive():
            self._asked.put(None)
            self._thread.join(_JOIN_S)

    # These methods run on the loop.

    def _look(self) -> None:
        """Answer callers that have waited too long with an error."""
        assert self._loop is not None
        more_s = self._bytes / _BYTES_S
        self._timer, late, now = None, list[_Question](), self._loop.time() - more_s
        while self._open and (self._open[0].is_over or self._open[0].until <= now):
            question = self._open.popleft()
            if not question.is_over:
                question.is_over = True
                self._bytes, question.size = self._bytes - question.size, 0
                late.append(question)
        if self._open:
            self._timer = self._loop.call_at(self._open[0].until + more_s, self._look)
        if late and not self._is_hung:
            self._is_hung = True
            log.error("the store does not answer; calls that need it fail at once until it does")
            self._probe()
        for one in late:
            assert one.answer is not None
            one.answer(UNAVAILABLE)

    def _probe(self) -> None:
        self.put(Beat(), self._probed)

    def _probed(self, said: Any) -> None:
        assert self._loop is not None
        if said is UNAVAILABLE:
            self._loop.call_later(_PROBE_S, self._probe)
            return
        self._is_hung = False
        log.info("the store answers again")

    def _swept(self, said: Any) -> None:
        if said is True:  # more questions wait
            self.put(Sweep(), self._swept)

    def _give(self, answers: Sequence[tuple[_Question, Any]]) -> None:
        for question, said in answers:
            self._bytes -= question.size
            if question.is_over:
                self._late(said)
            elif question.answer is not None:
                question.is_over = True
                question.answer(said)
        while self._open and self._open[0].is_over:
            self._open.popleft()

    # These methods run in the thread.

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._take(self._backend.look())
            batch = [*self._regular(), *batch]
            if batch:
                try:
                    answers = self._backend.perform([one.asked for one in batch])
                except Exception:
                    log.exception("the store failed")
                    answers = [UNAVAILABLE] * len(batch)
                self._call(self._give, list(zip(batch, answers, strict=True)))
        self._backend.close()

    def _regular(self) -> list[_Question]:
        """The thread's own questions that are due."""
        now = time.monotonic()
        asked = [one for one, at in self._due.items() if now >= at]
        self._due |= {one: now + self._every_s[one] for one in asked}
        return [_Question(one, self._swept if type(one) is Sweep else None, now) for one in asked]

    def _take(self, wait_s: float) -> tuple[list[_Question], bool]:
        """Take waiting questions, up to a limit; also returns whether the thread continues."""
        batch: list[_Question] = []
        wait_s = min(wait_s, min(self._due.values()) - time.monotonic())
        with suppress(queue.Empty):
            one = self._asked.get(timeout=max(0.0, wait_s))
            while one is not None:
                if not one.is_over:
                    batch.append(one)
                if len(batch) == _MOST:
                    return batch, True
                one = self._asked.get_nowait()
            return batch, False
        return batch, True

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has closed, so no code waits for this
            self._loop.call_soon_threadsafe(function, *arguments)
