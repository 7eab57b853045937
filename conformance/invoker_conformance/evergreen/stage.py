"""`Stage`: what a scenario of an Evergreen chapter uses: sessions, and the counts that functions keep."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

import grpc
import grpc.aio

from invoker_conformance.evergreen.frames import TEXT, A, F, Part
from invoker_conformance.evergreen.session import Session
from invoker_conformance.faults import Fault
from invoker_conformance.riff.probe import Probe
from invoker_conformance.scenario import Failure


class Stage(Probe):
    """The tools of one Evergreen scenario."""

    noun = "action"

    def session(
        self,
        *,
        deadline_s: float | None = None,
        channel: grpc.aio.Channel | None = None,
        extensions: str = "",
        metadata: Sequence[tuple[str, str]] = (),
    ) -> AbstractAsyncContextManager[Session]:
        """Open a session at the server of the function under test.

        At the end the session is cancelled if it still runs.

        Args:
            deadline_s: The deadline of the call.
            channel: A channel other than the shared one.
            extensions: The extensions to ask for, as in the metadata ``evergreen-extensions``.
            metadata: Further metadata.
        """
        wanted = (("evergreen-extensions", extensions),) if extensions else ()
        session = Session(
            channel or self.target.channel(self.function),
            timeout_s=self.timeout_s,
            deadline_s=deadline_s,
            metadata=(*wanted, *metadata),
        )
        return self.opened(session)

    async def succeeds(self, *parts: Part, **expected: Any) -> Session:
        """Check that a session with these parts, each in a message of its own, ends with OK and these values."""
        async with self.session() as session:
            await session.send(*parts)
            await session.succeeds(**expected)
        return session

    async def fails(self, fault: Fault, *parts: Part, mentions: Sequence[str] = ()) -> None:
        """Check that a session with these parts ends with this fault, without a half-close."""
        async with self.session() as session:
            await session.send(*parts)
            await session.fails(fault, *mentions)

    async def survives(self) -> None:
        """Check that the server still works, by another session."""
        async with self.aside(), self.session() as session:
            await session.half_close()
            await session.succeeds()

    async def _mark(self, key: str) -> Any:
        async with self.session() as session:
            await session.all(A("marks", {"key": "key"}, {"out": "count"}), F("key", m=TEXT, t=key))
            await session.succeeds()
            values = session.read("count")
        return values[0] if len(values) == 1 else values

    async def _answers(self, function: str) -> grpc.StatusCode:
        """Call an action with a parameter that no server accepts, and return the code of the answer."""
        session = Session(self.target.channel(function), timeout_s=self.timeout_s, deadline_s=self.timeout_s)
        try:
            await session.all(A(function, {"": ""}))
            return (await session.ends(self.timeout_s + 1.0)).code
        except Failure:
            return grpc.StatusCode.UNKNOWN  # the server answers, so scenarios can test whether the answer is right
        finally:
            await session.close()
