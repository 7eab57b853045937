"""`Session` drives one raw session: sends fragments, actions or any bytes, and judges what comes back.

Messages are read only when a scenario asks for them, so that a scenario may be a slow reader. Every wait has a limit.
What was sent is kept as text for the report. Each fragment and each status is checked against the rules that always
hold.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.conformance.riff import frames as bytes_text
from invoker.conformance.riff.call import Ending
from invoker.conformance.evergreen.frames import PATH, Part, described, message, shown
from invoker.conformance.evergreen.outputs import Broken, Outputs
from invoker.conformance.evergreen.rules import Fault, check_detail
from invoker.conformance.scenario import Failure
from invoker.conformance.wire import end_sending, send

__all__ = ["Session"]

_SHOWN_SENT = 12


class Session:
    """One session.

    Args:
        channel: To the target.
        timeout_s: Limit of each single wait.
        deadline_s: Of the call itself; None for no deadline.
        metadata: Of the request.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        timeout_s: float,
        deadline_s: float | None = None,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        method: Any = channel.stream_stream(PATH)  # no serialisers: bytes in, bytes out
        self._call: Any = method(metadata=tuple(metadata) or None, timeout=deadline_s)
        self._timeout_s = timeout_s
        self._sent: list[str] = []
        self._sent_count = 0
        self._reading: asyncio.Task[Any] | None = None
        self._ready: deque[pb.NodeFragment] = deque()
        self._listed: list[str] = []
        self.outputs = Outputs()

    @property
    def sent(self) -> str:
        """What was sent so far, shortened at the end."""
        more = self._sent_count - len(self._sent)
        return ", ".join(self._sent) + (f", ... {more} more" if more else "") or "nothing"

    # --- sending

    async def send(self, *parts: Part) -> bool:
        """Send each part in a message of its own; False when the session has ended already."""
        return all([await self.together(part) for part in parts])

    async def together(self, *parts: Part) -> bool:
        """Send all parts in one message; False when the session has ended already."""
        whole = message(*parts)
        self.outputs.sent(whole)
        self._listed.extend(one.id for action in whole.actions for one in action.outputs)
        note = described(whole) if len(self._sent) < _SHOWN_SENT else ""
        return await self.raw(whole.SerializeToString(), note)

    async def raw(self, data: bytes, note: str | None = None) -> bool:
        """Send any bytes as a gRPC message; False when the session has ended already."""
        self._note(bytes_text.preview(data) if note is None else note)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await send(self._call, data)
        except TimeoutError:
            met = f"the session took no further message for {self._timeout_s:g} s"
            raise self.failure(met, "that it reads on") from None

    async def half_close(self) -> None:
        """End the request stream normally."""
        self._note("HC")
        await end_sending(self._call)

    async def all(self, *parts: Part) -> None:
        """Send each part in a message of its own, then half-close."""
        await self.send(*parts)
        await self.half_close()

    def unlist(self, root: str) -> None:
        """Expect an output to be complete at the end no more."""
        self._listed.remove(root)

    def cancel(self) -> None:
        """Cancel the session."""
        self._note("cancel")
        self._call.cancel()

    def _note(self, text: str) -> None:
        self._sent_count += 1
        if len(self._sent) < _SHOWN_SENT:
            self._sent.append(text)

    # --- receiving

    async def fragment(self, timeout_s: float | None = None) -> pb.NodeFragment:
        """The next fragment.

        Raises:
            Failure: The session ended, or no fragment came in time.
        """
        try:
            fragment = await self._next(timeout_s)
        except Ending as ending:
            raise self.failure(f"the session ended: {ending}", "a further fragment") from None
        if fragment is None:
            raise self.failure(f"no fragment within {timeout_s or self._timeout_s:g} s", "a further fragment")
        return fragment

    async def silent(self, seconds: float) -> None:
        """Nothing comes and the session does not end for this time."""
        try:
            fragment = await self._next(seconds)
        except Ending as ending:
            raise self.failure(f"the session ended: {ending}", f"no answer within {seconds:g} s") from None
        if fragment is not None:
            raise self.failure(f"the fragment {shown(fragment)}", f"no answer within {seconds:g} s")

    async def values(self, root: str, timeout_s: float | None = None) -> list[Any]:
        """Read until an output is complete: the values of its leaves."""
        while not self.outputs.has(root):
            await self.fragment(timeout_s)
        return self.read(root)

    async def gives(self, root: str, *values: Any, timeout_s: float | None = None) -> None:
        """An output becomes complete with these values, while the session goes on."""
        if (met := await self.values(root, timeout_s)) != list(values):
            raise self.failure(f"{_short(met)} in {root!r}", _short(list(values)))

    def read(self, root: str) -> list[Any]:
        """The values of the leaves of an output, as far as they came."""
        try:
            return self.outputs.values(root)
        except ValueError as error:
            raise self.failure(f"a payload in {root!r} that cannot be read: {error}", "what its type says") from None

    async def ends(self, timeout_s: float | None = None) -> Ending:
        """Read to the end of the session."""
        try:
            while await self._next(timeout_s) is not None:
                pass
        except Ending as ending:
            return ending
        met = f"{self._all()}, then neither a fragment nor the end for {timeout_s or self._timeout_s:g} s"
        raise self.failure(met, "the end of the session")

    async def succeeds(self, timeout_s: float | None = None, **expected: Any) -> None:
        """The session ends with OK, every output that was listed is complete, and these have these values.

        Args:
            timeout_s: Limit of each wait.
            expected: Values of the leaves by output.
        """
        ending = await self.ends(timeout_s)
        wanted = ", ".join(f"{root}={_short(values)}" for root, values in expected.items())
        if ending.code is not grpc.StatusCode.OK:
            raise self.failure(f"{self._all()}, then {ending}", f"{wanted}, then OK" if wanted else "OK")
        if missing := self.outputs.incomplete(self._listed):
            raise self.failure(f"OK with output {missing[0]!r} incomplete", "every listed output complete (E-004)")
        for root, values in expected.items():
            if (met := self.read(root)) != values:
                raise self.failure(f"{_short(met)} in {root!r}, then OK", _short(values))

    async def fails(self, fault: Fault, *mentions: str, timeout_s: float | None = None) -> None:
        """The session ends with this fault, and its detail mentions these texts."""
        ending = await self.ends(timeout_s)
        if not fault.matches(ending.code, ending.detail) or any(text not in ending.detail for text in mentions):
            expected = f"{fault}" + "".join(f", mentioning {text!r}" for text in mentions)
            raise self.failure(f"{self._all()}, then {ending}", expected)

    async def has_code(self, *codes: grpc.StatusCode) -> Ending:
        """The session ends with one of these codes, whatever the fragments before it."""
        ending = await self.ends()
        if ending.code not in codes:
            raise self.failure(f"the end {ending}", " or ".join(code.name for code in codes))
        return ending

    async def headers(self) -> dict[str, str]:
        """The initial metadata, which comes before any fragment is asked for."""
        waiting = asyncio.ensure_future(self._call.initial_metadata())
        done, _ = await asyncio.wait({waiting}, timeout=self._timeout_s)
        if not done:
            waiting.cancel()
            raise self.failure("no initial metadata", "initial metadata at the start of the session (E-014)")
        return {name: str(value) for name, value in waiting.result() or ()}

    async def _next(self, timeout_s: float | None) -> pb.NodeFragment | None:
        """The next fragment, or None when nothing came in time; the read stays pending then."""
        while not self._ready:
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
            self._ready.extend(self._parsed(data))
        fragment = self._ready.popleft()
        try:
            self.outputs.take(fragment)
        except Broken as broken:
            raise self.failure(broken.met, broken.expected) from None
        return fragment

    def _parsed(self, data: bytes) -> Iterable[pb.NodeFragment]:
        try:
            whole = pb.SessionMessage.FromString(data)
        except DecodeError as error:
            met = f"the bytes {bytes_text.preview(data)}: {error}"
            raise self.failure(met, "a SessionMessage") from None
        if whole.actions:
            raise self.failure(f"the action {shown(whole.actions[0])}", "no action from the server (E-015)")
        return whole.node_fragments

    async def _ending(self) -> Ending:
        code = await self._call.code()
        detail = await self._call.details() or ""
        if broken := check_detail(code, detail):
            raise self.failure(*broken)
        return Ending(code, detail)

    def failure(self, met: str, expected: str) -> Failure:
        """A failure that tells what was sent in this session."""
        return Failure(met, expected, self.sent)

    def _all(self) -> str:
        told = ", ".join(f"{root}={_short(self.outputs.leaves(root))}" for root in self.outputs.ids[:5])
        return f"{self.outputs.fragments} fragments" + (f" [{told}]" if told else "")

    async def close(self) -> None:
        """Cancel what is left of the session."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, grpc.RpcError):
                await self._reading
        if not self._call.done():
            self._call.cancel()


def _short(values: Sequence[Any]) -> str:
    told = [bytes_text.preview(getattr(value, "data", value)) if _is_bytes(value) else repr(value) for value in values]
    text = f"[{', '.join(told)}]"
    return text if len(text) <= 200 else f"{text[:200]}... ({len(values)} leaves)"


def _is_bytes(value: Any) -> bool:
    return isinstance(getattr(value, "data", value), bytes)
