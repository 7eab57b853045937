"""`Draft`: turns an action's values into nodes before anything is sent; if a value is invalid, nothing is sent."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.message import Message as ProtobufMessage
from google.protobuf.struct_pb2 import Struct

from invoker.codecs import Registry
from invoker.message import Message
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.media import Ref, encode, metadata_of
from invoker.protocols.evergreen.client.nodes import Node, Sender, TreeNode, children, new_id, payloads
from invoker.protocols.evergreen.wire import leaf_frame, prefix_of

Streamed = tuple[TreeNode, Iterable[object] | AsyncIterable[object]]
"""An interior node, and the iterator that yields its children."""


class Draft:
    """Collects the nodes that will be sent.

    Attributes:
        frames: The messages that can be sent at once, parents before their children.
        streams: The iterators whose items are sent as they come.
    """

    def __init__(self, session: Sender, registry: Registry) -> None:
        self._session = session
        self._registry = registry
        self.frames: list[bytes] = []
        self.streams: list[Streamed] = []

    def node(self, value: object, *, is_top: bool = True) -> Node:
        """Make the node for a value.

        A ``list`` or ``tuple`` that is itself an input (``is_top``) becomes an interior node with a child for each
        item. Within another value it becomes one JSON leaf, unless it holds a value that JSON cannot represent. An
        iterator, plain or async, becomes an interior node whose children are sent as they come.

        Raises:
            TypeError: The value cannot become a node.
            ValueError: The value is a node of another session, or has headers that cannot be sent.
            InvokerError: The value cannot be encoded.
        """
        if isinstance(value, Answer):
            value = value.output
        if isinstance(value, Node):
            if value.session is not self._session:
                raise ValueError(f"{value!r} belongs to another session, and nodes cannot be shared between sessions")
            return value
        if isinstance(value, Awaitable):
            raise TypeError(f"an input cannot be a {type(value).__name__}; await it first")
        if isinstance(value, AsyncIterable | Iterator):
            tree = TreeNode(self._session, self._made)
            self.streams.append((tree, value))
            return tree
        if isinstance(value, list | tuple) and (is_top or any(map(_is_no_json, value))):
            return self._tree(value)
        return self._leaf(value)

    def _made(self, value: object) -> tuple[Node, list[bytes]]:
        draft = Draft(self._session, self._registry)
        node = draft.node(value, is_top=False)
        if draft.streams:
            raise TypeError("an item of a sequence cannot be an iterator; write it into a node of its own")
        return node, draft.frames

    def tree(self) -> TreeNode:
        """Make an interior node that has no children yet."""
        return TreeNode(self._session, self._made)

    def _tree(self, values: Iterable[object]) -> Node:
        node = Node(self._session, new_id())
        place = len(self.frames)
        ids = [self.node(value, is_top=False).id for value in values]
        self.frames[place:place] = children(node.id, ids)
        return node

    def _leaf(self, value: object) -> Node:
        node = Node(self._session, new_id())
        prefix = prefix_of(node.id)
        if isinstance(value, Ref):
            metadata = metadata_of(value.media_type, value.headers).SerializeToString()
            self.frames.append(leaf_frame(prefix, 0, b"", continued=False, metadata=metadata, ref=value.uri))
            return node
        message = value if isinstance(value, Message) else Message(value)
        data, media_type = encode(message.payload, message.media_type, self._registry)
        metadata = metadata_of(media_type, message.headers).SerializeToString()
        for seq, payload in enumerate(pieces := list(payloads(data)) or [b""]):
            told, continued = None if seq else metadata, seq < len(pieces) - 1
            self.frames.append(leaf_frame(prefix, seq, payload, continued=continued, metadata=told))
        return node


def packed(configs: Iterable[object]) -> list[PackedAny]:
    """Pack configurations as ``Any``: protobuf messages directly, dicts as Struct. An ``Any`` is left unchanged.

    Raises:
        TypeError: A config is of another type.
        ValueError: A dict holds a value that JSON cannot represent.
    """
    found = []
    for config in configs:
        if isinstance(config, PackedAny):
            found.append(config)
            continue
        plain = _struct(config) if isinstance(config, Mapping) else config
        if not isinstance(plain, ProtobufMessage):
            raise TypeError(f"a config is a protobuf message or a dict, not {type(config).__name__}")
        made = PackedAny()
        made.Pack(plain)
        found.append(made)
    return found


def _struct(config: Mapping[str, Any]) -> Struct:
    struct = Struct()
    struct.update(dict(config))
    return struct


def _is_no_json(value: object) -> bool:
    return isinstance(value, Node | Answer | Ref | Message | bytes | bytearray | memoryview | AsyncIterable | Iterator)
