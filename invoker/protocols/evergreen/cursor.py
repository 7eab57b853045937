"""`Cursor`: reads the leaves below one root, depth first and from left to right, as far as they have come.

It never recurses and never makes a list of the leaves, since a few shared nodes can stand for an exponential number of
leaves (E-066). The sums of a *known* node show at once that a limit will be exceeded.
"""

from __future__ import annotations

from typing import Final

from invoker.errors.wording import quoted
from invoker.protocols.evergreen.errors import limit
from invoker.protocols.evergreen.nodes import INTERIOR, LEAF, Node, Reference
from invoker.protocols.evergreen.settings import EvergreenSettings
from invoker.protocols.evergreen.wire import is_marker, is_utf8_text

Found = tuple[Node, bytes]
"""A leaf, with all its bytes or a piece of them."""

WAIT: Final = "wait"
"""The cursor has to wait, for `Cursor.awaited` or `Cursor.asked`."""

END: Final = "end"
"""Everything was read."""

_BOM = b"\xef\xbb\xbf"


class Cursor:
    """Reads the leaves below one root.

    Args:
        root: The node to read.
        settings: Limits.
        pieces: ``"bytes"``: leaves are read piece by piece; ``"text"``: likewise, if they are text in UTF-8; empty:
            each leaf is read as a whole.
        markers: Whether markers of the end of a turn are returned, too.

    Attributes:
        root: The node to read.
        awaited: The node for which the cursor has to wait after `next` returned `WAIT`.
        asked: The reference for which the cursor has to wait; None: it waits for a fragment.
    """

    __slots__ = (
        "_bytes", "_given", "_inner", "_is_reading", "_is_sure", "_leaves", "_markers", "_nodes", "_pieces", "_places",
        "_settings", "_tail", "asked", "awaited", "root",
    )  # fmt: skip

    def __init__(self, root: Node, settings: EvergreenSettings, *, pieces: str = "", markers: bool = False) -> None:
        self.root = root
        self.awaited: Node | None = None
        self.asked: Reference | None = None
        self._settings = settings
        self._pieces = pieces
        self._markers = markers
        self._nodes = [root]
        self._places = [-1]  # the position in each node of the path; -1 for a leaf that has not begun
        self._leaves = self._bytes = self._inner = 0
        self._tail = b""
        self._given = self._is_reading = self._is_sure = False

    def next(self) -> Found | str:
        """The next leaf or piece, `WAIT` or `END`.

        Raises:
            EvergreenError: A limit is exceeded, or a node on the path cannot be read.
        """
        self.awaited = self.asked = None
        if not self._is_sure and self.root.is_known:
            self._is_sure = True
            self._check(self.root.leaves, self.root.size)
            self._check_depth(self.root.height, self.root)
        nodes, places = self._nodes, self._places
        while nodes:
            node = nodes[-1]
            if node.fault is not None:
                raise node.fault
            if self._is_reading:
                found = self._piece(node)
                if found is not None:
                    return found
                continue
            if places[-1] == -1:
                self._enter(node)
                places[-1] = 0
            if node.kind == INTERIOR:
                place = places[-1]
                if place < len(node.content):
                    places[-1] = place + 1
                    self._descend(node.content[place])
                    continue
            elif node.kind == LEAF:
                found = self._leaf(node)
                if found is not None:
                    return found
                continue
            if not node.is_complete:
                return self._wait(node)
            self._leave()
        return END

    @property
    def is_closed(self) -> bool:
        """Whether reading has ended."""
        return not self._nodes

    def close(self) -> None:
        """Stop reading, and release the pieces that a leaf keeps for this cursor."""
        if self._nodes and self._is_reading:
            self._nodes[-1].readers -= 1
        self._nodes.clear()

    def _enter(self, node: Node) -> None:
        """Enter a node; limits are checked ahead, as far as sums are known."""
        self._check_depth(len(self._nodes) - 1 + (node.height if node.is_known else 1), node)
        if node.is_known:
            self._check(self._leaves + node.leaves, self._bytes + node.size)

    def _check_depth(self, depth: int, node: Node) -> None:
        most = self._settings.depth
        if depth > most:
            raise limit(f"node {quoted(self.root.id)} is nested deeper than {most} levels, at {quoted(node.id)}")

    def _check(self, leaves: int, size: int) -> None:
        settings = self._settings
        if leaves > settings.leaves:
            raise limit(
                f"node {quoted(self.root.id)} exceeds the limit of {settings.leaves} leaves when it is flattened"
            )
        if size > settings.session_bytes:
            raise limit(
                f"node {quoted(self.root.id)} exceeds the limit of {settings.session_bytes} bytes when it is flattened"
            )

    def _descend(self, child: Node) -> None:
        if child.is_known and child.fault is None and not (child.leaves if self._markers else child.solid):
            # The node has no leaves that count against the limits, so it may be shared any number of times.
            self._check_depth(len(self._nodes) + child.height, child)
            self._leaves += child.leaves
            self._check(self._leaves, self._bytes)
            return
        self._nodes.append(child)
        self._places.append(-1)

    def _leave(self) -> None:
        self._nodes.pop()
        self._places.pop()

    def _wait(self, node: Node, reference: Reference | None = None) -> str:
        self.awaited, self.asked = node, reference
        return WAIT

    # Leaves.

    def _leaf(self, node: Node) -> Found | str | None:
        """The next piece of the leaf, or the whole leaf; None when the whole leaf was read."""
        if not node.count:
            return self._wait(node)  # the first fragment, which has the media type, has not come yet
        if not self._markers and is_marker(node.media_type):
            if not node.is_complete:
                return self._wait(node)
            self._leaves += 1
            self._check(self._leaves, self._bytes)
            self._leave()
            return None
        if self._pieces and (self._pieces == "bytes" or is_utf8_text(node.media_type)):
            return self._piece(node)
        if not node.is_complete:
            return self._wait(node)
        payload = node.payload()
        if payload is None:
            return self._wait(node, self._missing(node))
        self._leaves += 1
        self._bytes += len(payload)
        self._check(self._leaves, self._bytes)
        self._leave()
        return node, payload

    def _missing(self, node: Node) -> Reference:
        for reference in node.references():
            if reference.error is not None:
                raise reference.error
        return next(one for one in node.references() if not one.is_done)

    def _piece(self, node: Node) -> Found | str | None:
        if not self._is_reading:
            self._is_reading = True
            node.readers += 1  # while a reader reads piece by piece, the node does not join its pieces
        places, content = self._places, node.content
        while (place := places[-1]) < len(content):
            piece = content[place]
            if type(piece) is bytes:
                places[-1] = place + 1
            else:
                assert type(piece) is Reference
                if self._inner >= len(piece.chunks):
                    if piece.error is not None:
                        raise piece.error
                    if not piece.is_done:
                        return self._wait(node, piece)
                    self._inner, places[-1] = 0, place + 1
                    continue
                piece = piece.chunks[self._inner]
                self._inner += 1
            if (given := self._give(node, piece)) is not None:
                return given
        if not node.is_complete:
            return self._wait(node)
        return self._last(node)

    def _give(self, node: Node, data: bytes) -> Found | None:
        self._bytes += len(data)
        if self._bytes > self._settings.session_bytes:
            self._check(self._leaves, self._bytes)
        if self._pieces == "text" and (self._tail or not data or data[-1] >= 0x80):
            data, self._tail = whole_characters(self._tail + data)
        if not data:
            return None
        if self._given:
            # only a byte order mark at the start of a leaf is one, but decoders drop one from each message
            return node, (_BOM + data if self._pieces == "text" and data.startswith(_BOM) else data)
        self._begin()
        return node, data

    def _begin(self) -> None:
        self._given = True
        self._leaves += 1
        self._check(self._leaves, self._bytes)

    def _last(self, node: Node) -> Found | None:
        rest, given = self._tail, self._given
        node.readers -= 1
        if not given:
            self._begin()
        self._tail, self._given, self._is_reading = b"", False, False
        self._leave()
        return (node, rest) if rest or not given else None


def whole_characters(data: bytes) -> tuple[bytes, bytes]:
    """Cut UTF-8 before an incomplete last character; invalid bytes are left for the decoder to refuse."""
    size = len(data)
    if not size or data[-1] < 0x80:
        return data, b""
    for back in range(1, min(4, size + 1)):
        byte = data[-back]
        if byte >= 0xC0:
            wanted = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return (data, b"") if back >= wanted else (data[:-back], data[-back:])
        if byte < 0x80:
            break
    return data, b""
