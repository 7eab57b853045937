"""What makes a sync client of an async one: `SyncClient` for the whole, `blocking` and `giving` for its methods.

::

    class SyncThings(SyncClient[Things]):
        @opening(Things)
        def __init__(self) -> None: ...

        count = blocking(Things.count)          # async def count(self, name: str) -> int
        watch = giving(Things.watch, SyncStream)  # def watch(self, name: str) -> Stream

Parameters, types and docstrings are those of the async methods, so that the two cannot differ.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from invoker.connect.portal import Portal

__all__ = ["SyncClient", "SyncPart", "blocking", "giving", "opening"]

C = TypeVar("C")
A = TypeVar("A", bound="AsyncClient")
P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class AsyncClient(Protocol):
    """A client that is open from ``async with`` to the end of the block."""

    async def __aenter__(self) -> Any: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Any: ...


class SyncPart(Generic[C]):
    """A part of a sync client, with the methods of its namesake without ``Sync``; only the waiting is different.

    Args:
        portal: The loop on which the client runs.
        source: The part of the async client.
    """

    def __init__(self, portal: Portal, source: C) -> None:
        self._portal = portal
        self._source = source


class SyncClient(Generic[A]):
    """A client for code without an event loop: one runs in a thread of its own while the client is open.

    It is open from ``with`` to the end of the block. Several threads may use it at once.

    Args:
        source: The async client.
    """

    def __init__(self, source: A) -> None:
        self._source = source
        self._made: Portal | None = None

    def __enter__(self) -> Self:
        if self._made is None:
            portal = Portal()
            try:
                portal.run(self._source.__aenter__())
            except BaseException:
                portal.close()
                raise
            self._made = portal
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        portal, self._made = self._made, None
        if portal is not None:
            try:
                portal.run(self._source.__aexit__(kind, error, trace))
            finally:
                portal.close()

    def close(self) -> None:
        """Cancel what is under way, close the connection and end the thread. Idempotent."""
        self.__exit__(None, None, None)

    @property
    def _portal(self) -> Portal:
        if self._made is None:
            raise RuntimeError(f"the client is not open; use it as `with {type(self).__name__}(...) as client:`")
        return self._made


@overload
def blocking(method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]: ...
@overload
def blocking(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]], made: Callable[[Portal, T], R]
) -> Callable[Concatenate[Any, P], R]: ...
def blocking(method: Callable[..., Coroutine[Any, Any, Any]], made: Callable[[Portal, Any], Any] | None = None) -> Any:
    """The method that waits until that of the async client is done.

    Args:
        method: That of the async client.
        made: Makes the sync form of what it gives; None: that is given as it is.
    """

    @functools.wraps(method)
    def wait(self: Any, /, *args: Any, **kwargs: Any) -> Any:
        portal: Portal = self._portal
        found = portal.run(method(self._source, *args, **kwargs))
        return found if made is None else made(portal, found)

    return wait


def giving(method: Callable[Concatenate[C, P], T], made: Callable[[Portal, T], R]) -> Callable[Concatenate[Any, P], R]:
    """The method that gives the sync form of what that of the async client gives, without waiting.

    Args:
        method: That of the async client, which is called in the caller's thread.
        made: Makes the sync form.
    """

    @functools.wraps(method)
    def give(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return made(self._portal, method(self._source, *args, **kwargs))

    return give


def opening(source: Callable[P, A]) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, P], None]]:
    """Decorates the constructor of a `SyncClient`, which then takes what the class of the async client takes."""

    def decorate(_: Callable[..., None]) -> Callable[Concatenate[Any, P], None]:
        @functools.wraps(source.__init__)
        def begin(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            SyncClient.__init__(self, source(*args, **kwargs))

        return begin

    return decorate
