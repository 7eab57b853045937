"""`Draft`: the nodes that an action's values become before anything is sent; an invalid value sends nothing."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Iterable, Iterator, Mapping
from typing import Any

from google.protobuf.any_pb2 import Any as PackedAny
from google.protobuf.message import Message as ProtobufMessage
from google.protobuf.struct_pb2 import Struct

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.codecs import Registry
from invoker.message import Message
from invoker.protocols.evergreen.client.answer import Answer
from invoker.protocols.evergreen.client.media import Ref, encode, metadata_of
from invoker.protocols.evergreen.client.nodes import Node, Sender, TreeNode, children, new_id, payloads

__all__ = ["Draft", "Streamed", "packed"]

Streamed = tuple[TreeNode, Iterable[object] | AsyncIterable[object]]
"""An interior node, and where its children come from."""


class Draft:
    """Collects the nodes that are about to be sent.

    Attributes:
        fragments: What can be sent at once, parents before their children.
        streams: What has to be sent as it comes.
    """

    def __init__(self, session: Sender, registry: Registry) -> None:
        self._session = session
        self._registry = registry
        self.fragments: list[pb.NodeFragment] = []
        self.streams: list[Streamed] = []

    def node(self, value: object, *, is_top: bool = True) -> Node:
        """The node that stands for a value.

        A ``list`` or ``tuple`` is a sequence of such values where an input stands (``is_top``); further down it is one
        JSON leaf, unless it holds what is no JSON. Iterators of either kind are sequences whose items are sent as they
        come.

        Raises:
            TypeError: No node can be made of it.
            ValueError: It is a node of another session, or headers that cannot travel.
            InvokerError: It cannot be encoded.
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

    def _made(self, value: object) -> tuple[Node, list[pb.NodeFragment]]:
        draft = Draft(self._session, self._registry)
        node = draft.node(value, is_top=False)
        if draft.streams:
            raise TypeError("an item of a sequence cannot be an iterator; write it into a node of its own")
        return node, draft.fragments

    def tree(self) -> TreeNode:
        """An interior node without children so far."""
        return TreeNode(self._session, self._made)

    def _tree(self, values: Iterable[object]) -> Node:
        node = Node(self._session, new_id())
        place = len(self.fragments)
        ids = [self.node(value, is_top=False).id for value in values]
        self.fragments[place:place] = children(node.id, ids)
        return node

    def _leaf(self, value: object) -> Node:
        node = Node(self._session, new_id())
        if isinstance(value, Ref):
            chunk = pb.Chunk(metadata=metadata_of(value.media_type, value.headers), ref=value.uri)
            self.fragments.append(pb.NodeFragment(id=node.id, chunk_fragment=chunk))
            return node
        if isinstance(value, Message):
            data, media_type = encode(value.payload, value.media_type, self._registry)
            metadata = metadata_of(media_type, value.headers)
        else:
            data, media_type = encode(value, "", self._registry)
            metadata = metadata_of(media_type, {})
        for seq, payload in enumerate(pieces := list(payloads(data)) or [b""]):
            chunk = pb.Chunk(data=payload) if seq else pb.Chunk(metadata=metadata, data=payload)
            is_last = seq == len(pieces) - 1
            self.fragments.append(pb.NodeFragment(id=node.id, seq=seq, continued=not is_last, chunk_fragment=chunk))
        return node


def packed(configs: Iterable[object]) -> list[PackedAny]:
    """Pack configurations: protobuf messages as they are, dicts as Struct; one that is packed stays so.

    Raises:
        TypeError: A config is something else.
        ValueError: A dict that holds what is no JSON.
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
