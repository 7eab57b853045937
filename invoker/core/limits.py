"""What bounds the invocations of a function over every protocol, and the errors that tell of it."""

from __future__ import annotations

from invoker.errors import DeadlineExceeded, Overloaded

__all__ = ["LimitReached", "TimedOut"]


class TimedOut(DeadlineExceeded):
    """An invocation took longer than it may.

    Args:
        timeout_s: How long it might take.
        is_functions: Its function says so, by ``@function(timeout_s=...)``; otherwise its caller did.
    """

    def __init__(self, timeout_s: float, *, is_functions: bool) -> None:
        whose = "its function allows" if is_functions else "was asked for"
        super().__init__(f"the invocation took longer than the {timeout_s:g} s that {whose}")
        self.timeout_s = timeout_s
        self.is_functions = is_functions


class LimitReached(Overloaded):
    """One more invocation would be more than a limit allows; the same may pass later.

    Args:
        detail: What the peer reads.
        code: ``concurrency``, ``rate_limit`` or ``global_rate_limit``.
        scope: What the limit is for: a ``function``, a ``party`` (its calls of one function) or the ``process``.
        limit: How many are allowed.
        retry_after_s: When the next one will be allowed; None where nobody knows.
    """

    def __init__(self, detail: str, *, code: str, scope: str, limit: int, retry_after_s: float | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.scope = scope
        self.limit = limit
        self.retry_after_s = retry_after_s
