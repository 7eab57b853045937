"""The life of a serving process: start, ready, lame duck, drain, exit code.

`invoker.server.stopping` decides when it ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Coroutine
from typing import Any

from invoker.execution.pace.tasks import own_task
from invoker.server.server import Server
from invoker.server.stopping import LEAST_S, Signals, leave_at_once, leave_now
from invoker.telemetry.ready import announce

log = logging.getLogger(__name__)


async def run(server: Server, *, hangup_drain_s: float | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit code of the process (R-016, R-024).

    Args:
        server: The server, not yet started.
        hangup_drain_s: If given, SIGHUP ends this process in favour of a successor, after a drain of at most this many
            seconds, and SIGINT is ignored, since another process handles it.
    """
    drain_s = server.config.drain_s

    def hangup() -> None:
        nonlocal drain_s
        drain_s = hangup_drain_s or 0.0

    def leave(number: int) -> None:
        server.end_rest()
        leave_at_once(number)

    signals = Signals(
        server.config.lame_duck_s,
        heard=lambda: limit_end(server),
        leave=leave,
        hangup=None if hangup_drain_s is None else hangup,
    )
    signals.listen()
    try:
        if not await begin(server, signals.told):
            return await end(server, 0.0)
        announce(server.ready_block())
        await signals.told.wait()
        await lame_duck(server, signals)
        return await end(server, drain_s)
    finally:
        signals.close()
        server.guard.disarm()


def limit_end(server: Server) -> None:
    """Limit the time in which the process ends, even if a function blocks the loop."""
    server.guard.arm(server.end_limit_s, "the stop, because something blocks the event loop,")


async def begin(server: Server, told: asyncio.Event) -> bool:
    """Start the server; returns False if ``told`` was set meanwhile, since the process then has to end."""
    starting = asyncio.ensure_future(server.start())
    telling = asyncio.ensure_future(told.wait())
    telling.add_done_callback(lambda _: starting.cancel())
    try:
        await starting
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and told.is_set():
            return False
        await server.stop(drain_s=0)
        raise
    finally:
        telling.cancel()
    return True


async def lame_duck(server: Server, signals: Signals) -> None:
    """Report that this process is not ready, and continue to serve for a while, or until a signal begins the drain."""
    if signals.is_draining:
        return
    server.is_lame = True
    log.info("not ready any more: calls are taken for another %g s", server.config.lame_duck_s)
    await server.refresh_health()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(server.config.lame_duck_s):
            await signals.drain.wait()


async def end(server: Server, drain_s: float) -> int:
    """Stop the server, and return the exit code of the process."""
    server.engine.is_draining = True  # before the line: calls after it must be refused
    count = len(server.engine.running)
    log.info("stopping: %s %s running", count, "invocation is" if count == 1 else "invocations are")
    clean = await server.stop(drain_s=drain_s)
    log.info("stopped")
    return 0 if clean else 1


def run_to_end(server: Server, main: Callable[[], Coroutine[Any, Any, int]], loop_factory: Any) -> int:
    """Run ``main`` on a new loop and close the loop, even if tasks of functions remain; returns the exit code."""
    code = 1
    try:
        with asyncio.Runner(loop_factory=loop_factory) as runner:
            code = run_past_exits(runner.get_loop(), main(), is_interrupted=_has_no_handler)
            if server.driver.left_behind:
                leave_now(code)
            limit_s = max(server.config.hook_timeout_s, LEAST_S)
            server.guard.arm(limit_s, "the end of the tasks and executors that a function has started")
    except SystemExit:
        log.warning("a task that a function has started raised SystemExit while it was cancelled")
    finally:
        server.guard.disarm()
    return code


def run_past_exits(
    loop: asyncio.AbstractEventLoop, main: Coroutine[Any, Any, int], *, is_interrupted: Callable[[], bool]
) -> int:
    """Run ``main`` to its end.

    Exceptions such as SystemExit in the author's tasks or callbacks, at which asyncio would stop the loop, do not end
    it: only the task that raised is over, and the loop continues.

    Args:
        loop: The loop, which is not running.
        main: The coroutine that the loop runs.
        is_interrupted: Whether a KeyboardInterrupt may come from a user at the keyboard, so that it ends the loop.
    """
    loop.set_task_factory(own_task)
    task = loop.create_task(main, name="main")
    while True:
        try:
            return loop.run_until_complete(task)
        except (SystemExit, KeyboardInterrupt) as error:
            if task.done() or is_interrupted():
                raise
            log.warning(
                "a task that a function has started raised %s, which ends that task only", type(error).__name__,
                exc_info=error,
            )  # fmt: skip


def _has_no_handler() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler
