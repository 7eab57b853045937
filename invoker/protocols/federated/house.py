"""`House`: what the desk of populations finds in the process around it. The service is one; tests make their own.

A round is run by a session that has no peer. It asks for all that it needs by steps, as every session does: it opens
the invocation, writes the next checkpoint by ``Ask(saved.commit(...))``, hears of reports by an `Await` on a mailbox of
its own, and lets a thread compute by an `Await` on `House.offload`. So the desk itself never waits.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol, TypeVar

from invoker.core.steps import Event, Step
from invoker.protocols.federated.words import Mailbox, Resource

__all__ = ["House", "PeerlessSession"]

T = TypeVar("T")


class PeerlessSession(Protocol):
    """A session without a peer, as `House.run` runs it; see `invoker.drive.loop.sessions.StoringSession`.

    An input that is in ``stalled`` gets `Wants` once the function has taken half of what it was fed.

    Attributes:
        headers: Always empty.
        stalled: Inputs, by invocation and index, that were not fed all there is.
        hears_waits: Whether it wants a `Wants` also for each empty input for which a function waits.
        is_full: Always False.
        held: Bytes that it stores.
    """

    headers: tuple[tuple[str, str], ...]
    stalled: set[tuple[str, int]]
    hears_waits: bool
    is_full: bool
    held: int

    def receive(self, frame: Any) -> Iterable[Step]:
        """Begin; it is called once, with None."""

    def half_close(self) -> Iterable[Step]:
        """Never called."""

    def deliver(self, event: Event) -> Iterable[Step]:
        """Translate an event; `Send` goes nowhere, and `Close` ends the session."""

    def release(self) -> None:
        """The session is over: after its `Close`, or because the process ends, whatever it was doing."""


class House(Protocol):
    """The process around a desk. Everything is called on the loop of the desk, and nothing waits."""

    def mailbox(self) -> Mailbox:
        """A mailbox for a session that `run` is to run."""

    def run(self, session: PeerlessSession) -> None:
        """Run a session without a peer, beginning in a later turn, until it closes or the process ends.

        An input may be fed 16 messages ahead of its function (F-081). Draining neither ends the session nor refuses
        what it opens (F-143).
        """

    def offload(self, job: Callable[[], T]) -> Awaitable[T]:
        """Compute in a thread, off the loop (F-131); what it raises is raised by awaiting."""

    def publish(self, data: bytes) -> Resource | None:
        """Let clients download these bytes until `withdraw` (F-066); None: there is no HTTP door.

        Bytes that are published already have the same cache id and another address.
        """

    def withdraw(self, resource: Resource) -> None:
        """The round that published this is over."""

    def wake(self) -> None:
        """``next_tick()`` of the desk is earlier than it was."""
