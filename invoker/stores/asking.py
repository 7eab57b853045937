"""`Asking`: the thread in which a backend is asked, so that waiting for a disk or a network never holds up the loop.

What was asked meanwhile is done in one go, which makes one transaction of a file and one round trip of a network.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from invoker.stores.backend import UNAVAILABLE, Asked, Backend, Event

__all__ = ["Asking"]

log = logging.getLogger(__name__)

_MOST = 256
"""Questions in one go; a shared file is locked for others meanwhile."""

_JOIN_S = 6.0
"""How long the end of the process waits for an answer that is under way."""

_Answer: TypeAlias = Callable[[Any], None]


class Asking:
    """Asks a backend in a thread of its own, in the order in which it is told to.

    Args:
        backend: Is asked.
        hear: Called on the loop with what happened.
        lose: Called on the loop when changes may have been missed.
    """

    def __init__(self, backend: Backend, hear: Callable[[Sequence[Event]], None], lose: Callable[[], None]) -> None:
        self._backend = backend
        self._hear = hear
        self._lose = lose
        self._asked: queue.SimpleQueue[tuple[Asked, _Answer | None] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="invoker-store", daemon=True)

    def start(self) -> None:
        """Open the backend; raises StartupError. Called on the loop."""
        self._loop = asyncio.get_running_loop()
        self._backend.open(lambda events: self._call(self._hear, events), lambda: self._call(self._lose))
        self._thread.start()

    def put(self, asked: Asked, answer: _Answer | None = None) -> None:
        """Ask; ``answer`` is called on the loop, never from within this call."""
        self._asked.put((asked, answer))

    def close(self) -> None:
        """Answer what was asked, and end the thread. Idempotent."""
        if self._thread.is_alive():
            self._asked.put(None)
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._take(self._backend.idle())
            if batch:
                try:
                    answers = self._backend.perform([asked for asked, _ in batch])
                except Exception:
                    log.exception("the store failed")
                    answers = [UNAVAILABLE] * len(batch)
                self._call(_give, [(answer, said) for (_, answer), said in zip(batch, answers, strict=True) if answer])
        self._backend.close()

    def _take(self, wait_s: float) -> tuple[list[tuple[Asked, _Answer | None]], bool]:
        """What was asked, at most so many; and whether the thread goes on."""
        batch: list[tuple[Asked, _Answer | None]] = []
        with suppress(queue.Empty):
            one = self._asked.get(timeout=wait_s)
            while one is not None:
                batch.append(one)
                if len(batch) == _MOST:
                    return batch, True
                one = self._asked.get_nowait()
            return batch, False
        return batch, True

    def _call(self, function: Callable[..., None], *arguments: Any) -> None:
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop has closed, so nobody waits
            self._loop.call_soon_threadsafe(function, *arguments)


def _give(answers: list[tuple[_Answer, Any]]) -> None:
    for answer, said in answers:
        answer(said)
