"""`Call`: one riff call at the target; sends signals or any bytes, and checks each frame and status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from invoker._pb.riff import riff_rpc_pb2 as pb
from invoker_conformance.faults import Fault
from invoker_conformance.rawcall import RawCall
from invoker_conformance.riff import frames
from invoker_conformance.riff.rules import check_detail, check_frame, shown_frame
from invoker_conformance.texts import listed, preview


class Call(RawCall[pb.OutputFrame]):
    """One call of a function, which is named in the metadata."""

    path = frames.PATH
    words = ("call", "frame", "frame", "half-close")
    most_shown = 8
    _outputs: int | None = None

    # --- sending

    async def start(
        self,
        types: Sequence[str] = (frames.JSON,),
        inputs: Sequence[str] = ("in",),
        outputs: Sequence[str] = ("out",),
    ) -> bool:
        """Send a StartFrame; returns False if the call has already ended."""
        return await self.signal(frames.start(types, inputs, outputs))

    async def data(
        self,
        payload: bytes,
        media_type: str = frames.JSON,
        *,
        index: int = 0,
        headers: Mapping[str, str] | None = None,
    ) -> bool:
        """Send an InputFrame; returns False if the call has already ended."""
        return await self.signal(frames.data(payload, media_type, index=index, headers=headers))

    async def json(self, *values: Any, index: int = 0) -> bool:
        """Send each value in a JSON InputFrame; returns False if the call has already ended."""
        return all([await self.data(frames.to_json(value), index=index) for value in values])

    async def signal(self, signal: pb.InputSignal) -> bool:
        """Send any signal; returns False if the call has already ended."""
        if self._outputs is None and signal.HasField("start"):
            self._outputs = len(signal.start.expectedContentTypes)
        note = frames.shown(signal) if self._is_noted else ""
        return await self.raw(signal.SerializeToString(), note)

    async def all(self, *values: Any, **started: Any) -> None:
        """Send a StartFrame, each value in a JSON InputFrame, and the half-close."""
        await self.start(**started)
        await self.json(*values)
        await self.half_close()

    async def one(
        self, payload: bytes, media_type: str = frames.JSON, *, accept: str = frames.JSON, **fields: Any
    ) -> None:
        """Send a StartFrame with this Accept list, one InputFrame, and the half-close."""
        await self.start([accept])
        await self.data(payload, media_type, **fields)
        await self.half_close()

    # --- receiving

    async def frame(self, timeout_s: float | None = None) -> pb.OutputFrame:
        """Return the next frame.

        Raises:
            Failure: The call ended, or no frame came in time.
        """
        return await self._further(timeout_s)

    async def value(self) -> Any:
        """Return the value of the next frame, which must be JSON."""
        return self.json_of(await self.frame())

    async def begins(self, *values: Any) -> None:
        """Check that the next frames have these JSON values."""
        for value in values:
            if (met := await self.value()) != value:
                raise self.failure(_short([met]), _short([value]))

    def json_of(self, frame: pb.OutputFrame) -> Any:
        """The value of a JSON frame."""
        try:
            return json.loads(frame.payload)
        except ValueError:
            raise self.failure(f"the frame {shown_frame(frame)}", "a JSON payload") from None

    async def succeeds(self, *payloads: bytes, timeout_s: float | None = None) -> list[pb.OutputFrame]:
        """Check that the remaining frames have these payloads, and that the call ends with OK."""
        expected = f"{listed([preview(payload) for payload in payloads], 'frame')}, then OK"
        got, ending = await self.rest(timeout_s)
        if ending.code is not grpc.StatusCode.OK or [frame.payload for frame in got] != list(payloads):
            raise self.failure(f"{self._all(got)}, then {ending}", expected)
        return got

    async def gives(self, *values: Any) -> list[pb.OutputFrame]:
        """Check that the remaining frames have these JSON values, and that the call ends with OK."""
        got, ending = await self.rest()
        if ending.code is grpc.StatusCode.OK:
            met = [self.json_of(frame) for frame in got]
            if met == list(values):
                return got
        raise self.failure(f"{self._all(got)}, then {ending}", f"the JSON values {_short(list(values))}, then OK")

    async def fails(
        self, fault: Fault, *mentions: str, after: int | None = None, timeout_s: float | None = None
    ) -> list[pb.OutputFrame]:
        """Check that the call ends with this fault, after ``after`` frames (None: any number)."""
        got, ending = await self.rest(timeout_s)
        expected = f"{fault}" + "".join(f", mentioning {text!r}" for text in mentions)
        if after is not None:
            expected = f"{after} frames, then {expected}"
        lost = after is not None and len(got) != after
        if lost or not fault.matches(ending.code, ending.detail) or any(text not in ending.detail for text in mentions):
            raise self.failure(f"{self._all(got)}, then {ending}", expected)
        return got

    async def headers_come(self) -> None:
        """Check that response headers come before any frame is read."""
        if await self._initial_metadata() is None:
            raise self.failure("no response headers", "response headers as soon as the StartFrame is accepted")

    async def _next(self, timeout_s: float | None) -> pb.OutputFrame | None:
        message = await self._read(timeout_s)
        if message is None:
            return None
        frame = self._parse(message)
        self._judge(check_frame(frame, self._outputs))
        return frame

    def _shown(self, one: pb.OutputFrame) -> str:
        return shown_frame(one)

    def _broken_by(self, code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
        return check_detail(code, detail)

    def _parse(self, message: bytes) -> pb.OutputFrame:
        try:
            signal = pb.OutputSignal.FromString(message)
        except DecodeError as error:
            raise self.failure(f"the bytes {preview(message)}: {error}", "an OutputSignal") from None
        if signal.WhichOneof("frame") != "data":
            raise self.failure("an OutputSignal without data", "an OutputSignal with data")
        return signal.data


def _short(values: Sequence[Any]) -> str:
    text = repr(values)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(values)} values)"
