"""`Sweeper`: one thread that watches conversations whose own threads are busy in user code.

A thread that runs a sync function waits for its peer only when the function pulls or emits. Three things must not wait
for user code: a frame that was held back to be sent with others is sent after a beat; a peer that is gone is noticed at
the next look, so that the context can notify the function, and a thread that ignores the notice is counted (R-115,
R-116); an invocation that outlives its inputs is logged (R-134). Without traffic the thread sleeps from look to look;
without conversations it just sleeps.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from invoker.execution.pace.gate import Gate

log = logging.getLogger(__name__)

BEAT_S = 0.002
"""Seconds between two beats; a frame is held for about two beats at most."""

LOOK_S = 0.1
"""Seconds between two looks at the conversations, approximately."""

_BEATS = 50
"""Beats for which the sweeper stays awake after its last call, so that not each call has to wake it."""


class Swept(Protocol):
    """A conversation that the sweeper looks at in each beat."""

    def sweep(self, now: float) -> bool:
        """Check the conversation; False when it is over."""


class Busy(Protocol):
    """The work of a leading thread."""

    def beat(self) -> None:
        """Note that the thread has been busy with this work for longer than a beat; called by the sweeper."""


class Followed(Protocol):
    """A thread whose work is noticed once it lasts for longer than a beat.

    Attributes:
        busy: The thread's current work; None while it waits for work.
        seen: The work that the sweeper saw at its last beat.
    """

    busy: Busy | None
    seen: Busy | None


class Sweeper:
    """Watches calls and conversations in a daemon thread, which starts with the first of them.

    Attributes:
        gate: The gate where the threads of quick functions take turns; a beat ends long turns.
    """

    def __init__(self) -> None:
        self.gate = Gate(self.call)
        self._conversations: set[Swept] = set()
        self._hot: set[Any] = set()
        self._followed: set[Followed] = set()
        self._is_called = False
        self._is_asleep = False
        self._beats = 0
        self._wakeup = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def add(self, conversation: Swept) -> None:
        """Watch a conversation until its `sweep` returns that it is over."""
        with self._lock:
            self._conversations.add(conversation)
            self._start()
            is_first = len(self._conversations) == 1
        if is_first:
            self._wakeup.set()

    def watch(self, call: Any) -> None:
        """From now on, send the held frame of this call within two beats."""
        with self._lock:
            call.is_swept = True
            self._hot.add(call)
        self.call()

    def follow(self, thread: Followed) -> None:
        """From now on, notice what this thread is busy with for longer than a beat.

        The thread calls `call` when it begins.
        """
        with self._lock:
            self._followed.add(thread)
            self._start()

    def unfollow(self, thread: Followed) -> None:
        """Forget a thread; does nothing if it is not followed."""
        with self._lock:
            self._followed.discard(thread)
            thread.seen = None  # the work refers to the thread, so it would have to wait for the garbage collector

    def call(self) -> None:
        """Keep the beats going for a while, because a caller needs them."""
        # Set the flag, then check `_is_asleep`; the thread does these in the reverse order, so one of the two notices
        # the other.
        self._is_called = True
        if self._is_asleep:
            self._wakeup.set()

    def close(self) -> None:
        """Let the thread end, and wait for its end for at most a second."""
        with self._lock:  # another thread may be starting this one
            self._is_closed = True
            thread = self._thread
        self._wakeup.set()
        if thread is not None:
            thread.join(1.0)

    def _start(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="invoker-sweeper", daemon=True)
            self._thread.start()

    # These methods run in the sweeper's thread.

    def _run(self) -> None:
        looked = time.monotonic()
        while not self._is_closed:
            if self._beats or self._hot:
                time.sleep(BEAT_S)
                self._guarded(self._beat)
            else:
                self._sleep()
            now = time.monotonic()
            if now - looked >= LOOK_S:
                looked = now
                self._look(now)

    def _sleep(self) -> None:
        self._is_asleep = True
        if not self._is_called:
            self._wakeup.wait(LOOK_S if self._conversations else None)
            self._wakeup.clear()
        self._is_asleep = False
        if self._is_called:
            self._beats = _BEATS

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception:
            log.exception("the sweeper failed")

    def _beat(self) -> None:
        is_called, self._is_called = self._is_called, False
        is_busy = self.gate.beat() | self._beat_followed()
        self._beats = _BEATS if is_called or is_busy else max(0, self._beats - 1)
        with self._lock:
            hot = list(self._hot)
        for call in hot:
            try:
                self._beat_call(call)
            except Exception:
                log.exception("the held frames of a call could not be sent")
                with self._lock:
                    call.is_swept = False
                    self._hot.discard(call)

    def _beat_call(self, call: Any) -> None:
        held = call.held
        if held is None:
            if call.seen is None:
                self._forget(call)
            call.seen = None
        elif held is call.seen:  # it was already held at the last beat
            with call.lock:
                if call.held is held:
                    call.flush()
        else:
            call.seen = held

    def _beat_followed(self) -> bool:
        """Call ``beat`` of calls that last longer than a beat, and return whether any thread is busy."""
        with self._lock:
            found = [(thread, thread.busy) for thread in self._followed]
        for thread, busy in found:
            if busy is not None and busy is thread.seen:
                try:
                    busy.beat()
                except Exception:
                    log.exception("a long call could not be checked")
        with self._lock:
            for thread, busy in found:
                if thread in self._followed:
                    thread.seen = busy
        return any(busy is not None for _, busy in found)

    def _forget(self, call: Any) -> None:
        """Stop watching a call that held nothing for two beats; the next frame that it holds adds it again."""
        with self._lock:
            # Clear the flag, then check `held`; the call's thread does these in the reverse order, so one of the two
            # notices the other.
            call.is_swept = False
            if call.held is None:
                self._hot.discard(call)
            else:
                call.is_swept = True

    def _look(self, now: float) -> None:
        with self._lock:
            conversations = list(self._conversations)
        for conversation in conversations:
            try:
                goes_on = conversation.sweep(now)
            except Exception:
                log.exception("a conversation could not be checked")
                goes_on = False
            if not goes_on:
                with self._lock:
                    self._conversations.discard(conversation)
