"""`Session`: one session at the target; sends fragments, actions or any bytes, and checks each fragment that comes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

import grpc
import grpc.aio
from google.protobuf.message import DecodeError

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.frames import PATH, Part, described, message, shown
from invoker_conformance.evergreen.outputs import Broken, Outputs
from invoker_conformance.evergreen.rules import check_detail
from invoker_conformance.faults import Fault
from invoker_conformance.rawcall import Ending, RawCall
from invoker_conformance.texts import preview


class Session(RawCall[pb.NodeFragment]):
    """One Evergreen session with the target, and the fragments that it has sent so far."""

    path = PATH
    words = ("session", "message", "fragment", "HC")
    most_shown = 12

    def __init__(
        self,
        channel: grpc.aio.Channel,
        *,
        timeout_s: float,
        deadline_s: float | None = None,
        metadata: Sequence[tuple[str, str]] = (),
    ) -> None:
        super().__init__(channel, timeout_s=timeout_s, deadline_s=deadline_s, metadata=metadata)
        self._ready: deque[pb.NodeFragment] = deque()
        self._listed: list[str] = []
        self.outputs = Outputs()

    # --- sending

    async def send(self, *parts: Part) -> bool:
        """Send each part in a message of its own; returns False if the session has already ended."""
        return all([await self.together(part) for part in parts])

    async def together(self, *parts: Part) -> bool:
        """Send all parts in one message; returns False if the session has already ended."""
        whole = message(*parts)
        self.outputs.sent(whole)
        self._listed.extend(one.id for action in whole.actions for one in action.outputs)
        note = described(whole) if self._is_noted else ""
        return await self.raw(whole.SerializeToString(), note)

    async def all(self, *parts: Part) -> None:
        """Send each part in a message of its own, then half-close."""
        await self.send(*parts)
        await self.half_close()

    def unlist(self, root: str) -> None:
        """Do not expect that this output is complete at the end."""
        self._listed.remove(root)

    # --- receiving

    async def fragment(self, timeout_s: float | None = None) -> pb.NodeFragment:
        """Return the next fragment.

        Raises:
            Failure: The session ended, or no fragment came in time.
        """
        return await self._further(timeout_s)

    async def values(self, root: str, timeout_s: float | None = None) -> list[Any]:
        """Read until an output is complete, and return the values of its leaves."""
        while not self.outputs.has(root):
            await self.fragment(timeout_s)
        return self.read(root)

    async def begins(self, data: bytes) -> None:
        """Check that the next fragment has this payload."""
        if (met := (await self.fragment()).chunk_fragment.data) != data:
            raise self.failure(repr(met), repr(data))

    async def gives(self, root: str, *values: Any, timeout_s: float | None = None) -> None:
        """Check that an output becomes complete with these values, while the session continues."""
        if (met := await self.values(root, timeout_s)) != list(values):
            raise self.failure(f"{_short(met)} in {root!r}", _short(list(values)))

    def read(self, root: str) -> list[Any]:
        """The values of the leaves of an output, as far as they have come."""
        try:
            return self.outputs.values(root)
        except ValueError as error:
            raise self.failure(f"a payload in {root!r} that cannot be read: {error}", "what its type says") from None

    async def ends(self, timeout_s: float | None = None) -> Ending:
        """Read to the end of the session."""
        return (await self.rest(timeout_s))[1]

    async def succeeds(self, timeout_s: float | None = None, **expected: Any) -> None:
        """Half-close, and check that the session ends with OK, that each listed output is complete, and these values.

        Args:
            timeout_s: The limit of each wait, in seconds.
            expected: The values of the leaves, by output.
        """
        await self.half_close()
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
        """Check that the session ends with this fault, and that its detail mentions these texts."""
        ending = await self.ends(timeout_s)
        if not fault.matches(ending.code, ending.detail) or any(text not in ending.detail for text in mentions):
            expected = f"{fault}" + "".join(f", mentioning {text!r}" for text in mentions)
            raise self.failure(f"{self._all()}, then {ending}", expected)

    async def headers(self) -> dict[str, str]:
        """The initial metadata, which must come before the first fragment."""
        found = await self._initial_metadata()
        if found is None:
            raise self.failure("no initial metadata", "initial metadata at the start of the session (E-014)")
        return {name: str(value) for name, value in found}

    async def _next(self, timeout_s: float | None) -> pb.NodeFragment | None:
        while not self._ready:
            data = await self._read(timeout_s)
            if data is None:
                return None
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
            met = f"the bytes {preview(data)}: {error}"
            raise self.failure(met, "a SessionMessage") from None
        if whole.actions:
            raise self.failure(f"the action {shown(whole.actions[0])}", "no action from the server (E-015)")
        return whole.node_fragments

    def _shown(self, one: pb.NodeFragment) -> str:
        return shown(one)

    def _broken_by(self, code: grpc.StatusCode, detail: str) -> tuple[str, str] | None:
        return check_detail(code, detail)

    def _all(self, _: Sequence[pb.NodeFragment] = ()) -> str:
        told = ", ".join(f"{root}={_short(self.outputs.leaves(root))}" for root in self.outputs.ids[:5])
        return f"{self.outputs.fragments} fragments" + (f" [{told}]" if told else "")


def _short(values: Sequence[Any]) -> str:
    told = [preview(getattr(value, "data", value)) if _is_bytes(value) else repr(value) for value in values]
    text = f"[{', '.join(told)}]"
    return text if len(text) <= 200 else f"{text[:200]}... ({len(values)} leaves)"


def _is_bytes(value: Any) -> bool:
    return isinstance(getattr(value, "data", value), bytes)
