"""`Background`: runs a server in a thread, for a program or a notebook that does other work meanwhile.

The thread has an event loop of its own, because the loop of a notebook stands still while a cell runs, and the loop of
a program may be blocked at any time. The process belongs to another program: no signal is handled, and the process is
never ended by force. A server that does not end within its time limit is abandoned with a warning; its thread is a
daemon::

    start() --it cannot--> over, and the error is raised
       |
    serving --stop(), in any thread--> draining --> over
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from invoker.errors import StartupError
from invoker.server import life
from invoker.server.server import Server
from invoker.server.stopping import LEAST_S, listed

log = logging.getLogger(__name__)


class Background:
    """Runs one server, once.

    Args:
        server: The server, made with ``is_guest=True`` and not yet started.
        loop_factory: Makes the event loop; None: asyncio makes it.
    """

    def __init__(self, server: Server, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._server = server
        self._loop = (loop_factory or asyncio.new_event_loop)()
        self._process = os.getpid()
        self._told = asyncio.Event()
        self._drain_s = server.config.drain_s
        self._started: Future[None] = _future()
        self._over: Future[bool] = _future()
        self._thread = threading.Thread(target=self._run, name="invoker-serve", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether the server has started and is not over; True while it drains."""
        return self._started.done() and not self._over.done() and self._is_here

    def start(self) -> None:
        """Start the server, and return once it serves.

        Raises:
            StartupError: The server cannot start.
        """
        try:
            self._thread.start()
            self._started.result()
        except BaseException:  # also at a KeyboardInterrupt, since no caller would get the started server to stop it
            if self._thread.ident is None:
                self._loop.close()
            else:
                self.stop(0.0)
            raise

    def stop(self, drain_s: float | None = None) -> bool:
        """Drain, close transports and run the stop hooks; True if nothing was cut, no hook failed and all has ended.

        Args:
            drain_s: How long running invocations may continue; None: as long as the settings say.
        """
        if not self._is_here:
            return False
        self._tell(drain_s)
        if threading.current_thread() is self._thread:
            return False  # this runs on the loop that has to stop the server, so the stop happens in a later turn
        try:
            clean = self._over.result(self._limit_s)
        except TimeoutError:
            return self._leave_behind()
        self._thread.join()
        return clean

    async def stop_async(self, drain_s: float | None = None) -> bool:
        """Stop as `stop` does, while the loop of the caller continues."""
        if not self._is_here:
            return False
        self._tell(drain_s)
        try:
            async with asyncio.timeout(self._limit_s):
                clean = await asyncio.wrap_future(self._over)
        except TimeoutError:
            return self._leave_behind()
        self._thread.join()
        return clean

    @property
    def _is_here(self) -> bool:
        """Whether this is the process that serves, and not a fork of it, which lacks the server's thread."""
        return os.getpid() == self._process

    @property
    def _limit_s(self) -> float:
        config = self._server.config
        return self._server.end_limit_s - config.lame_duck_s - config.drain_s + self._drain_s + LEAST_S

    def _tell(self, drain_s: float | None) -> None:
        if not self._over.done():
            self._drain_s = self._server.config.drain_s if drain_s is None else drain_s
            with suppress(RuntimeError):  # the loop has closed, so the server has ended
                self._loop.call_soon_threadsafe(self._told.set)

    def _leave_behind(self) -> bool:
        names = listed(self._server.driver.left_behind) or "code that blocks its event loop"
        log.warning("a server has not ended within %g s and continues in its thread: %s", self._limit_s, names)
        return False

    # In the thread.

    def _run(self) -> None:
        clean = False
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                # Ctrl-C interrupts only the main thread, so an exception here comes from a function.
                code = life.run_past_exits(runner.get_loop(), self._main(), is_interrupted=lambda: False)
                clean = code == 0 and not self._server.driver.left_behind
        except BaseException as error:  # it is raised in the thread that waits for the start
            if self._started.done():
                log.exception("a server has failed")
            else:
                self._started.set_exception(error)
        finally:
            if not self._started.done():
                self._started.set_exception(StartupError("the server was stopped before it had started"))
            self._over.set_result(clean)

    async def _main(self) -> int:
        if not await life.begin(self._server, self._told):
            return await life.end(self._server, 0.0)
        self._started.set_result(None)
        await self._told.wait()
        return await life.end(self._server, self._drain_s)


def _future() -> Future[Any]:
    """A future that its waiters cannot cancel."""
    made: Future[Any] = Future()
    made.set_running_or_notify_cancel()
    return made
