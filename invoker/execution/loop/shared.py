"""`Shared`: an invocation to which several conversations hold references.

Theory. A conversation owns the invocations that it opens, and they end with it. An invocation that is opened as
*shared* stands in the driver's table by its key instead, and belongs to all conversations that hold it::

    holder   holds it by     feeds it  ends inputs, closes outputs  hears outputs  hears Wants, Finished  keeps it alive
    -------  --------------  --------  ---------------------------  -------------  ---------------------  --------------
    owner    Open, is_shared    yes                yes                   yes                yes                 yes
    feeder   Join               yes                no                    no                 yes                 no

A holder leaves by `Cancel`, by a wrong `Feed`, or when its conversation is over; the invocation continues unless that
was its last owner. When it ends, by its body or with its last owner, all that still hold it are notified. It has no
deadline, since its holders' deadlines are not its own. The conversations run on one loop, the driver's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import partial
from typing import Protocol

from invoker.core.invocation import Invocation
from invoker.core.steps import Emitted, Event, OutputEnded
from invoker.errors import InvocationError, StopInvocation
from invoker.execution.bodies.runner import Runner, later
from invoker.execution.driver import Driver
from invoker.execution.loop.wire import Wire
from invoker.message import Message


class Holder(Protocol):
    """A conversation that holds a reference to a shared invocation; see `invoker.execution.loop.reactor.Reactor`."""

    is_paused: bool
    hears_waits: bool
    wire: Wire

    def tell(self, event: Event) -> bool:
        """Give its session an event; False when its wire has no room."""

    def resume(self) -> None:
        """Note that an input may have room again."""

    def let_go(self, key: str, error: InvocationError | None) -> None:
        """Forget invocation ``key``, which is over; an error of None is a normal end."""


def heed_all(holder: Holder, runners: Iterable[Runner]) -> None:
    """Let each body that `Shared` hosts for a conversation notify that conversation when there is room."""
    for one in runners:
        if isinstance(one.host, Shared):
            one.host.heed(holder)


class Shared:
    """The host of one body, in place of a conversation of its own; the body starts in the next turn.

    Args:
        driver: Finds the invocation by its key until it ends.
        invocation: The invocation, which the engine has admitted.
        owner: The conversation that opened it.

    Attributes:
        owners: Conversations with which it ends, in the order in which they came.
        feeders: Conversations that joined it.
        runner: The runner of its body; None once it is over.
        is_paused: Whether a holder that feeds it waits for room; read from the body's thread, too.
    """

    def __init__(self, driver: Driver, invocation: Invocation, owner: Holder) -> None:
        loop = asyncio.get_running_loop()
        self.owners = {owner: None}
        self.feeders: dict[Holder, None] = {}
        self.is_paused = False
        self._heeding: dict[Holder, None] = {}
        self._driver = driver
        self._waits: list[tuple[Holder, asyncio.Task[None]]] = []
        invocation.may_be_ended(partial(later, loop, self.finish))
        self.runner: Runner | None = driver.runner(invocation, self)
        driver.shared[invocation.key] = self
        loop.call_soon(self._start)
        self.heed(owner)

    def join(self, holder: Holder, *, is_owner: bool) -> Runner:
        """Let one more conversation hold the invocation, and give its runner. An owner stays an owner."""
        if holder not in self.owners:
            self.feeders.pop(holder, None)
            (self.owners if is_owner else self.feeders)[holder] = None
            self.heed(holder)
        assert self.runner is not None, "the driver knows it until it is over"
        return self.runner

    def heed(self, holder: Holder) -> None:
        """Notify a conversation of room from now on, if it has paused or hears waits; most holders need no notice."""
        if holder.is_paused or holder.hears_waits:
            self._heeding[holder] = None
            self.is_paused = True

    def leave(self, holder: Holder, error: InvocationError | None) -> None:
        """Remove a conversation from the holders.

        When the last owner leaves, the invocation ends with that owner's error.
        """
        for several in (self.owners, self.feeders, self._heeding):
            several.pop(holder, None)
        for one, task in self._waits:
            if one is holder:
                task.cancel()
        if not self.owners:
            self.finish(error)

    def finish(self, error: InvocationError | None) -> None:
        """End the invocation, and notify all holders; only the first ending counts."""
        runner, driver = self.runner, self._driver
        if runner is None or not runner.finish(error):
            return
        self.runner = None  # the runner refers to this object; a cycle would keep the inputs until it is collected
        del driver.shared[runner.invocation.key]
        driver.ended(runner)
        holders = (*self.owners, *self.feeders)
        for several in (self.owners, self.feeders, self._heeding):
            several.clear()
        for one in holders:
            one.let_go(runner.invocation.key, error)

    def _start(self) -> None:
        runner = self.runner
        if runner is None or runner.invocation.is_finished:
            return
        try:
            self._driver.start(runner)
        except InvocationError as error:
            self.finish(error)

    # What the body reports; `Host`.

    @property
    def hears_waits(self) -> bool:
        """Whether a holder wants a notice of every reader that waits; it also gets the notices of room."""
        return self.is_paused

    def resume(self) -> None:
        """Note that an input may have room again."""
        heeding, self._heeding, self.is_paused = self._heeding, {}, False
        for one in heeding:
            one.resume()
            if one in self.owners or one in self.feeders:
                self.heed(one)

    async def emitted(self, invocation: Invocation, index: int, message: Message[bytes]) -> None:
        """Give one output to all owners; returns when each of their peers has room for it."""
        if invocation.is_finished:
            raise StopInvocation
        invocation.emit(index, message)
        event = Emitted(invocation.key, index, message)
        full = [one for one in tuple(self.owners) if not one.tell(event)]
        if invocation.is_finished:
            raise StopInvocation  # this output ended it
        for one in full:
            await self._room(one)
        if not full:
            await asyncio.sleep(0)

    def ended(self, invocation: Invocation, index: int) -> None:
        """Note that one of several outputs ended normally."""
        if not invocation.is_finished:
            for one in tuple(self.owners):
                one.tell(OutputEnded(invocation.key, index))

    def finished(self, invocation: Invocation, error: InvocationError | None) -> None:  # noqa: ARG002 - see `Host`
        """Take the body's ending; later ones are ignored."""
        self.finish(error)

    async def _room(self, owner: Holder) -> None:
        """Wait for room on an owner's wire, as long as that owner holds the invocation."""
        if owner not in self.owners:
            return
        wait = (owner, asyncio.get_running_loop().create_task(self._wait(owner.wire), name="room"))
        self._waits.append(wait)
        try:
            await asyncio.wait((wait[1],))
        finally:
            wait[1].cancel()
            self._waits.remove(wait)

    async def _wait(self, wire: Wire) -> None:
        await wire.room()
