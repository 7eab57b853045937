"""`RawCall`: one gRPC call that can send any bytes, reads only on request, and limits each wait.

So a scenario can be a slow reader. The texts of sent messages are kept for reports. Subclasses, such as those in
`riff.call` and `evergreen.session`, parse and check the messages that come.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, ClassVar, Generic, TypeVar

import grpc
import grpc.aio

from invoker_conformance.scenario import Failure
from invoker_conformance.texts import listed, preview
from invoker_conformance.wire import end_sending, send

T = TypeVar("T")


class Ending(Exception):
    """A call has ended while a message was awaited."""

    def __init__(self, code: grpc.StatusCode, detail: str) -> None:
        super().__init__(f"{code.name} {detail!r}")
        self.code = code
        self.detail = detail


class RawCall(ABC, Generic[T]):
    """One call.

    Args:
        channel: The channel to the target.
        metadata: The metadata of the request.
        timeout_s: The limit of each single wait, in seconds.
        deadline_s: The deadline of the call itself; None for no deadline.

    Attributes:
        path: The path of the method.
        words: The names, for reports, of the call, the messages in both directions, and the half-close.
        most_shown: How many sent messages reports show.
    """

    path: ClassVar[str]
    words: ClassVar[tuple[str, str, str, str]]
    most_shown: ClassVar[int]

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        timeout_s: float,
        deadline_s: float | None = None,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        method: Any = channel.stream_stream(self.path)  # no serialisers: bytes in, bytes out
        self._call: Any = method(metadata=tuple(metadata) or None, timeout=deadline_s)
        self._timeout_s = timeout_s
        self._sent: list[str] = []
        self._sent_count = 0
        self._has_ended = False
        self._reading: asyncio.Task[Any] | None = None

    @property
    def sent(self) -> str:
        """The messages that were sent so far, shortened at the end."""
        more = self._sent_count - len(self._sent)
        return ", ".join(self._sent) + (f", ... {more} more" if more else "") or "nothing"

    @property
    def _is_noted(self) -> bool:
        """Whether reports show the next message, so that its text is needed."""
        return len(self._sent) < self.most_shown

    async def raw(self, data: bytes, note: str | None = None) -> bool:
        """Send any bytes as a gRPC message; returns False if the call has already ended."""
        self._note(preview(data) if note is None else note)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await send(self._call, data)
        except TimeoutError:
            call, message, _, _ = self.words
            met = f"the {call} took no further {message} for {self._timeout_s:g} s"
            raise self.failure(met, "that it reads further ones") from None

    async def half_close(self) -> None:
        """Half-close the call, unless that was done."""
        if not self._has_ended:
            self._has_ended = True
            self._note(self.words[3])
            await end_sending(self._call)

    def cancel(self) -> None:
        """Cancel the call."""
        self._note("cancel")
        self._call.cancel()

    def _note(self, text: str) -> None:
        if self._is_noted:
            self._sent.append(text)
        self._sent_count += 1

    async def silent(self, seconds: float) -> None:
        """Check that no message comes and the call does not end for this time."""
        try:
            one = await self._next(seconds)
        except Ending as ending:
            raise self.failure(f"the {self.words[0]} ended: {ending}", f"no answer within {seconds:g} s") from None
        if one is not None:
            raise self.failure(f"the {self.words[2]} {self._shown(one)}", f"no answer within {seconds:g} s")

    async def _further(self, timeout_s: float | None) -> T:
        """Return the next message.

        Raises:
            Failure: The call ended, or nothing came in time.
        """
        call, _, part, _ = self.words
        try:
            one = await self._next(timeout_s)
        except Ending as ending:
            raise self.failure(f"the {call} ended: {ending}", f"a further {part}") from None
        if one is None:
            raise self.failure(f"no {part} within {timeout_s or self._timeout_s:g} s", f"a further {part}")
        return one

    async def rest(self, timeout_s: float | None = None, expected: str = "") -> tuple[list[T], Ending]:
        """Read to the end of the call; returns the remaining messages, and how the call ended.

        Raises:
            Failure: Neither a message nor the end came in time.
        """
        got: list[T] = []
        try:
            while (one := await self._next(timeout_s)) is not None:
                got.append(one)
        except Ending as ending:
            return got, ending
        call, _, part, _ = self.words
        met = f"{self._all(got)}, then neither a {part} nor the end for {timeout_s or self._timeout_s:g} s"
        raise self.failure(met, expected or f"the end of the {call}")

    async def has_code(self, code: grpc.StatusCode) -> Ending:
        """Check that the call ends with this code, after any messages."""
        _, ending = await self.rest()
        if ending.code is not code:
            raise self.failure(f"the end {ending}", code.name)
        return ending

    def _all(self, got: Sequence[T]) -> str:
        """The texts of messages, for reports."""
        return listed([self._shown(one) for one in got], self.words[2])

    @abstractmethod
    async def _next(self, timeout_s: float | None) -> T | None:
        """Return the next message; None if none came in time. Raises Ending."""

    @abstractmethod
    def _shown(self, one: T) -> str:
        """The text of a message, for reports."""

    @abstractmethod
    def _broken_by(self, code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
        """If a status breaks a rule: what was met, and what was expected; otherwise None."""

    async def _read(self, timeout_s: float | None) -> bytes | None:
        """Return the next message; None if none came in time, and the read stays pending."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
        done, _ = await asyncio.wait({self._reading}, timeout=timeout_s or self._timeout_s)
        if not done:
            return None
        reading, self._reading = self._reading, None
        try:
            data = reading.result()
        except (grpc.RpcError, asyncio.CancelledError):
            data = grpc.aio.EOF
        if data is grpc.aio.EOF:
            raise await self._ending()
        message: bytes = data
        return message

    async def _ending(self) -> Ending:
        code = await self._call.code()
        detail = await self._call.details() or ""
        self._judge(self._broken_by(code, detail))
        return Ending(code, detail)

    async def _initial_metadata(self) -> Any:
        """The initial metadata; None if they did not come in time."""
        waiting = asyncio.ensure_future(self._call.initial_metadata())
        done, _ = await asyncio.wait({waiting}, timeout=self._timeout_s)
        if not done:
            waiting.cancel()
            return None
        return waiting.result() or ()

    def _judge(self, broken: tuple[str, str] | None) -> None:
        if broken is not None:
            raise self.failure(*broken)

    def failure(self, met: str, expected: str) -> Failure:
        """A failure that quotes the messages of this call."""
        return Failure(met, expected, self.sent)

    async def close(self) -> None:
        """Cancel the call if it still runs."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, grpc.RpcError):
                await self._reading
        if not self._call.done():
            self._call.cancel()
