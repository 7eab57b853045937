"""`Stage`: what a scenario of an Evergreen chapter holds in its hands: sessions, and marks of the functions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import grpc.aio

from invoker_conformance.evergreen.frames import TEXT, A, F, Part
from invoker_conformance.evergreen.session import Session
from invoker_conformance.faults import Fault
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import Failure

__all__ = ["Stage"]


class Stage(Probe):
    """The tools of one scenario."""

    @asynccontextmanager
    async def session(
        self,
        *,
        deadline_s: float | None = None,
        channel: grpc.aio.Channel | None = None,
        extensions: str = "",
        metadata: Sequence[tuple[str, str]] = (),
    ) -> AsyncIterator[Session]:
        """Open a session where the function under test is served; what is left of it at the end is cancelled.

        Args:
            deadline_s: The deadline of the call.
            channel: A channel other than the shared one.
            extensions: The extensions that are wanted, as in the metadata ``evergreen-extensions``.
            metadata: Further metadata.
        """
        wanted = (("evergreen-extensions", extensions),) if extensions else ()
        session = Session(
            channel or self.target.channel(self.function),
            timeout_s=self.timeout_s,
            deadline_s=deadline_s,
            metadata=(*wanted, *metadata),
        )
        self.last_call = session
        try:
            yield session
        finally:
            await session.close()

    async def succeeds(self, *parts: Part, **expected: Any) -> None:
        """A session with these parts, each in a message of its own, and a half-close ends with OK and these values."""
        async with self.session() as session:
            await session.all(*parts)
            await session.succeeds(**expected)

    async def fails(self, fault: Fault, *parts: Part, mentions: Sequence[str] = ()) -> None:
        """A session with these parts ends with this fault, without a half-close."""
        async with self.session() as session:
            await session.send(*parts)
            await session.fails(fault, *mentions)

    async def survives(self) -> None:
        """Check that the server still serves: another session works."""
        judged = self.last_call
        async with self.session() as session:
            await session.half_close()
            await session.succeeds()
        self.last_call = judged

    async def mark(self, key: str) -> int:
        """A count that the functions keep in their process, read through the action ``marks``."""
        judged = self.last_call  # a failure has to quote what was sent in that call
        async with self.session() as session:
            await session.all(A("marks", {"key": "key"}, {"out": "count"}), F("key", m=TEXT, t=key))
            await session.succeeds()
            values = session.read("count")
        self.last_call = judged
        if len(values) != 1 or not isinstance(values[0], int):
            raise Failure(f"{values!r} from the action marks", "a whole number", f"marks({key!r})")
        return values[0]

    async def provides(self, function: str) -> bool:
        """Whether the target serves an action: one that no server accepts is sent once, to see."""
        return await self.target.provides(function, protocol="evergreen", ask=self._answers)

    async def _answers(self, function: str) -> grpc.StatusCode:
        session = Session(self.target.channel(function), timeout_s=self.timeout_s, deadline_s=self.timeout_s)
        try:
            await session.all(A(function, {"": ""}))
            return (await session.ends(self.timeout_s + 1.0)).code
        except Failure:
            return grpc.StatusCode.UNKNOWN  # it answers, if badly: a scenario's business
        finally:
            await session.close()
