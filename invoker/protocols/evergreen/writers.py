"""`Writer`: writes the values of one output as a node.

======== ============================================ =====================================================
form     of                                           on the wire
======== ============================================ =====================================================
ONE      one value                                    one leaf, ended by its last fragment
LEAF     a stream of text or of bytes                 one leaf; a fragment for each value, and one for the end
ITEMS    a stream of other values, or of items        an interior node; a child for each value, listed first
MAPPED   results of a function called for each leaf   ONE if the input's root is a leaf, else ITEMS
BY_VALUE values whose kind the spec does not show     LEAF if the first value is text or bytes, else ITEMS
======== ============================================ =====================================================

A function that takes its context may send values to an output for which it also returns a value (E-126). So if the form
is ONE, the first value is held back until the output ends, or until a second value comes, which changes the form to
BY_VALUE.

All values are also stored, since later actions may read them (E-107), unless the function has the option
``evergreen.Nodes(retain=False)``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import Any

from invoker.author.spec import FunctionSpec, ResultShape, StreamSpec, Style, Take
from invoker.core.steps import Send, Step
from invoker.errors import EncodeError
from invoker.errors.wording import quoted
from invoker.message import REFERENCE, Message
from invoker.protocols.evergreen.cursor import whole_characters
from invoker.protocols.evergreen.errors import incomplete
from invoker.protocols.evergreen.graph import Graph
from invoker.protocols.evergreen.nodes import LEAF, Node, Owner
from invoker.protocols.evergreen.options import nodes_of
from invoker.protocols.evergreen.wire import children_frame, is_utf8_text, leaf_frame, metadata_of, prefix_of

_PIECES: tuple[Any, ...] = (str, bytes, bytearray, memoryview)
_OPEN: tuple[Any, ...] = (Any, object)


class Form(enum.Enum):
    """How an output is written as a node; see the table above."""

    ONE = "one leaf"
    LEAF = "one leaf that grows"
    ITEMS = "an interior node with an item a value"
    MAPPED = "as the input is"
    BY_VALUE = "as the first value says"


def form_of(spec: FunctionSpec, output: StreamSpec, *, is_one: bool) -> Form:
    """The form of an output.

    Args:
        spec: The function.
        output: One of its outputs.
        is_one: Whether the function is of the request/reply style and will be called exactly once.
    """
    if nodes_of(spec).is_sequence(output.name):
        return Form.ITEMS
    if spec.takes_context and _is_only_sent(spec, output):
        return Form.BY_VALUE
    if spec.style is Style.REQUEST_REPLY:
        return Form.ONE if is_one else Form.MAPPED
    if spec.call.result is ResultShape.VALUE:
        return Form.ONE
    if output.type in _OPEN or output.take is Take.MESSAGE:
        return Form.BY_VALUE
    return Form.LEAF if output.type in _PIECES else Form.ITEMS


def _is_only_sent(spec: FunctionSpec, output: StreamSpec) -> bool:
    """Whether all values of this output are sent through the context, and none is returned."""
    if spec.call.result is ResultShape.NOTHING:
        return True
    is_further = len(spec.outputs) > 1 and output.name != spec.outputs[0].name
    return is_further and spec.call.result is ResultShape.VALUE and not spec.call.parts


class Writer:
    """One listed output of one action.

    Args:
        action: The action that writes it.
        node: The node of the output.
        form: The form of the node.
        root: The node of the function's only input, if the form is MAPPED.
        may_send: Whether an output of the form ONE may get several values, because the function can send through its
            context.
        retain: Whether later actions may read the node.
        graph: The graph in which it is stored.
    """

    __slots__ = ("_form", "_graph", "_held", "_may_send", "_metadata", "_prefix", "_retain", "_root", "_seq", "action",
                 "is_ended", "node")  # fmt: skip

    def __init__(
        self,
        action: Owner,
        node: Node,
        form: Form,
        graph: Graph,
        *,
        retain: bool = True,
        root: Node | None = None,
        may_send: bool = False,
    ) -> None:
        self.action = action
        self.node = node
        self.is_ended = False
        self._form = form
        self._graph = graph
        self._retain = retain
        self._root = root
        self._may_send = may_send
        self._held: Message[bytes] | None = None
        self._prefix = prefix_of(node.id)
        self._seq = 0
        self._metadata: tuple[str, Mapping[str, str]] | None = None
        if not retain:
            node.fault = incomplete(f"node {quoted(node.id)} is an output of {action.where}, which does not retain it")
            graph.wake(node)

    def write(self, message: Message[bytes], steps: list[Step]) -> None:
        """Write one more value.

        Raises:
            EncodeError: The message does not fit to the earlier ones.
            EvergreenError: The session would exceed its limit of bytes.
        """
        if self.is_ended:
            return
        if self._form is Form.BY_VALUE:
            self._form = _form_by(message)
        elif self._form is Form.MAPPED:
            is_leaf = self._root is not None and self._root.kind == LEAF
            self._form = Form.ONE if is_leaf else Form.ITEMS
        if self._form is Form.ONE and self._may_send:
            if self._held is None:
                _metadata(message)  # raises an error of this value now, and not only when another value comes
                self._held = message
                return
            first, self._held = self._held, None
            self._form = _form_by(first) if first.media_type == message.media_type else Form.ITEMS
            self._put(first, steps)
        self._put(message, steps)

    def _put(self, message: Message[bytes], steps: list[Step]) -> None:
        if self._form is Form.LEAF:
            self._piece(message, steps)
        elif self._form is Form.ITEMS:
            self._item(message, steps)
        else:
            self._leaf(self.node, self._prefix, message, _metadata(message), steps)
            self.is_ended = True

    def end(self, steps: list[Step]) -> None:
        """End the output: no more values come."""
        if self.is_ended:
            return
        self.is_ended = True
        if self._held is not None:
            self._leaf(self.node, self._prefix, self._held, _metadata(self._held), steps)
            self._held = None
            return
        if self._metadata is not None:
            frame = leaf_frame(self._prefix, self._seq, b"", continued=False)
        else:
            frame = children_frame(self._prefix, self._seq, (), continued=False)
        steps.append(Send(frame))
        if self._retain:
            self._graph.end(self.node)

    def close(self) -> None:
        """Stop sending and storing values."""
        self.is_ended = True
        self._held = None

    # Shapes.

    def _piece(self, message: Message[bytes], steps: list[Step]) -> None:
        metadata = None
        if self._metadata is None:
            if REFERENCE in message.headers:
                text = "a reference cannot be a piece of a leaf; declare evergreen.Nodes(sequence=True)"
                raise EncodeError(f"{self._where()}: {text}")
            metadata = metadata_of(message.media_type, message.headers)
            self._metadata = (message.media_type, message.headers)
        else:
            self._check_piece(message)
        for part in self._parts(message):
            steps.append(Send(leaf_frame(self._prefix, self._seq, part, continued=True, metadata=metadata)))
            self._seq += 1
            metadata = None
            if self._retain:
                self._graph.grow(self.node, part, message.media_type, message.headers)

    def _check_piece(self, message: Message[bytes]) -> None:
        assert self._metadata is not None
        media_type, headers = self._metadata
        if message.media_type != media_type:
            raise EncodeError(
                f"{self._where()}: a value is {message.media_type}, but the leaf began as {media_type}; give values of "
                "one kind, or declare evergreen.Nodes(sequence=True)"
            )
        if message.headers and dict(message.headers) != dict(headers):
            raise EncodeError(
                f"{self._where()}: headers {dict(message.headers)} differ from those of its first value; a leaf has "
                "one role and name, so declare evergreen.Nodes(sequence=True)"
            )

    def _item(self, message: Message[bytes], steps: list[Step]) -> None:
        metadata = _metadata(message)  # an invalid header raises before anything is sent
        id = self._graph.new_id()
        steps.append(Send(children_frame(self._prefix, self._seq, (id,), continued=True)))
        self._seq += 1
        if not self._retain:
            self._leaf(None, prefix_of(id), message, metadata, steps)
            return
        child = self._graph.new(id)
        child.owner = self.action
        self._graph.adopt(self.node, child)
        self._leaf(child, prefix_of(id), message, metadata, steps)

    def _leaf(
        self, node: Node | None, prefix: bytes, message: Message[bytes], metadata: bytes, steps: list[Step]
    ) -> None:
        """Write a value as one whole leaf."""
        graph, headers, retain = self._graph, message.headers, self._retain and node is not None
        uri = headers.get(REFERENCE, "") if headers else ""
        if uri:
            steps.append(Send(leaf_frame(prefix, 0, b"", continued=False, metadata=metadata, ref=uri)))
            if retain:
                assert node is not None
                graph.refer(node, uri, message.media_type, headers)
            return
        parts = list(self._parts(message))
        for seq, part in enumerate(parts):
            is_last = seq == len(parts) - 1
            told = metadata if seq == 0 else None
            steps.append(Send(leaf_frame(prefix, seq, part, continued=not is_last, metadata=told)))
            if retain:
                assert node is not None
                graph.grow(node, part, message.media_type, headers, is_last=is_last)

    def _parts(self, message: Message[bytes]) -> Iterator[bytes]:
        """Cut a payload into fragments of the allowed size, text between characters.

        An empty payload gives one fragment.
        """
        payload, most = message.payload, self._graph.settings.fragment_bytes
        if len(payload) <= most:
            yield payload
            return
        is_text = is_utf8_text(message.media_type)
        start = 0
        while start < len(payload):
            part = payload[start : start + most]
            if is_text and start + most < len(payload):
                part = whole_characters(part)[0] or part
            yield part
            start += len(part)

    def _where(self) -> str:
        return f"{self.action.where}, output node {quoted(self.node.id)}"


def _metadata(message: Message[bytes]) -> bytes:
    uri = message.headers.get(REFERENCE, "")
    if not uri.isascii():
        raise EncodeError(f"the reference {uri!a} is not a URI; a URI is ASCII only")
    return metadata_of(message.media_type, message.headers)


def _form_by(message: Message[bytes]) -> Form:
    """Determine the form of an output from its first value.

    Text and plain bytes are appended to one leaf; a value with any other media type is an item of its own.
    """
    essence = message.media_type.partition(";")[0].strip()
    if essence in ("text/plain", "application/octet-stream") and REFERENCE not in message.headers:
        return Form.LEAF
    return Form.ITEMS
