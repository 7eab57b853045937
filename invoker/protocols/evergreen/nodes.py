"""`Node`: one node of a session, as far as it was received or produced.

Theory. Fragments of a node come in any order. The parts before the first gap form the *content*, in the order of seq:
pieces of a leaf, or children of an interior node. Parts after a gap wait in *ahead*. The node is *complete* once its
final seq is known and there is no gap. It is *known* once all nodes below it are complete, too; then the numbers of
leaves and bytes below it, and its depth, are known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from invoker.core.steps import Step
from invoker.errors import InvocationError
from invoker.message import EMPTY

UNDECIDED, LEAF, INTERIOR = 0, 1, 2
"""Kinds of nodes; one that has neither bytes nor children yet is undecided."""

MOST = 1 << 60
"""Sums over shared nodes do not grow beyond this value."""


class Owner(Protocol):
    """The part of an action that inputs, outputs and nodes use; see `RunningAction`."""

    key: str
    where: str
    is_started: bool
    is_failing: bool


class Waiter(Protocol):
    """An input that waits for more of a node; see `Input`."""

    index: int
    is_ended: bool
    is_stalled: bool

    @property
    def action(self) -> Owner:
        """The action to which the input belongs."""

    @property
    def awaited(self) -> Node | None:
        """The node that the input waits for; None: it does not wait."""

    def advance(self, steps: list[Step]) -> None:
        """Feed the leaves that have come, up to the window."""


class Reference:
    """A piece of a leaf that is stored elsewhere, and is fetched when it is read for the first time.

    Attributes:
        uri: The URI of the bytes.
        chunks: The bytes that have been fetched so far.
        is_asked: Whether fetching has begun.
        is_done: Whether the content is complete.
        error: The error of the fetch; None: it has not failed.
        node: The leaf to which the piece belongs.
    """

    __slots__ = ("chunks", "error", "is_asked", "is_done", "node", "uri")

    def __init__(self, uri: str, node: Node) -> None:
        self.uri = uri
        self.node = node
        self.chunks: list[bytes] = []
        self.is_asked = False
        self.is_done = False
        self.error: InvocationError | None = None


class Node:
    """A node of a session, with the fragments received so far.

    Attributes:
        id: The id as its producer chose it.
        kind: `UNDECIDED`, `LEAF` or `INTERIOR`.
        content: Pieces (bytes or `Reference`) or children, in order, as far as there is no gap.
        count: The lowest seq that is missing.
        top: The highest seq met; -1 for none.
        final: The seq that ends the node; -1 while unknown.
        ahead: The parts that came above a gap, by seq.
        media_type: The media type of a leaf.
        headers: The headers of a leaf: its other metadata.
        metadata: The metadata of a leaf, as it came; kept only if later metadata are compared with it.
        owner: The action whose output this is; None: the client sends it.
        fault: The error for readers of a node that cannot be read; None: it can be read.
        is_received: Whether a fragment of it came from the client.
        is_dropped: Whether it was dropped: its id cannot be used any more, and later fragments are ignored.
        is_known: Whether it and all nodes below it are complete, so that the next four attributes are valid.
        leaves: The number of leaves below it, itself included.
        solid: How many of these leaves are not markers of the end of a turn.
        size: The bytes of these leaves.
        height: The number of levels below it, itself included.
        order: Its place in an order in which parents come before children.
        parents: The nodes that have it as a child; a node that lists it twice occurs twice.
        pending: How many of its children are not yet known.
        sources: For an output: the input nodes of its action.
        sinks: The outputs of actions that read it.
        joined: The bytes of a leaf in one piece, while a reader still reads them piece by piece.
        readers: How many readers are reading it piece by piece.
        waiters: The inputs that wait for more of it.
        charged: How many of the session's held bytes it counts for.
    """

    __slots__ = (
        "ahead", "charged", "content", "count", "fault", "final", "headers", "height", "id", "is_dropped", "is_known",
        "is_received", "joined", "kind", "leaves", "media_type", "metadata", "order", "owner", "parents", "pending",
        "readers", "sinks", "size", "solid", "sources", "top", "waiters",
    )  # fmt: skip

    def __init__(self, id: str, order: int) -> None:
        self.id = id
        self.order = order
        self.kind = UNDECIDED
        self.content: list[Any] = []
        self.count = 0
        self.top = self.final = -1
        self.ahead: dict[int, Any] | None = None
        self.media_type = ""
        self.headers: Mapping[str, str] = EMPTY
        self.metadata: bytes | None = None
        self.owner: Owner | None = None
        self.fault: InvocationError | None = None
        self.is_received = self.is_dropped = self.is_known = False
        self.leaves = self.solid = self.size = self.height = 0
        self.parents: list[Node] | None = None
        self.pending = 0
        self.sources: list[Node] | None = None
        self.sinks: list[Node] | None = None
        self.joined: bytes | None = None
        self.readers = 0
        self.waiters: list[Waiter] | None = None
        self.charged = 0

    @property
    def is_complete(self) -> bool:
        """Whether all fragments of the node have come."""
        return 0 <= self.final < self.count

    @property
    def is_plain(self) -> bool:
        """Whether the node is an incomplete leaf of the client whose fragments have come in order so far."""
        return (
            self.kind == LEAF
            and self.count > 0
            and self.final < 0
            and self.ahead is None
            and self.owner is None
            and not self.is_dropped
        )

    def has(self, seq: int) -> bool:
        """Whether the fragment with this seq has come."""
        return seq < self.count or (self.ahead is not None and seq in self.ahead)

    def payload(self) -> bytes | None:
        """The bytes of a complete leaf; None while one of its references is not resolved."""
        if self.joined is not None and self.readers:
            return self.joined
        content = self.content
        if len(content) == 1 and type(content[0]) is bytes:
            return content[0]
        pieces: list[bytes] = []
        for piece in content:
            if type(piece) is bytes:
                pieces.append(piece)
            elif piece.is_done:
                pieces.extend(piece.chunks)
            else:
                return None
        if self.joined is None:
            self.joined = b"".join(pieces)
        joined = self.joined
        if not self.readers:
            self.content, self.joined = ([joined] if joined else []), None
        return joined

    def references(self) -> list[Reference]:
        """The references among the node's pieces, in their order."""
        return [piece for piece in self.content if type(piece) is Reference]

    def below(self) -> list[Node]:
        """The children, those after a gap included, and the sources of an output."""
        if self.kind != INTERIOR:
            return self.sources or []
        found: list[Node] = self.content
        if self.ahead:
            found = [*found, *(child for children in self.ahead.values() for child in children or ())]
        return [*found, *self.sources] if self.sources else found

    def above(self) -> list[Node]:
        """The parents, and the outputs that are made from this node."""
        return [*(self.parents or ()), *self.sinks] if self.sinks else self.parents or []
