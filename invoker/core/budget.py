"""Bytes held unread or undecoded: `Budget` for one invocation, `ProcessBudget` for all conversations of a process.

Theory. Each conversation is bounded by itself, but a thousand of them together are not. So all code that keeps bytes of
a peer has a `Share`. The first `STEP_BYTES` of a share are *free*: they are not counted. Further bytes are charged in
steps, before they are held, so most frames cost one comparison, and the lock is taken once for each step.

Reading never pauses for this budget: the frame that ends a wait may be behind those that fill it (R-129). When a step
does not fit

* caches give their bytes back, the largest first, until the charge fits; a cache itself ends nothing else;
* a share without ``end`` (a body) is refused; its sender may try again;
* the share that holds most of those that can be ended is ended, one at a time;
* until the ended share gives its bytes back, others may exceed the limit by a sixteenth, or by 8 MiB if that is less.

Nothing here waits for room.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from invoker.errors import InvocationError, LimitExceeded, Overloaded

End: TypeAlias = Callable[[InvocationError], None]

STEP_BYTES: Final = 64 * 1024

_SPARE: Final = 16
_MOST_SPARE_BYTES: Final = 8 * 1024 * 1024
"""While the largest share is being ended, the sum may exceed the limit: by this part of it, a sixteenth, and by at most
this many bytes. That is enough for the steps, of an eighth of a share, by which other calls grow meanwhile."""


class ProcessBudget:
    """The limit of a process, and the shares that its conversations hold.

    Args:
        most_bytes: How many bytes may be held at once.
        lock: Held while numbers change; None: no lock, for a budget that only one thread uses.

    Attributes:
        held: Bytes that are charged right now.
        ended: How many shares were ended because they held the most bytes.
        unread: How many calls are over while their large responses are still being sent.
    """

    def __init__(self, most_bytes: int = 512 * 1024 * 1024, lock: AbstractContextManager[Any] | None = None) -> None:
        self.most_bytes = most_bytes
        self._lock = lock or nullcontext()
        self.held = 0
        self._peak = self._gone = self._gone_before = 0
        self.ended = self.unread = 0
        self._is_short = False  # whether a charge was refused since the last call of `has_fallen`
        self._shares: set[Share] = set()
        self._ending: set[Share] = set()

    def share(self, *, is_cache: bool = False) -> Share:
        """A new share, without a charge."""
        return Share(self, is_cache=is_cache)

    def charge(self, share: Share, size: int) -> None:
        """Charge a share with more bytes.

        Raises:
            Overloaded: The bytes do not fit, and the share is a body or a cache, is the largest one, or passes the
                limit by more than a sixteenth or 8 MiB.
        """
        end, is_refused, emptied = None, True, set[Share]()
        while True:
            with self._lock:
                if self.held + size <= self.most_bytes:
                    self._put(share, size)
                    return
                self._is_short = True
                error = self._error()
                cache = self._largest_cache(share, size, emptied)
                if cache is None:
                    end, is_refused = self._make_room(share, size)
                    if not is_refused:
                        self._put(share, size)
                    break
                self.ended += 1
            emptied.add(cache)
            if cache.end is not None:
                cache.end(error)
        if end is not None:
            end(error)
        try:
            if is_refused:
                raise error
        finally:
            # its traceback refers to this frame; a cycle would keep the callers' objects until it is collected
            del error

    def give_back(self, share: Share, size: int) -> None:
        """Take bytes off the charge of a share."""
        with self._lock:
            share.charged -= size
            self.held -= size
            self._gone += size
            if not share.charged:
                self._shares.discard(share)
                self._ending.discard(share)

    def has_fallen(self, much_bytes: int) -> bool:
        """Whether the held bytes have fallen by ``much_bytes`` from their peak; if so, the peak is measured anew.

        It is also true in two other cases: a charge found no room since the last call of this method, because then new
        bytes replace the released ones and the sum does not fall; or ``much_bytes`` were given back little by little,
        and none since the last call.
        """
        with self._lock:
            has_fallen = self._is_short or self._peak - self.held >= much_bytes
            has_fallen |= self._gone >= much_bytes and self._gone == self._gone_before
            self._is_short, self._gone_before = False, self._gone
            if has_fallen:
                self._peak, self._gone = self.held, 0
        return has_fallen

    def leave_unread(self, change: int) -> None:
        """Add ``change``, which may be negative, to the number of ended calls whose responses are still being sent."""
        with self._lock:
            self.unread += change

    def _largest_cache(self, share: Share, size: int, emptied: set[Share]) -> Share | None:
        """The cache that is emptied next to make room for more bytes of a share; None if none is left."""
        caches = (one for one in self._shares if one.is_cache and one is not share and one not in emptied)
        largest = max(caches, key=lambda one: one.charged, default=None)
        if largest is not None and share.is_cache and share.charged + size >= largest.charged:
            return None
        return largest

    def _make_room(self, share: Share, size: int) -> tuple[End | None, bool]:
        """Decide which share is ended to make room, if any, and whether this share is refused."""
        end: End | None = None
        if share.is_cache:
            return None, True
        if not self._ending:  # otherwise a share that is ending makes room soon
            calls = (one for one in self._shares if one.end and not one.is_cache)
            largest = max(calls, key=lambda one: one.charged, default=None)
            if share.end is not None and (largest is None or share.charged + size >= largest.charged):
                return None, True
            if largest is not None:
                end, largest.end = largest.end, None
                self._ending.add(largest)
                self.ended += 1
        is_body = share.end is None
        spare = min(self.most_bytes // _SPARE, _MOST_SPARE_BYTES)
        return end, is_body or self.held + size > self.most_bytes + spare

    def _put(self, share: Share, size: int) -> None:
        share.charged += size
        self.held += size
        self._peak = max(self._peak, self.held)
        self._shares.add(share)

    def _error(self) -> Overloaded:
        return Overloaded(
            f"this process holds {self.held} bytes that no function has read; the limit is {self.most_bytes} bytes"
            " (INVOKER_MEMORY_BYTES)"
        )


class Share:
    """The part of the budget that one holder has.

    Attributes:
        charged: The charged bytes: a little more than the holder has.
        mark: While the holder has at most this many bytes, nothing more has to be charged.
        end: Ends the holder, or schedules its end; may be called from any thread. None: it cannot be ended, or has
            ended.
        is_cache: Whether no caller waits for the bytes that it holds: ``end`` gives them back at once, and the holder
            continues.
    """

    __slots__ = ("_budget", "charged", "end", "is_cache", "mark")

    def __init__(self, budget: ProcessBudget, *, is_cache: bool = False) -> None:
        self._budget = budget
        self.is_cache = is_cache
        self.charged = 0
        self.mark = STEP_BYTES
        self.end: End | None = None

    def grow(self, held: int) -> None:
        """Charge the bytes that the holder has beyond the mark.

        Raises:
            Overloaded: The process has no room for these bytes.
        """
        if held <= self.mark:
            return
        step = max(STEP_BYTES, held // 8)
        wanted = -(-held // step) * step
        self._budget.charge(self, wanted - self.charged)
        self.mark = self.charged

    def shrink(self, held: int) -> None:
        """Note that the holder has fewer bytes; the charge falls once they are at most half of it."""
        if self.charged and held * 2 <= self.charged:
            kept = held if held > STEP_BYTES else 0
            self._budget.give_back(self, self.charged - kept)
            self.mark = max(STEP_BYTES, kept)

    def close(self) -> None:
        """End the holder's share: give everything back, and never end the holder to make room."""
        self.end = None
        if self.charged:
            self._budget.give_back(self, self.charged)
        self.mark = STEP_BYTES


class Unread:
    """Counts bytes that were sent to a peer and that the peer has not taken yet; for large messages only.

    A call that is over counts as running until these bytes are taken, so that `INVOKER_MAX_INVOCATIONS` bounds it.

    Args:
        memory: The process's budget.
    """

    __slots__ = ("_held", "_is_parted", "_last", "_memory", "_share")

    def __init__(self, memory: ProcessBudget) -> None:
        self._memory = memory
        self._share = memory.share()
        self._held = self._last = 0
        self._is_parted = False

    def add(self, size: int, end: End | None, *, copies: int = 1) -> InvocationError | None:
        """Count a message that is being sent.

        Args:
            size: The size of the message.
            end: Ends the call, from any thread, if memory runs out while this call holds the most bytes and its peer
                takes nothing. It is dropped once the peer has taken all bytes, because it and the call refer to each
                other. None: the call cannot be ended.
            copies: How many copies of the message exist until `sent` is called.

        Returns:
            None if the message is counted; otherwise the error, with which `end` was called if it is given.
        """
        before = self._held
        refusal = self._hold(self._last + copies * size, end)
        if refusal is None:
            self._last = size
        else:
            self._held = before
        return refusal

    def hold(self, size: int, end: End | None) -> None:
        """Set the bytes of all messages that are being sent to ``size``; ``end`` is as for `add`."""
        self._hold(size, end)
        self._last = size
        self._share.shrink(size)

    def _hold(self, size: int, end: End | None) -> InvocationError | None:
        self._held, self._share.end = size, end
        try:
            self._share.grow(size)
        except Overloaded as error:
            self._share.end = None
            if end is not None:
                end(error)
            return error.with_traceback(None)
        return None

    def sent(self) -> None:
        """Note that the transport has the message.

        The transport keeps a copy until the peer has taken the message, and does not report when that happens.
        """
        self._held = self._last
        self._share.shrink(self._held)

    def part(self) -> None:
        """Count a call as unread, since it is over and its response is not yet taken."""
        if not self._is_parted:
            self._is_parted = True
            self._memory.leave_unread(1)

    def take(self) -> None:
        """Note that all bytes are taken, or that the peer is gone."""
        self._held = self._last = 0
        self._share.close()
        if self._is_parted:
            self._is_parted = False
            self._memory.leave_unread(-1)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits the unread input that an invocation may hold.

    Attributes:
        high_frames: Frames at which reading pauses.
        high_bytes: Payload bytes at which reading pauses.
        hard_frames: Frames at which the invocation fails.
        hard_bytes: Payload bytes at which the invocation fails.
    """

    high_frames: int = 256
    high_bytes: int = 4 * 1024 * 1024
    hard_frames: int = 65_536
    hard_bytes: int = 64 * 1024 * 1024


class Budget:
    """Unread frames and bytes of one invocation against its limits, and against the budget of the process.

    Args:
        limits: The limits of the invocation.
        share: The share of the process's budget.
        memory: The process's budget, from which the invocation takes a share when it needs one; most never do. Without
            a share and a memory, the caller counts the bytes.

    Attributes:
        end: Ends the invocation from any thread, if it holds most when memory runs out.
        is_charged: Whether the process counts some of the bytes.
    """

    __slots__ = ("_mark", "_memory", "bytes", "end", "frames", "is_charged", "limits", "share")

    def __init__(self, limits: Limits, share: Share | None = None, *, memory: ProcessBudget | None = None) -> None:
        self.limits = limits
        self.share = share
        self.end: End | None = None
        self._memory = memory
        self.frames = 0
        self.bytes = 0
        self.is_charged = False
        self._mark = limits.hard_bytes
        if share is not None or memory is not None:
            self._mark = min(STEP_BYTES if share is None else share.mark, limits.hard_bytes)

    @property
    def is_high(self) -> bool:
        """Whether the unread bytes have reached the high-water mark, so that reading should pause."""
        limits = self.limits
        return self.frames >= limits.high_frames or self.bytes >= limits.high_bytes

    @property
    def is_low(self) -> bool:
        """Whether a paused reader may continue.

        Less than half of the mark has to be unread, so that reading does not stop and start too often.
        """
        limits = self.limits
        return self.frames * 2 <= limits.high_frames and self.bytes * 2 <= limits.high_bytes

    def add(self, size: int) -> None:
        """Count one more frame with ``size`` bytes; a refused frame is not counted.

        Raises:
            LimitExceeded: The unread bytes would exceed the hard cap (R-130), or what the process may hold.
        """
        frames, total = self.frames + 1, self.bytes + size
        if frames > self.limits.hard_frames or total > self._mark:
            self._grow(frames, total)
        self.frames, self.bytes = frames, total

    def _grow(self, frames: int, total: int) -> None:
        limits, share = self.limits, self.share
        if frames > limits.hard_frames or total > limits.hard_bytes:
            raise LimitExceeded(
                f"{frames} frames with {total} bytes are unread; the limits of an invocation are "
                f"{limits.hard_frames} frames and {limits.hard_bytes} bytes"
            )
        if share is None:
            assert self._memory is not None, "without one the mark is the hard cap"
            share = self.share = self._memory.share()
            share.end = self.end
        share.grow(total)
        self._settle(share)

    def shrink(self) -> None:
        """Give the bytes that were read back to the process's budget."""
        if self.share is not None:
            self.share.shrink(self.bytes)
            self._settle(self.share)

    def close(self) -> None:
        """Give back all bytes; called when the invocation is over."""
        self.end = None
        share = self.share
        if share is not None:
            share.end = None
            if share.charged:
                share.close()
                self._settle(share)

    def _settle(self, share: Share) -> None:
        self.is_charged = share.charged > 0
        self._mark = min(share.mark, self.limits.hard_bytes)
