"""`Outcome`: how one action ends, separate from how its session ends."""

from __future__ import annotations

import asyncio

from google.protobuf.message import DecodeError as WireError
from google.rpc.status_pb2 import Status as WireStatus

from invoker.connect.failure import CallFailed
from invoker.errors import Status
from invoker.protocols.evergreen.client.arrivals import BadNode, Cursor, End, Part
from invoker.protocols.evergreen.client.inbox import Inbox

STATUS_OUTPUT = "__status__"
"""The name of the output by which an action reports its status, with partial failures (E-121)."""


class Outcome:
    """How one action ends; all its outputs share this object.

    Args:
        inbox: The inbox of the session.
        status_id: The id of the node with the action's status; empty: there is none, and an error ends the session.
    """

    def __init__(self, inbox: Inbox, status_id: str = "") -> None:
        self._inbox = inbox
        self._error: CallFailed | None = None
        self._settling = asyncio.Lock()
        self._cursor: Cursor | None = None
        if status_id:
            inbox.expect(status_id)
            inbox.begin(status_id)
            inbox.finish(status_id)  # a status is small, so it is read without a pause for back-pressure
            self._cursor = Cursor(inbox.arrivals, status_id)

    def fail(self, error: CallFailed) -> None:
        """Fail the action for its readers, and wake them; only the first error counts."""
        if self._error is None:
            self._error = error
            self._inbox.wake_all()

    def check(self) -> None:
        """Raise the error of the action, if it has one."""
        if self._error is not None:
            made = type(self._error)(self._error.status, self._error.detail)
            raise made from self._error.__cause__

    async def settled(self) -> None:
        """Wait for the status of the action, if it has a node for that.

        Raises:
            CallFailed: The action failed, or the session failed before it sent the status.
        """
        async with self._settling:
            status = WireStatus()
            data = b""
            while self._cursor is not None:
                self.check()
                try:
                    found = self._cursor.step()
                except BadNode as error:
                    raise CallFailed(Status.INTERNAL, f"{self._inbox.target} sent {error}") from None
                if isinstance(found, End):
                    self._cursor = None
                    self._understand(status, data)
                elif isinstance(found, Part):
                    data += found.payload if isinstance(found.payload, bytes) else b""
                elif self._inbox.ended.is_set():
                    raise self._inbox.incomplete(STATUS_OUTPUT, self._cursor.waits_for)
                else:
                    await self._inbox.arrival(self._cursor.waits_for)
        self.check()

    def _understand(self, status: WireStatus, data: bytes) -> None:
        try:
            status.ParseFromString(data)
            code = Status(status.code)
        except (WireError, ValueError):
            self.fail(CallFailed(Status.INTERNAL, f"{self._inbox.target} sent an invalid status"))
            return
        if code is not Status.OK:
            self.fail(CallFailed(code, status.message))
