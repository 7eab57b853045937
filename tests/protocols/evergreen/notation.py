"""The notation of the scenarios in docs/reference/evergreen.md.

`F`, `K`, `A` and `M` write what a client sends; `Sent` reads what it gets, and refuses what E-103 forbids. See
`tests.protocols.evergreen.conversation` for who brings both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.errors import Status

TEXT, OCTETS, JSON = "text/plain", "application/octet-stream", "application/json"
END_OF_TURN = "application/x-protobuf; type=EndOfTurn"

PREFIXES = {
    "FRAG": (Status.INVALID_ARGUMENT, "Evergreen: Invalid Node Fragment: "),
    "GRAPH": (Status.INVALID_ARGUMENT, "Evergreen: Invalid Node Graph: "),
    "ACT": (Status.INVALID_ARGUMENT, "Evergreen: Invalid Action: "),
    "ANF": (Status.NOT_FOUND, "Evergreen: Action Not Found: "),
    "TNF": (Status.NOT_FOUND, "Evergreen: Target Not Found: "),
    "BAD": (Status.INVALID_ARGUMENT, "Evergreen: Bad Input: "),
    "MISS": (Status.FAILED_PRECONDITION, "Evergreen: Incomplete Input: "),
    "REFD": (Status.PERMISSION_DENIED, "Evergreen: Reference Refused: "),
    "REFX": (Status.NOT_FOUND, "Evergreen: Reference Failed: "),
    "FAIL": (Status.UNKNOWN, "Evergreen: Action Failed: "),
    "LIM": (Status.RESOURCE_EXHAUSTED, "Evergreen: Limit Exceeded: "),
}
"""Table 0.1: how the session ends."""


def F(
    id: str,
    seq: int = 0,
    data: str | bytes | None = None,
    *,
    type: str | None = "",
    ref: str | None = None,
    more: bool = False,
    **metadata: Any,
) -> pb.NodeFragment:
    """A fragment of a leaf; without data, ref, type or metadata one that only ends its node.

    Args:
        id: Of the node.
        seq: Of the fragment.
        data: Text or bytes.
        type: Media type; unless it is given, ``text/plain`` at seq 0 and no metadata elsewhere. None: no metadata.
        ref: A URI instead of data.
        more: Whether it is continued.
        metadata: Other fields of the metadata; ``mimetype=""`` for one that is empty.
    """
    made = pb.NodeFragment(id=id, seq=seq, continued=more)
    if data is None and ref is None and not type and not metadata:
        return made
    chunk = made.chunk_fragment
    chunk.SetInParent()
    if data is not None:
        chunk.data = data.encode() if isinstance(data, str) else data
    if ref is not None:
        chunk.ref = ref
    if type is None and not metadata:
        return made
    if type or metadata or seq == 0:
        chunk.metadata.CopyFrom(pb.ChunkMetadata(**{"mimetype": type or TEXT, **metadata}))
    return made


def K(id: str, seq: int = 0, *children: str, more: bool = False) -> pb.NodeFragment:
    """A fragment of an interior node."""
    return pb.NodeFragment(id=id, seq=seq, continued=more, child_ids=children)


def A(
    name: str,
    inputs: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    outputs: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    *,
    configs: Sequence[Any] = (),
    target: str | None = None,
) -> pb.Action:
    """An action: names of parameters with the ids of their nodes; pairs where a name shall come twice."""
    made = pb.Action(name=name)
    for given, field in ((inputs, made.inputs), (outputs, made.outputs)):
        for parameter, node in given.items() if isinstance(given, Mapping) else given:
            field.add(name=parameter, id=node)
    for config in configs:
        made.configs.add().Pack(config)
    if target is not None:
        made.target_spec.id = target
    return made


def M(*parts: pb.NodeFragment | pb.Action) -> bytes:
    """One message of the client, serialised."""
    made = pb.SessionMessage()
    for part in parts:
        (made.actions if isinstance(part, pb.Action) else made.node_fragments).append(part)  # type: ignore[arg-type]
    return made.SerializeToString()


@dataclass(frozen=True, slots=True)
class Leaf:
    """A leaf as the client sees it."""

    media_type: str
    data: bytes
    metadata: pb.ChunkMetadata
    ref: str = ""


class Sent:
    """What a session has sent, fragment by fragment; each is checked against E-103 and E-015."""

    def __init__(self) -> None:
        self.fragments: list[pb.NodeFragment] = []
        self._by_id: dict[str, list[pb.NodeFragment]] = {}
        self._named: set[str] = set()

    def take(self, frame: bytes) -> None:
        """Read one frame."""
        message = pb.SessionMessage.FromString(frame)
        assert not message.actions, "actions are never sent to a client"
        for fragment in message.node_fragments:
            self._check(fragment)
            self.fragments.append(fragment)
            self._named.update(fragment.child_ids)

    def _check(self, fragment: pb.NodeFragment) -> None:
        before = self._by_id.setdefault(fragment.id, [])
        assert fragment.seq == len(before), f"{fragment.id}: seq {fragment.seq} after {len(before)} fragments"
        assert not before or before[-1].continued, f"{fragment.id}: a fragment after the final one"
        is_chunk = fragment.HasField("chunk_fragment")
        assert not (is_chunk and fragment.child_ids), f"{fragment.id}: both kinds in one fragment"
        has_metadata = is_chunk and fragment.chunk_fragment.HasField("metadata")
        assert has_metadata == (is_chunk and fragment.seq == 0), f"{fragment.id}: metadata at seq {fragment.seq}"
        if has_metadata:
            assert "/" in fragment.chunk_fragment.metadata.mimetype
            assert "*" not in fragment.chunk_fragment.metadata.mimetype
        if before and is_chunk:
            assert before[0].HasField("chunk_fragment"), f"{fragment.id}: a chunk in an interior node"
        before.append(fragment)

    def of(self, id: str) -> list[pb.NodeFragment]:
        """The fragments of one node."""
        return self._by_id.get(id, [])

    @property
    def ids(self) -> list[str]:
        """Nodes in the order in which they were begun."""
        return list(self._by_id)

    def is_complete(self, id: str) -> bool:
        """Whether the node was ended."""
        return bool(self.of(id)) and not self.of(id)[-1].continued

    def flatten(self, id: str) -> list[Leaf]:
        """Leaves of a complete node, depth first and left to right."""
        found: list[Leaf] = []
        stack = [id]
        while stack:
            one = stack.pop()
            fragments = self.of(one)
            assert self.is_complete(one), f"{one} is not complete"
            chunks = [each.chunk_fragment for each in fragments if each.HasField("chunk_fragment")]
            stack.extend(reversed([child for each in fragments for child in each.child_ids]))
            if chunks:
                metadata = chunks[0].metadata
                data = b"".join(chunk.data for chunk in chunks)
                found.append(Leaf(metadata.mimetype, data, metadata, "".join(chunk.ref for chunk in chunks)))
        return found

    def texts(self, id: str) -> list[str]:
        """The leaves of a complete node as text."""
        return [leaf.data.decode() for leaf in self.flatten(id)]

    def shape(self, id: str) -> list[tuple[int, bytes | tuple[str, ...] | None, bool]]:
        """Each fragment of a node: seq, data or children or None, and whether it is continued."""
        return [
            (
                one.seq,
                one.chunk_fragment.data if one.HasField("chunk_fragment") else tuple(one.child_ids) or None,
                one.continued,
            )
            for one in self.of(id)
        ]
