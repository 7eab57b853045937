"""The interface between a protocol and the drivers: a `Session` translates one wire conversation.

A session is pure: it never waits, opens no socket, starts no thread, imports neither asyncio nor grpc. It takes frames
and events and answers with steps, in the order in which the driver must do them. So every rule of a protocol is tested
by calling a method and comparing a list, and every transport (asyncio, a plain thread, a test) drives the same code.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from invoker.core.steps import CallStep, Event, Step


class Session(Protocol):
    """One conversation with a peer, in one protocol."""

    def receive(self, frame: Any) -> Iterable[Step]:
        """Translate one frame of the peer.

        Raises:
            ProtocolViolation: The frame breaks the protocol; no other error is ever raised.
        """

    def half_close(self) -> Iterable[Step]:
        """Translate the normal end of the peer's frames.

        Raises:
            ProtocolViolation: The peer must not end here.
        """

    def deliver(self, event: Event) -> Iterable[Step]:
        """Translate an event of one of this session's invocations into frames."""


class CallSession(Protocol):
    """A session that every driver can run, also a thread with no other work (`invoker.execution.thread.direct`).

    Such a thread is in user code, or waits for the peer. So the session must keep to the following:

    * its steps are `CallStep`: it does not fetch or subscribe, whose answers a loop brings, and joins no invocation of
      another conversation;
    * it may ask the store before it has opened anything: the loop takes such a call over and the thread waits for its
      end, so from then on the session may give every step;
    * it opens one invocation at most, and closes once this has finished;
    * it gives a `Timer` only while no invocation runs;
    * ``receive`` changes nothing but attributes, so that a copy of it can judge frames before their turn.

    Type checks enforce this: where a call may get a thread of its own (`CallMethod`), a session of any other type is
    refused. All other sessions run on the loop: by a `Reactor`, or by a `SessionReactor` if they fetch, or store what
    they receive.
    """

    def receive(self, frame: Any) -> Iterable[CallStep]:
        """Translate one frame of the peer; raises ProtocolViolation."""

    def half_close(self) -> Iterable[CallStep]:
        """Translate the normal end of the peer's frames; raises ProtocolViolation."""

    def deliver(self, event: Event) -> Iterable[CallStep]:
        """Translate an event of the invocation."""
