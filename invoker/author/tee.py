"""`tee`: reads a stream once and hands every item to several branches.

Unlike the branches of `itertools.tee`, these may be read in different threads (of a sync stream) or tasks (of an async
one), and they are bounded: a reader whose branch is ``limit`` items ahead of the slowest branch **waits** until that
branch is read or closed. Items are Python objects, so the bound counts items and not bytes. A branch that was closed or
dropped no longer counts.

If one thread or task reads two branches one after the other, the first would wait for ever. That raises a RuntimeError:
at once if the slow branch was read by the waiting thread or task before, after some seconds if its reading has not
begun. With ``limit=None`` there is no bound, and no reader waits.

An error of the stream, also a cancelled input, reaches each branch after the items that came before it.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, overload

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")

_LIMIT: Final = 1024
_PATIENCE_S = 10.0


@overload
def tee(stream: AsyncIterable[T], n: int = 2, *, limit: int | None = _LIMIT) -> tuple[AsyncIterator[T], ...]: ...
@overload
def tee(stream: Iterable[T], n: int = 2, *, limit: int | None = _LIMIT) -> tuple[Iterator[T], ...]: ...
def tee(stream: Any, n: int = 2, *, limit: int | None = _LIMIT) -> tuple[Any, ...]:
    """Split a stream into ``n`` branches that each see every item.

    Args:
        stream: A plain or async iterable. Only the branches may read it from now on.
        n: How many branches there are.
        limit: A branch may be this many items ahead of another; then its reader waits. None means no limit.

    Returns:
        Plain or async iterators, like the stream, which have ``close()`` or ``aclose()``.

    Raises:
        ValueError: ``n`` is negative or ``limit`` is less than 1.
    """
    if n < 0 or (limit is not None and limit < 1):
        raise ValueError(f"tee() needs n >= 0, and limit >= 1 or None; got n={n}, limit={limit}")
    buffers: tuple[_Buffer[Any], ...] = tuple(_Buffer() for _ in range(n))
    if hasattr(stream, "__aiter__"):
        on_loop = _AsyncSource(aiter(stream), buffers, limit)
        return tuple(_AsyncBranch(on_loop, one) for one in buffers)
    in_threads = _Source(iter(stream), buffers, limit)
    return tuple(_Branch(in_threads, one) for one in buffers)


class _Buffer(Generic[T]):
    """The items that one branch has yet to read; ``reader`` is the thread or task that last read it."""

    __slots__ = ("is_closed", "items", "reader")

    def __init__(self) -> None:
        self.items: deque[T] = deque()
        self.reader: object = None
        self.is_closed = False


class _Shared(Generic[T]):
    """The state that sync and async sources share."""

    def __init__(self, buffers: tuple[_Buffer[T], ...], limit: int | None) -> None:
        self.buffers = buffers
        self.limit = limit
        self.is_ended = False
        self.error: BaseException | None = None

    def slowest(self, own: _Buffer[T]) -> _Buffer[T] | None:
        """The branch that ``own`` must wait for before it reads on, or None."""
        limit = self.limit
        if limit is None:
            return None
        return next(
            (one for one in self.buffers if len(one.items) >= limit and one is not own and not one.is_closed), None
        )

    def give(self, own: _Buffer[T], item: T) -> None:
        """Give an item that ``own`` has just read to all other branches."""
        for one in self.buffers:
            if one is not own and not one.is_closed:
                one.items.append(item)

    def refuse(self, slow: _Buffer[T], reader: object, *, is_patient: bool) -> None:
        """Refuse to wait for a branch that only the waiting reader itself could read, since it would wait for ever.

        Raises:
            RuntimeError: The same thread or task reads the slow branch, or the branch has not been read for too long.
        """
        if slow.reader is reader or (slow.reader is None and not is_patient):
            raise RuntimeError(
                f"a branch of tee() is {self.limit} items ahead of another one, which is not read by another thread "
                "or task; read them in turn, or pass limit=None"
            )


class _Source(_Shared[T]):
    """A sync stream.

    One branch at a time pulls it, without the lock, so that the other branches can take their items meanwhile.
    """

    def __init__(self, stream: Iterator[T], buffers: tuple[_Buffer[T], ...], limit: int | None) -> None:
        super().__init__(buffers, limit)
        self.stream = stream
        self.changed = threading.Condition(threading.RLock())
        self.puller: threading.Thread | None = None

    def take(self, own: _Buffer[T]) -> T:
        thread = own.reader = threading.current_thread()
        with self.changed:
            is_patient = True
            while not own.items:
                slow = self._obstacle(own, thread)
                if slow is None and self.puller is None:
                    self.puller = thread
                    break
                if slow is not None:
                    self.refuse(slow, thread, is_patient=is_patient)
                is_patient = self.changed.wait(_PATIENCE_S)
            else:
                item = own.items.popleft()
                self.changed.notify_all()
                return item
        return self._pull(own)

    def _obstacle(self, own: _Buffer[T], thread: threading.Thread) -> _Buffer[T] | None:
        if self.error is not None:
            raise self.error
        if self.is_ended or own.is_closed:
            raise StopIteration
        if self.puller is thread:
            raise RuntimeError("the stream of tee() reads one of its own branches; remove this cycle")
        return self.slowest(own)

    def _pull(self, own: _Buffer[T]) -> T:
        try:
            item = next(self.stream)
        except BaseException as error:
            with self.changed:
                self.is_ended = True
                self.error = None if isinstance(error, StopIteration) else error
                self._pulled()
            raise
        with self.changed:
            self.give(own, item)
            self._pulled()
        return item

    def _pulled(self) -> None:
        self.puller = None
        self.changed.notify_all()

    def close(self, own: _Buffer[T]) -> None:
        with self.changed:
            own.is_closed = True
            own.items.clear()
            self.changed.notify_all()


class _Branch(Iterator[T]):
    def __init__(self, source: _Source[T], own: _Buffer[T]) -> None:
        self._source = source
        self._own = own

    def __next__(self) -> T:
        return self._source.take(self._own)

    def close(self) -> None:
        """Stop reading this branch; the other branches continue."""
        self._source.close(self._own)

    def __del__(self) -> None:
        self.close()


class _AsyncSource(_Shared[T]):
    """An async stream. It belongs to one loop, so there is no lock, only a future on which to wait for a change."""

    def __init__(self, stream: AsyncIterator[T], buffers: tuple[_Buffer[T], ...], limit: int | None) -> None:
        from asyncio import current_task  # `import invoker` must not load asyncio

        super().__init__(buffers, limit)
        self.stream = stream
        self.current_task = current_task
        self.puller: asyncio.Task[Any] | None = None
        self.changed: asyncio.Future[None] | None = None

    async def take(self, own: _Buffer[T]) -> T:
        task = own.reader = self.current_task()
        is_patient = True
        while not own.items:
            if self.error is not None:
                raise self.error
            if self.is_ended or own.is_closed:
                raise StopAsyncIteration
            if self.puller is not None and self.puller is task:
                raise RuntimeError("the stream of tee() reads one of its own branches; remove this cycle")
            slow = self.slowest(own)
            if slow is None and self.puller is None:
                return await self._pull(own)
            if slow is not None:
                self.refuse(slow, task, is_patient=is_patient)
            is_patient = await self._wait()
        item = own.items.popleft()
        self.notify()
        return item

    async def _wait(self) -> bool:
        """Wait for a change; False when none came for some seconds."""
        import asyncio

        if self.changed is None:
            self.changed = asyncio.get_running_loop().create_future()
        done, _ = await asyncio.wait([self.changed], timeout=_PATIENCE_S)
        return bool(done)

    async def _pull(self, own: _Buffer[T]) -> T:
        self.puller = self.current_task()
        try:
            item = await anext(self.stream)
            self.give(own, item)
            return item
        except StopAsyncIteration:
            self.is_ended = True
            raise
        except BaseException as error:
            from asyncio import CancelledError

            # The cancellation may have ended a generator; the other branches must not take that for a normal end.
            if not isinstance(error, CancelledError):
                self.error = error
            elif getattr(self.stream, "ag_frame", self) is None:
                self.error = RuntimeError("the stream of tee() was cancelled together with the reader of a branch")
            raise
        finally:
            self.puller = None
            self.notify()

    def notify(self) -> None:
        if self.changed is not None and not self.changed.done():
            self.changed.set_result(None)
        self.changed = None

    def close(self, own: _Buffer[T]) -> None:
        own.is_closed = True
        own.items.clear()
        self.notify()


class _AsyncBranch(AsyncIterator[T]):
    def __init__(self, source: _AsyncSource[T], own: _Buffer[T]) -> None:
        self._source = source
        self._own = own

    async def __anext__(self) -> T:
        return await self._source.take(self._own)

    async def aclose(self) -> None:
        """Stop reading this branch; the other branches continue."""
        self._source.close(self._own)

    def __del__(self) -> None:
        changed = self._source.changed
        self._own.is_closed = True
        if changed is not None and not changed.get_loop().is_closed():
            # the garbage collector may run this in any thread
            changed.get_loop().call_soon_threadsafe(self._source.close, self._own)
