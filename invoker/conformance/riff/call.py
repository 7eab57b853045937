"""`Call` drives one raw riff call: sends signals or any bytes, and judges what comes back.

Frames are read only when a scenario asks for them, so that a scenario may be a slow reader. Every wait has a limit.
What was sent is kept as text for the report. Each frame and each status is checked against the rules that always hold.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker.conformance.riff import frames
from invoker.conformance.riff.rules import Fault, check_detail, check_frame, shown_frame
from invoker.conformance.scenario import Failure
from invoker.conformance.wire import end_sending, send

__all__ = ["Call", "Ending"]

_SHOWN_SENT = 8


class Ending(Exception):
    """How a call ended, when a frame was awaited."""

    def __init__(self, code: grpc.StatusCode, detail: str) -> None:
        super().__init__(f"{code.name} {detail!r}")
        self.code = code
        self.detail = detail


class Call:
    """One call of one function.

    Args:
        channel: To the target.
        metadata: Chooses the function.
        timeout_s: Limit of each single wait.
        deadline_s: Of the call itself; None for no deadline.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        metadata: Sequence[tuple[str, str]],
        timeout_s: float,
        deadline_s: float | None = None,
    ) -> None:
        method: Any = channel.stream_stream(frames.PATH)  # no serialisers: bytes in, bytes out
        self._call: Any = method(metadata=tuple(metadata) or None, timeout=deadline_s)
        self._timeout_s = timeout_s
        self._sent: list[str] = []
        self._sent_count = 0
        self._outputs: int | None = None
        self._reading: asyncio.Task[Any] | None = None

    @property
    def sent(self) -> str:
        """What was sent so far, shortened in the middle."""
        more = self._sent_count - len(self._sent)
        return ", ".join(self._sent) + (f", ... {more} more" if more else "") or "nothing"

    # --- sending

    async def start(
        self,
        types: Sequence[str] = (frames.JSON,),
        inputs: Sequence[str] = ("in",),
        outputs: Sequence[str] = ("out",),
    ) -> bool:
        """Send a StartFrame; False when the call has ended already."""
        return await self.signal(frames.start(types, inputs, outputs))

    async def data(
        self,
        payload: bytes,
        media_type: str = frames.JSON,
        *,
        index: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """Send an InputFrame; False when the call has ended already."""
        return await self.signal(frames.data(payload, media_type, index=index, headers=headers))

    async def json(self, *values: Any, index: int = 0) -> bool:
        """Send each value in a JSON InputFrame; False when the call has ended already."""
        return all([await self.data(frames.to_json(value), index=index) for value in values])

    async def signal(self, signal: pb.InputSignal) -> bool:
        """Send any signal; False when the call has ended already."""
        if self._outputs is None and signal.HasField("start"):
            self._outputs = len(signal.start.expectedContentTypes)
        note = frames.shown(signal) if len(self._sent) < _SHOWN_SENT else ""
        return await self.raw(signal.SerializeToString(), note)

    async def raw(self, message: bytes, note: str | None = None) -> bool:
        """Send any bytes as a gRPC message; False when the call has ended already."""
        self._note(frames.preview(message) if note is None else note)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await send(self._call, message)
        except TimeoutError:
            raise self.failure(
                f"the call took no further frame for {self._timeout_s:g} s", "that it reads on"
            ) from None

    async def half_close(self) -> None:
        """End the request stream normally."""
        self._note("half-close")
        await end_sending(self._call)

    def cancel(self) -> None:
        """Cancel the call."""
        self._note("cancel")
        self._call.cancel()

    def _note(self, text: str) -> None:
        self._sent_count += 1
        if len(self._sent) < _SHOWN_SENT:
            self._sent.append(text)

    # --- receiving

    async def frame(self, timeout_s: float | None = None) -> pb.OutputFrame:
        """The next frame.

        Raises:
            Failure: The call ended, or no frame came in time.
        """
        try:
            frame = await self._next(timeout_s)
        except Ending as ending:
            raise self.failure(f"the call ended: {ending}", "a further frame") from None
        if frame is None:
            raise self.failure(f"no frame within {timeout_s or self._timeout_s:g} s", "a further frame")
        return frame

    async def value(self) -> Any:
        """The value in the next frame, which has to be JSON."""
        return self.json_of(await self.frame())

    def json_of(self, frame: pb.OutputFrame) -> Any:
        """The value of a JSON frame."""
        try:
            return json.loads(frame.payload)
        except ValueError:
            raise self.failure(f"the frame {shown_frame(frame)}", "a JSON payload") from None

    async def silent(self, seconds: float) -> None:
        """Nothing comes and the call does not end for this time."""
        try:
            frame = await self._next(seconds)
        except Ending as ending:
            raise self.failure(f"the call ended: {ending}", f"no answer within {seconds:g} s") from None
        if frame is not None:
            raise self.failure(f"the frame {shown_frame(frame)}", f"no answer within {seconds:g} s")

    async def ends(self, timeout_s: float | None = None) -> tuple[list[pb.OutputFrame], Ending]:
        """Read to the end of the call: the remaining frames and how it ended."""
        got: list[pb.OutputFrame] = []
        try:
            while (frame := await self._next(timeout_s)) is not None:
                got.append(frame)
        except Ending as ending:
            return got, ending
        waited = timeout_s or self._timeout_s
        raise self.failure(f"{_all(got)}, then neither a frame nor the end for {waited:g} s", "the end of the call")

    async def succeeds(self, *payloads: bytes, timeout_s: float | None = None) -> list[pb.OutputFrame]:
        """The remaining frames have these payloads, and the call ends with OK."""
        expected = f"{_all_payloads(payloads)}, then OK"
        got, ending = await self.ends(timeout_s)
        if ending.code is not grpc.StatusCode.OK or [frame.payload for frame in got] != list(payloads):
            raise self.failure(f"{_all(got)}, then {ending}", expected)
        return got

    async def gives(self, *values: Any) -> list[pb.OutputFrame]:
        """The remaining frames hold these JSON values, and the call ends with OK."""
        got, ending = await self.ends()
        if ending.code is grpc.StatusCode.OK:
            met = [self.json_of(frame) for frame in got]
            if met == list(values):
                return got
        raise self.failure(f"{_all(got)}, then {ending}", f"the JSON values {_short(list(values))}, then OK")

    async def fails(
        self, fault: Fault, *mentions: str, after: int | None = None, timeout_s: float | None = None
    ) -> list[pb.OutputFrame]:
        """The call ends with this fault, its detail mentions these texts, after so many frames (None: any number)."""
        got, ending = await self.ends(timeout_s)
        expected = f"{fault}" + "".join(f", mentioning {text!r}" for text in mentions)
        if after is not None:
            expected = f"{after} frames, then {expected}"
        lost = after is not None and len(got) != after
        if lost or not fault.matches(ending.code, ending.detail) or any(text not in ending.detail for text in mentions):
            raise self.failure(f"{_all(got)}, then {ending}", expected)
        return got

    async def has_code(self, code: grpc.StatusCode) -> Ending:
        """The call ends with this code, whatever the frames before it."""
        _, ending = await self.ends()
        if ending.code is not code:
            raise self.failure(f"the end {ending}", f"{code.name}")
        return ending

    async def headers_come(self) -> None:
        """Response headers come before any frame is asked for."""
        waiting = asyncio.ensure_future(self._call.initial_metadata())
        done, _ = await asyncio.wait({waiting}, timeout=self._timeout_s)
        if not done:
            waiting.cancel()
            raise self.failure("no response headers", "response headers as soon as the StartFrame is accepted")

    async def _next(self, timeout_s: float | None) -> pb.OutputFrame | None:
        """The next frame, or None when nothing came in time; the read stays pending then."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._call.read())
        done, _ = await asyncio.wait({self._reading}, timeout=timeout_s or self._timeout_s)
        if not done:
            return None
        reading, self._reading = self._reading, None
        try:
            message = reading.result()
        except (grpc.RpcError, asyncio.CancelledError):
            message = grpc.aio.EOF
        if message is grpc.aio.EOF:
            raise await self._ending()
        frame = self._parse(message)
        self._judge(check_frame(frame, self._outputs))
        return frame

    async def _ending(self) -> Ending:
        code = await self._call.code()
        detail = await self._call.details() or ""
        self._judge(check_detail(code, detail))
        return Ending(code, detail)

    def _parse(self, message: bytes) -> pb.OutputFrame:
        try:
            signal = pb.OutputSignal.FromString(message)
        except DecodeError as error:
            raise self.failure(f"the bytes {frames.preview(message)}: {error}", "an OutputSignal") from None
        if signal.WhichOneof("frame") != "data":
            raise self.failure("an OutputSignal without data", "an OutputSignal with data")
        return signal.data

    def _judge(self, broken: tuple[str, str] | None) -> None:
        if broken is not None:
            raise self.failure(*broken)

    def failure(self, met: str, expected: str) -> Failure:
        """A failure that tells what was sent in this call."""
        return Failure(met, expected, self.sent)

    async def close(self) -> None:
        """Cancel what is left of the call."""
        if self._reading is not None:
            self._reading.cancel()
            with suppress(asyncio.CancelledError, grpc.RpcError):
                await self._reading
        if not self._call.done():
            self._call.cancel()


def _all(got: Sequence[pb.OutputFrame]) -> str:
    return _listed([shown_frame(frame) for frame in got], "frame")


def _all_payloads(payloads: Sequence[bytes]) -> str:
    return _listed([frames.preview(payload) for payload in payloads], "frame")


def _listed(texts: Sequence[str], noun: str) -> str:
    head = ", ".join(texts[:5]) + (", ..." if len(texts) > 5 else "")
    return f"{len(texts)} {noun}{'' if len(texts) == 1 else 's'}" + (f" [{head}]" if texts else "")


def _short(values: Sequence[Any]) -> str:
    text = repr(values)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(values)} values)"
