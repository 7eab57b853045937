"""Makes fragments and actions as messages, and shows them in reports, in the notation of the catalogue.

``F("p", 0, ".", m=TEXT, t="hi")`` is a fragment of the leaf ``p`` with seq 0, metadata and text, which ends the leaf
(``+`` instead of ``.``: more fragments follow). ``K("p", "a", "b")`` is a fragment of an interior node with two
children. ``A("upper", {"text": "p"}, {"out": "r"})`` is an action.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from google.protobuf.any_pb2 import Any as AnyMessage
from google.protobuf.message import Message as ProtoMessage

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.riff import frames as riff
from invoker_conformance.texts import preview

JSON, OCTETS, TEXT = riff.JSON, riff.OCTETS, riff.TEXT
PATH = "/evergreen.v2.EvergreenService/StartSession"
EOT = "application/x-protobuf; type=EndOfTurn"
LONE = "."

Part: TypeAlias = pb.NodeFragment | pb.Action
Names: TypeAlias = Mapping[str, str] | Sequence[tuple[str, str]]


def F(  # noqa: N802  # the notation of the catalogue
    id_: str,
    seq: int = 0,
    mark: str = LONE,
    *,
    m: str | pb.ChunkMetadata | None = None,
    t: str | None = None,
    d: bytes | None = None,
    ref: str | None = None,
) -> pb.NodeFragment:
    """A fragment of a leaf; without metadata and payload it is a terminator.

    Args:
        id_: The id of the node.
        seq: The place in the node.
        mark: ``+``: more fragments follow; ``.``: this is the last one.
        m: The metadata, or only their mimetype; None: no metadata.
        t: The payload as text.
        d: The payload as bytes.
        ref: The payload as a reference.
    """
    fragment = pb.NodeFragment(id=id_, seq=seq, continued=mark == "+")
    data = t.encode() if t is not None else d
    if m is None and data is None and ref is None:
        return fragment
    chunk = pb.Chunk(ref=ref) if ref is not None else pb.Chunk() if data is None else pb.Chunk(data=data)
    if m is not None:
        chunk.metadata.CopyFrom(pb.ChunkMetadata(mimetype=m) if isinstance(m, str) else m)
    fragment.chunk_fragment.CopyFrom(chunk)
    return fragment


def cut(id_: str, pieces: Sequence[bytes], media_type: str = TEXT) -> list[Part]:
    """A leaf, with one fragment for each piece, in order."""
    last = len(pieces) - 1
    return [F(id_, n, LONE if n == last else "+", m=None if n else media_type, d=one) for n, one in enumerate(pieces)]


def bytewise(id_: str, data: bytes, media_type: str = TEXT) -> list[Part]:
    """A leaf, with one fragment for each byte."""
    return cut(id_, [bytes([byte]) for byte in data], media_type)


def K(id_: str, *children: str, seq: int = 0, mark: str = LONE) -> pb.NodeFragment:  # noqa: N802  # as above
    """A fragment of an interior node."""
    return pb.NodeFragment(id=id_, seq=seq, continued=mark == "+", child_ids=children)


def A(  # noqa: N802  # as above
    name: str,
    inputs: Names = (),
    outputs: Names = (),
    *,
    configs: Iterable[ProtoMessage] = (),
    target: str | None = None,
) -> pb.Action:
    """An action; its names and ids are a mapping, or pairs if a name comes twice."""
    action = pb.Action(name=name, inputs=_named(inputs), outputs=_named(outputs))
    for config in configs:
        if isinstance(config, AnyMessage):
            action.configs.append(config)
        else:
            action.configs.add().Pack(config)
    if target is not None:
        action.target_spec.id = target
    return action


def _named(names: Names) -> list[pb.NamedParameter]:
    pairs = names.items() if isinstance(names, Mapping) else names
    return [pb.NamedParameter(name=name, id=id_) for name, id_ in pairs]


def tree(root: str, *leaves: pb.NodeFragment) -> list[Part]:
    """A root node with these leaves as its children; the root comes first."""
    return [K(root, *(leaf.id for leaf in leaves)), *leaves]


def texts(root: str, *values: str) -> list[Part]:
    """A root with a text leaf for each value."""
    return tree(root, *(F(f"{root}/{n}", m=TEXT, t=value) for n, value in enumerate(values)))


def jsons(root: str, *values: Any) -> list[Part]:
    """A root with a JSON leaf for each value."""
    return tree(root, *(F(f"{root}/{n}", m=JSON, t=json.dumps(value)) for n, value in enumerate(values)))


def message(*parts: Part) -> pb.SessionMessage:
    """One message with these fragments and actions."""
    return pb.SessionMessage(
        node_fragments=[part for part in parts if isinstance(part, pb.NodeFragment)],
        actions=[part for part in parts if isinstance(part, pb.Action)],
    )


def shown(part: Part) -> str:
    """A fragment or an action in the notation of the catalogue."""
    if isinstance(part, pb.Action):
        sides = [", ".join(f"{one.name}={one.id}" for one in side) for side in (part.inputs, part.outputs)]
        more = [f"{len(part.configs)} configs"] * bool(part.configs)
        more += [f"target {part.target_spec.id!r}"] * part.HasField("target_spec")
        return f"A({'; '.join([part.name, *sides, *more])})"
    head = f"{part.id}, {part.seq}, {'+' if part.continued else '.'}"
    if part.child_ids:
        names = ", ".join(part.child_ids[:6]) + (", ..." if len(part.child_ids) > 6 else "")
        head += f", K[{names}]"
    if part.HasField("chunk_fragment"):
        head += _shown_chunk(part.chunk_fragment)
    return f"F({head})"


def _shown_chunk(chunk: pb.Chunk) -> str:
    text = f", m {chunk.metadata.mimetype!r}" if chunk.HasField("metadata") else ""
    case = chunk.WhichOneof("payload")
    if case == "ref":
        return f"{text}, ref {preview(chunk.ref.encode())}"
    return f"{text}, {preview(chunk.data)}" if case == "data" else f"{text}, no payload"


def described(parts: pb.SessionMessage) -> str:
    """A whole message in the notation of the catalogue."""
    every = [shown(part) for part in parts.actions] + [shown(part) for part in parts.node_fragments]
    if not every:
        return "{}"
    more = f", ... {len(every) - 6} more" if len(every) > 6 else ""
    text = ", ".join(every[:6]) + more
    return text if len(every) == 1 else f"{{{text}}}"
