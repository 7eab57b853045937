"""Makes a sync client from an async one: `SyncClient` is the base class, `blocking`, `giving` and `soon` make methods.

::

    class SyncThings(SyncClient[Things]):
        @opening(Things)
        def __init__(self, source: Things) -> None:
            super().__init__(source)

        count = blocking(Things.count)  # async def count(self, name: str) -> int
        watch = giving(Things.watch, SyncIterator[int])  # def watch(self, name: str) -> AsyncIterator[int]
        cancel = soon(Things.cancel)  # def cancel(self) -> None

Parameters, types and docstrings are those of the async methods, so that the two cannot differ.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from invoker.connect.portal import Portal

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
    """A part of a sync client, with blocking methods for those of the class without ``Sync`` in its name.

    Args:
        portal: The loop on which the client runs; None: the client is not open.
        source: The part of the async client.
    """

    def __init__(self, portal: Portal | None, source: C) -> None:
        self._made = portal
        self._source = source

    @property
    def _portal(self) -> Portal:
        if self._made is None:
            raise RuntimeError(f"the client is not open; use it as `with {type(self).__name__}(...) as client:`")
        return self._made

    def _taken(self, argument: Any) -> Any:
        """Convert an argument to the value that the async client gets."""
        return argument


class SyncIterator(SyncPart[AsyncIterator[T]], Iterator[T]):
    """Iterates over an async iterator, which is closed when this object is dropped."""

    def __next__(self) -> T:
        found = self._portal.run(_next(self._source))
        if found is None:
            raise StopIteration
        return found[0]


class SyncClient(SyncPart[A]):
    """A client for code without an event loop; while the client is open, a loop runs in a thread of its own.

    It is open from ``with`` to the end of the block. Several threads may use it at once.

    Args:
        source: The async client.
    """

    def __init__(self, source: A) -> None:
        super().__init__(None, source)

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
        """Cancel the running calls, close the connection and end the thread. Idempotent."""
        self.__exit__(None, None, None)


@overload
def blocking(method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[Any, P], T]: ...
@overload
def blocking(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]], made: Callable[[Portal, T], R]
) -> Callable[Concatenate[Any, P], R]: ...
def blocking(method: Callable[..., Coroutine[Any, Any, Any]], made: Callable[[Portal, Any], Any] | None = None) -> Any:
    """Make a method that waits until the method of the async client is done.

    Args:
        method: The method of the async client.
        made: Makes the sync form of the result; None: the result is returned unchanged.
    """

    @functools.wraps(method)
    def wait(self: SyncPart[Any], /, *args: Any, **kwargs: Any) -> Any:
        portal = self._portal
        taken, named = map(self._taken, args), {name: self._taken(one) for name, one in kwargs.items()}
        found = portal.run(method(self._source, *taken, **named))
        return found if made is None else made(portal, found)

    return wait


@overload
def giving(method: Callable[Concatenate[C, P], T]) -> Callable[Concatenate[Any, P], T]: ...
@overload
def giving(
    method: Callable[Concatenate[C, P], T], made: Callable[[Portal, T], R]
) -> Callable[Concatenate[Any, P], R]: ...
def giving(method: Callable[..., Any], made: Callable[[Portal, Any], Any] | None = None) -> Any:
    """Make a method that calls a plain method of the async client on its loop; arguments as for `blocking`."""

    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    return blocking(call) if made is None else blocking(call, made)


def soon(method: Callable[[C], None]) -> Callable[[Any], None]:
    """Make a method that schedules a plain method of the async client; does nothing after the close."""

    @functools.wraps(method)
    def call(self: SyncPart[Any], /) -> None:
        self._portal.soon(functools.partial(method, self._source))

    return call


def opening(source: Callable[P, C]) -> Callable[[Callable[[Any, C], None]], Callable[Concatenate[Any, P], None]]:
    """Decorate a constructor that takes an async client.

    The new constructor takes the arguments of that client's class.
    """

    def decorate(init: Callable[[Any, C], None]) -> Callable[Concatenate[Any, P], None]:
        @functools.wraps(source.__init__)
        def begin(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> None:
            init(self, source(*args, **kwargs))

        return begin

    return decorate


async def _next(values: AsyncIterator[T]) -> tuple[T] | None:
    async for value in values:
        return (value,)
    return None
