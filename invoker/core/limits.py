"""Bounds the invocations of a function over every protocol: their time, how many at once, how many in a minute.

Theory. The engine asks a `Limiter` after all other checks, so a call that is refused for another reason does not count.
A function with ``max_calls`` has a *place* for each call. The invocation keeps its place until user code has returned,
which may be long after its ending: a sync function that ignores its ending still works, and still takes the resources
that the limit protects.

Rates are counted in *windows*: a window remembers when each call of the last 60 seconds began. There is one for each
function and party, and one for all calls of the process. A window without calls is forgotten; when there are too many
windows, the least recently used one is forgotten as well. So memory is bounded, whatever names parties choose.
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Final

from invoker.author.spec import Bounds
from invoker.errors import DeadlineExceeded, InvocationError, Overloaded

MOST_WINDOWS: Final = 65_536

_WINDOW_S: Final = 60.0


class TimedOut(DeadlineExceeded):
    """An invocation has exceeded its time limit.

    Args:
        timeout_s: How many seconds it was allowed to take.
        is_functions: Whether the function set the limit by ``@function(timeout_s=...)``; otherwise the caller set it.
    """

    def __init__(self, timeout_s: float, *, is_functions: bool) -> None:
        whose = "its function allows" if is_functions else "was asked for"
        super().__init__(f"the invocation took longer than the {timeout_s:g} s that {whose}")
        self.timeout_s = timeout_s
        self.is_functions = is_functions


class LimitReached(Overloaded):
    """One more invocation would exceed a limit; the same call may be allowed later.

    Args:
        detail: The text for the peer.
        code: ``concurrency``, ``rate_limit`` or ``global_rate_limit``.
        scope: The scope of the limit: a ``function``, a ``party`` (its calls of one function) or the ``process``.
        limit: How many are allowed.
        retry_after_s: When the next one will be allowed; None where this is not known.
    """

    def __init__(self, detail: str, *, code: str, scope: str, limit: int, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.scope = scope
        self.limit = limit
        self.retry_after_s = retry_after_s


class TimeLimit:
    """The time at which an invocation is ended, and the error for that.

    Args:
        timeout_s: How long the invocation may take from now on.
        is_functions: Whether its function sets the limit; otherwise its caller does.

    Attributes:
        ends_at: On the clock of ``time.monotonic``.
    """

    __slots__ = ("_error", "ends_at", "is_functions", "timeout_s")

    def __init__(self, timeout_s: float, *, is_functions: bool) -> None:
        self.timeout_s = timeout_s
        self.is_functions = is_functions
        self.ends_at = time.monotonic() + timeout_s
        self._error: InvocationError | None = None

    def stop(self, error: InvocationError) -> None:
        """End the invocation now, with another error.

        The thread that watches the time limit ends the invocation when it next looks at the limit.
        """
        self._error = self._error or error
        self.ends_at = 0.0

    @property
    def error(self) -> InvocationError:
        """`TimedOut`, or the error that `stop` set."""
        return self._error or TimedOut(self.timeout_s, is_functions=self.is_functions)


def limit_of(bounds: Bounds | None, timeout_s: float | None) -> TimeLimit | None:
    """The limit of an invocation: the shorter one of its function's and its caller's."""
    functions = bounds.timeout_s if bounds is not None else None
    if functions is not None and (timeout_s is None or functions <= timeout_s):
        return TimeLimit(functions, is_functions=True)
    return TimeLimit(timeout_s, is_functions=False) if timeout_s is not None else None


class Limiter:
    """Counts the calls of one process; the module's docstring explains the limits.

    All methods are called with the engine's lock held.

    Args:
        per_minute: Calls of all functions and parties that may begin within any 60 seconds; 0 means no limit.
        clock: Monotonic, in seconds.
    """

    def __init__(self, per_minute: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self._clock = clock
        self._taken: dict[str, int] = {}
        self._all: deque[float] = deque()
        self._windows: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()

    def enter(self, name: str, bounds: Bounds, party: str) -> bool:
        """Count one more call of a function, and return whether it takes a place, which `leave` frees.

        Raises:
            LimitReached: There is no place, or there were too many calls in the last minute; nothing was counted.
        """
        now = self._clock()
        taken = self._taken.get(name, 0)
        if bounds.max_calls and taken >= bounds.max_calls:
            raise _full(name, bounds.max_calls)
        if self.per_minute:
            _check(self._all, self.per_minute, now, name, "global_rate_limit", "process")
        if bounds.calls_per_minute:
            own = self._window((name, party), now)
            _check(own, bounds.calls_per_minute, now, name, "rate_limit", "party")
            own.append(now)
            self._windows[name, party] = own
            self._windows.move_to_end((name, party))
        if self.per_minute:
            self._all.append(now)
        if bounds.max_calls:
            self._taken[name] = taken + 1
        return bounds.max_calls > 0

    def leave(self, name: str) -> None:
        """Free the place of a call whose user code has returned."""
        self._taken[name] -= 1

    def taken(self, name: str) -> int:
        """How many places of a function are taken."""
        return self._taken.get(name, 0)

    def _window(self, key: tuple[str, str], now: float) -> deque[float]:
        """The window of a party; the least recently used windows are forgotten when there are too many."""
        windows = self._windows
        while windows:
            oldest = next(iter(windows))
            has_room = key in windows or len(windows) < MOST_WINDOWS
            if has_room and now - windows[oldest][-1] < _WINDOW_S:
                break
            del windows[oldest]
        return windows.get(key) or deque()


def _check(window: deque[float], limit: int, now: float, name: str, code: str, scope: str) -> None:
    """Forget the calls that began 60 seconds ago, and raise LimitReached if the later ones reach the limit."""
    while window and now - window[0] >= _WINDOW_S:
        window.popleft()
    if len(window) >= limit:
        wait_s = window[0] + _WINDOW_S - now
        whose = "all functions together" if scope == "process" else f"'{name}'"
        raise LimitReached(
            f"{whose} may be called {_times(limit)} within 60 s; the next call is allowed in {wait_s:.1f} s",
            code=code,
            scope=scope,
            limit=limit,
            retry_after_s=wait_s,
        )


def _full(name: str, limit: int) -> LimitReached:
    many = "1 call of it runs" if limit == 1 else f"{limit} calls of it run"
    return LimitReached(
        f"'{name}' has reached its limit of calls at once: {many}", code="concurrency", scope="function", limit=limit
    )


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
