"""Starts and stops a function once in each process: instantiation, ``with``, init, ready, destroy.

Order of a start: a class is instantiated, its ``__enter__`` (or ``__aenter__``) runs, then the init hook. Order of a
stop: the destroy hook, then ``__exit__``. When a start fails, the stop follows at once, and the error of the start is
reported (R-023). Everything happens once: a second start or stop does nothing.

Sync hooks run in a daemon thread of their own, so that they block neither the loop (R-019) nor, when they never return,
the end of the process. A hook that exceeds its time limit is abandoned, since the process then ends.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
import threading
from collections.abc import Callable
from typing import Any

from invoker.author.loadfail import where_of
from invoker.author.spec import HOOK_TIMEOUT_S, FunctionSpec
from invoker.errors import HookError, StartupError
from invoker.errors.wording import describe

log = logging.getLogger(__name__)


class Hooks:
    """Starts and stops one function in this process.

    Args:
        function: The function as the author gave it; a class is instantiated by `start`.
        spec: The spec of the function.
        timeout_s: Time limit of each hook for which the spec gives none.

    Attributes:
        target: The object that is called: the function itself, or the instance once it is made.
    """

    def __init__(self, function: Any, spec: FunctionSpec, *, timeout_s: float = HOOK_TIMEOUT_S) -> None:
        self.target = function
        self.spec = spec
        self.timeout_s = timeout_s if spec.hooks.timeout_s is None else spec.hooks.timeout_s
        self._is_started = False
        self._is_stopped = False
        self._is_entered = False

    @property
    def is_context_manager(self) -> bool:
        """Whether the function is a context manager, entered at start and exited at stop."""
        kind = self.target if isinstance(self.target, type) else type(self.target)
        return hasattr(kind, "__enter__") or hasattr(kind, "__aenter__")

    @property
    def takes_time(self) -> bool:
        """Whether a start runs the author's code."""
        return self.spec.call.make or self.spec.hooks.init is not None or self.is_context_manager

    async def start(self) -> None:
        """Instantiate, enter and initialise the function; must end before the first invocation (R-017).

        Raises:
            HookError: One of these steps raised or took too long. The stop hooks have run by then (R-021, R-023).
        """
        if self._is_started:
            return
        self._is_started = True
        try:
            if self.spec.call.make:
                # No time limit: the constructor may load a model, as an import of its module may.
                self.target = await self._run("constructor", self.target, None)
            await self._enter()
            if self.spec.hooks.init is not None:
                await self._run("init hook", self.spec.hooks.init, self.timeout_s)
        except BaseException:
            try:
                await self.stop()
            except StartupError as second:
                log.warning("%s", second, extra={"function": self.spec.name})
            raise

    async def stop(self) -> None:
        """Run the stop hooks and exit the context manager; must begin after the last invocation (R-018).

        Raises:
            HookError: The first hook that raised or took too long; the other hooks have run nevertheless.
        """
        if self._is_stopped or not self._is_started:
            return
        self._is_stopped = True
        errors: list[HookError] = []
        for step in (self._destroy, self._exit):
            try:
                await step()
            except HookError as error:
                errors.append(error)
        for later in errors[1:]:
            log.warning("%s", later, extra={"function": self.spec.name})
        if errors:
            raise errors[0]

    @property
    def stop_limit_s(self) -> float:
        """The most seconds that `stop` may take."""
        return self.timeout_s * ((self.spec.hooks.destroy is not None) + self.is_context_manager)

    async def is_ready(self) -> bool:
        """Call the ready hook; without one, a started function is ready. A hook that fails counts as False."""
        if not self._is_started or self._is_stopped:
            return False
        if self.spec.hooks.ready is None:
            return True
        try:
            answer = await self._run("ready hook", self.spec.hooks.ready, self.timeout_s)
        except HookError as error:
            log.warning("%s", error, extra={"function": self.spec.name})
            return False
        return answer is None or bool(answer)

    async def _enter(self) -> None:
        for name in ("__aenter__", "__enter__"):
            if (enter := _special(self.target, name)) is not None:
                await self._run(name, enter, self.timeout_s)
                self._is_entered = True
                return

    async def _destroy(self) -> None:
        if self.spec.hooks.destroy is not None:
            await self._run("destroy hook", self.spec.hooks.destroy, self.timeout_s)

    async def _exit(self) -> None:
        if not self._is_entered:
            return
        for name in ("__aexit__", "__exit__"):
            if (leave := _special(self.target, name)) is not None:
                await self._run(name, lambda: leave(None, None, None), self.timeout_s)
                return

    async def _run(self, kind: str, hook: Callable[[], Any], timeout_s: float | None) -> Any:
        return await run_hook(hook, f"{kind} of '{self.spec.name}'", timeout_s=timeout_s)


async def run_hook(hook: Callable[[], Any], title: str, *, timeout_s: float | None) -> Any:
    """Run a sync or async hook and return its result.

    Args:
        hook: A function without arguments. A sync one runs in a thread; if it returns an awaitable, that is awaited
            here.
        title: The name of the hook in errors.
        timeout_s: None for no limit.

    Raises:
        HookError: The hook raised (the cause is chained), or took longer than ``timeout_s`` (R-020).
    """
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            result = await (_as_coroutine(hook) if _is_async(hook) else _in_thread(hook, title))
            return await result if inspect.isawaitable(result) else result
    except asyncio.CancelledError:
        raise
    except BaseException as raised:  # noqa: BLE001 - user code may raise anything, SystemExit too
        error = raised.error if isinstance(raised, _Raised) else raised
        if limit.expired():
            text = f"The hook took too long to run (timeout: {(timeout_s or 0) * 1000:.0f}ms): {title}"
            raise HookError(text) from None
        if isinstance(error, StartupError):
            raise error from None
        raise HookError(f"the {title} raised {describe(error)}{where_of(error)}") from error


def _is_async(hook: Any) -> bool:
    while isinstance(hook, functools.partial):
        hook = hook.func
    return inspect.iscoroutinefunction(hook) or inspect.iscoroutinefunction(_special(hook, "__call__"))


async def _as_coroutine(hook: Callable[[], Any]) -> Any:
    return hook()


async def _in_thread(hook: Callable[[], Any], title: str) -> Any:
    """Run a hook in a daemon thread; a thread of an executor would be joined when the process ends."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is None:
            done.set_result(result)
        else:
            done.set_exception(_Raised(error))

    def run() -> None:
        result, error = None, None
        try:
            result = hook()
        except BaseException as raised:  # noqa: BLE001 - raised in the task that waits
            error = raised
        try:
            loop.call_soon_threadsafe(settle, result, error)
        except RuntimeError:  # the loop is closed, so no code waits for this hook any more
            log.warning("the %s ended after its time limit had passed", title)

    context = contextvars.copy_context()
    try:
        threading.Thread(target=context.run, args=(run,), name=f"invoker {title}", daemon=True).start()
    except RuntimeError:  # Python 3.12 and later start no thread for hooks that run at the interpreter's exit
        context.run(run)
    return await done


class _Raised(Exception):
    """Carries an exception through a future, which refuses StopIteration and lets SystemExit end the process."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


def _special(target: Any, name: str) -> Callable[..., Any] | None:
    """The bound special method of an instance; None if its class has none."""
    method = getattr(type(target), name, None)
    return None if method is None or isinstance(target, type) else method.__get__(target)
