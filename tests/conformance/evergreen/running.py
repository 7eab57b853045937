"""One action of the peer of `peer.py`: runs its function, and gives its values the shape of nodes."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from tests.conformance.evergreen.named import Named
from tests.conformance.evergreen.nodes import EOT, Leaf

if TYPE_CHECKING:
    from tests.conformance.evergreen.peer import Session

MIB = 1024 * 1024


class Running:
    """One action."""

    def __init__(self, session: Session, action: pb.Action, named: Named) -> None:
        self.session = session
        self.peer = session.peer
        self.nodes = session.nodes
        self.action = action
        self.named = named
        self.sent: dict[str, int] = defaultdict(int)
        self.kept: dict[str, list[Any]] = defaultdict(list)

    async def values(self, leaves: AsyncIterator[Leaf]) -> AsyncIterator[Any]:
        """Decoded leaves without the ends of turns."""
        async for leaf in leaves:
            if leaf.metadata.mimetype != EOT or self.peer.has("reads the end of a turn"):
                yield self.nodes.value(leaf)

    async def run(self) -> None:
        """Run the function and send what it gives."""
        if self.peer.has("waits for the half-close"):
            await self.nodes.until(lambda: self.session.is_half_closed, "")
        if self.peer.has("one action at a time"):
            async with self.peer.turn:
                await self._run()
        else:
            await self._run()

    async def _run(self) -> None:
        inputs: dict[str, Any] = {name: default for name, default in self.named.params.items() if name}
        inputs.update({each.name: self.nodes.leaves(each.id) for each in self.action.inputs})
        outputs = {each.name: each.id for each in self.action.outputs}
        if len(self.named.outputs) == 1:
            outputs = dict.fromkeys(self.named.outputs, next(iter(outputs.values()), ""))
        if self.peer.has("sends unlisted outputs"):
            outputs = {name: outputs.get(name, f"unlisted {name}") for name in self.named.outputs}
        async with aclosing(self.named.body(self, **inputs)) as values:
            async for given in values:
                name, value = given if isinstance(given, tuple) else (self.named.outputs[0], given)
                if id_ := outputs.get(name, ""):
                    await self._give(id_, value)
        for id_ in filter(None, outputs.values()):
            await self._end(id_)

    async def _give(self, id_: str, value: Any) -> None:
        if self.named.is_plain or self.peer.has("keeps streams until they end"):
            self.kept[id_].append(value)
        else:
            await self._item(id_, value)

    async def _end(self, id_: str) -> None:
        kept = self.kept[id_]
        if self.named.is_plain and len(kept) == 1:
            data, media_type = encoded(kept[0])
            await self._whole(id_, data, media_type)
            return
        for value in kept:
            await self._item(id_, value)
        if not self.peer.has("no terminator"):
            await self._send(id_, pb.NodeFragment(id=id_))

    async def _item(self, id_: str, value: Any) -> None:
        data, media_type = encoded(value)
        if media_type == "application/json":
            child = f"{id_}/{self.sent[id_]}/{id(self)}"
            parent = pb.NodeFragment(id=id_, continued=True, child_ids=[child])
            if self.peer.has("sends children before their parent"):
                await self._whole(child, data, media_type)
                await self._send(id_, parent)
            else:
                await self._send(id_, parent)
                await self._whole(child, data, media_type)
            return
        fragment = pb.NodeFragment(id=id_, continued=True, chunk_fragment=pb.Chunk(data=data))
        if not self.sent[id_] or self.peer.has("sends metadata everywhere"):
            fragment.chunk_fragment.metadata.mimetype = media_type
        await self._send(id_, fragment)

    async def _whole(self, id_: str, data: bytes, media_type: str) -> None:
        step = len(data) or 1 if self.peer.has("sends large fragments") else MIB - MIB % 3
        for begin in range(0, len(data) or 1, step):
            fragment = pb.NodeFragment(id=id_, continued=begin + step < len(data))
            fragment.chunk_fragment.data = data[begin : begin + step]
            if not begin:
                fragment.chunk_fragment.metadata.mimetype = media_type
            await self._send(id_, fragment)

    async def _send(self, id_: str, fragment: pb.NodeFragment) -> None:
        fragment.seq = self.sent[id_] + self.peer.has("counts from one")
        self.sent[id_] += 1
        await self.session.send(fragment)


def encoded(value: Any) -> tuple[bytes, str]:
    """A value as bytes, and their type."""
    if isinstance(value, str):
        return value.encode(), "text/plain"
    if isinstance(value, bytes):
        return value, "application/octet-stream"
    return json.dumps(value).encode(), "application/json"
