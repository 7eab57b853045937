"""The messages of the wire: `decode`, `encode`, and the structures of a message.

Source: docs/reference/action-engine-wire.md, "Layout".
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import msgspec

from invoker.protocols.evergreen.action_engine.box import (
    FALSE,
    NIL,
    TRUE,
    Box,
    WireError,
    boxed,
    listed,
    mapped,
    number,
    text,
)

BYTES = "application/octet-stream"

STATUS = "__status__"
"""The media type of a status, and the name of the output that reports how an action ended."""

DISPATCH = "__dispatch_status__"
"""The name of the output that reports whether an action was accepted."""

ABORT = "__abort__"
"""The node whose status ends the session."""


class Metadata(msgspec.Struct, frozen=True):
    """The metadata of a chunk; the time is in microseconds since 1970."""

    media_type: str = BYTES
    time_us: int | None = None
    attributes: dict[str, str] = {}


class Chunk(msgspec.Struct, frozen=True):
    """One item of a node, or a reference to content that is stored elsewhere."""

    data: bytes = b""
    ref: str = ""
    metadata: Metadata | None = None

    @property
    def media_type(self) -> str:
        """The media type of the chunk; empty if its metadata has none."""
        return self.metadata.media_type if self.metadata is not None else ""

    @property
    def is_null(self) -> bool:
        """Whether the chunk only ends a node and is not an item."""
        return not self.data and not self.ref and self.media_type in ("", BYTES)


END = Chunk(metadata=Metadata())
"""The null chunk that ends a node."""


class NodeRef(msgspec.Struct, frozen=True):
    """A reference to a span of another node."""

    id: str
    offset: int = 0
    length: int | None = None


class Fragment(msgspec.Struct, frozen=True):
    """One chunk with its place in a node; ``continued`` is false for the last one."""

    id: str
    content: Chunk | NodeRef
    seq: int | None = 0
    continued: bool = False

    @property
    def is_end(self) -> bool:
        """Whether the fragment only ends its node and is not an item."""
        return isinstance(self.content, Chunk) and self.content.is_null

    @property
    def is_last(self) -> bool:
        """Whether it is the last fragment of its node."""
        return not self.continued or self.is_end


class Action(msgspec.Struct, frozen=True):
    """A call of a function; each port is a pair of a name and the id of a node."""

    id: str
    name: str
    inputs: tuple[tuple[str, str], ...] = ()
    outputs: tuple[tuple[str, str], ...] = ()
    headers: dict[str, str] = {}


class WireMessage(msgspec.Struct, frozen=True):
    """One message of the connection; an empty one is a half-close."""

    fragments: Sequence[Fragment] = ()
    actions: Sequence[Action] = ()
    headers: dict[str, str] = {}


def decode(data: bytes) -> WireMessage:
    """Decode one message.

    Raises:
        WireError: The bytes are not a valid message.
    """
    outer = Box(data)
    box = outer.box()
    if not outer.is_empty:
        raise WireError("bytes follow the message")
    fragments = tuple(_fragment(one) for one in box.boxes())
    actions = tuple(_action(one) for one in box.boxes())
    headers = {} if box.is_empty else dict(box.pairs())  # peers before version 0.4 do not send this field
    return WireMessage(fragments, actions, headers)


def encode(
    fragments: Sequence[Fragment] = (), actions: Sequence[Action] = (), headers: dict[str, str] | None = None
) -> bytes:
    """Encode one message with fragments, actions and headers."""
    parts = (listed([_pack_fragment(one) for one in fragments]), listed([_pack_action(one) for one in actions]))
    return boxed(b"".join((*parts, mapped(headers or {}))))


def _fragment(box: Box) -> Fragment:
    kind = box.number()
    if kind not in (0, 1):
        raise WireError(f"a fragment is of kind {kind}; 0 (a chunk) or 1 (a reference to a node) was expected")
    content = _chunk(box.box()) if kind == 0 else _node_ref(box.box())
    continued = box.flag()
    return Fragment(box.text(), content, box.number_or_nil(), continued)


def _chunk(box: Box) -> Chunk:
    data = bytes(box.binary())
    ref = box.text()
    metadata = box.box_or_nil()
    return Chunk(data, ref, None if metadata is None else _metadata(metadata))


def _metadata(box: Box) -> Metadata:
    media_type = box.text()
    time = box.box_or_nil()
    return Metadata(media_type, None if time is None else time.number_or_nil(), dict(box.pairs()))


def _node_ref(box: Box) -> NodeRef:
    return NodeRef(box.text(), box.number(), box.number_or_nil())


def _action(box: Box) -> Action:
    id, name = box.text(), box.text()
    inputs = tuple((one.text(), one.text()) for one in box.boxes())
    outputs = tuple((one.text(), one.text()) for one in box.boxes())
    return Action(id, name, inputs, outputs, {} if box.is_empty else dict(box.pairs()))


def _pack_fragment(fragment: Fragment) -> bytes:
    content = fragment.content
    body = b"\x00" + _pack_chunk(content) if isinstance(content, Chunk) else b"\x01" + _pack_node_ref(content)
    return boxed(b"".join((body, TRUE if fragment.continued else FALSE, text(fragment.id), number(fragment.seq))))


def _pack_chunk(chunk: Chunk) -> bytes:
    return boxed(b"".join((boxed(chunk.data), text(chunk.ref), _pack_metadata(chunk.metadata))))


def _pack_metadata(metadata: Metadata | None) -> bytes:
    if metadata is None:
        return NIL
    if metadata.time_us is None and not metadata.attributes:
        return _plain_metadata(metadata.media_type)
    time = NIL if metadata.time_us is None else boxed(number(metadata.time_us))
    return boxed(b"".join((text(metadata.media_type), time, mapped(metadata.attributes))))


@functools.lru_cache(maxsize=256)
def _plain_metadata(media_type: str) -> bytes:
    """Encode metadata with only a media type, as most chunks have."""
    return boxed(text(media_type) + NIL + b"\x00")


def _pack_node_ref(ref: NodeRef) -> bytes:
    return boxed(text(ref.id) + number(ref.offset) + number(ref.length))


def _pack_action(action: Action) -> bytes:
    ports = [listed([boxed(text(one[0]) + text(one[1])) for one in some]) for some in (action.inputs, action.outputs)]
    return boxed(b"".join((text(action.id), text(action.name), *ports, mapped(action.headers))))


HALF_CLOSE = encode()
