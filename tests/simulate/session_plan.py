"""What the client of a simulated session sends, and what must come of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from random import Random
from urllib.parse import quote

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker.protocols.evergreen.settings import EvergreenSettings
from tests.simulate.session_bodies import ACTIONS, Leaves

_MOST_LEAVES = 60


class Ending(Enum):
    """How the client ends."""

    HALF_CLOSE = "half-closes"
    CANCEL = "cancels"
    SILENCE = "waits for all outputs, and is gone"


@dataclass
class SessionPlan:
    """One session.

    Attributes:
        settings: Narrow ones.
        frames: In the order in which they are sent.
        outputs: Listed outputs, with what they must come to.
        ending: Of the client.
        is_faulty: Something will go wrong, so the session may end with an error.
        is_endless: Something never ends by itself.
        is_partial: Whether `partial-failures` is negotiated.
        room: Frames that may wait for the client.
        drains_at: Seconds after which the process drains.
    """

    settings: EvergreenSettings
    ending: Ending
    is_partial: bool
    room: int
    frames: list[bytes] = field(default_factory=list)
    outputs: dict[str, Leaves] = field(default_factory=dict)
    is_faulty: bool = False
    is_endless: bool = False
    drains_at: int | None = None


def draw_session(chance: Random) -> SessionPlan:
    """A session."""
    plan = SessionPlan(
        EvergreenSettings(
            window=chance.choice((1, 2, 3, 8)), actions_running=chance.choice((3, 4, 64)), fragment_bytes=20
        ),
        chance.choice((Ending.HALF_CLOSE,) * 6 + (Ending.CANCEL,) + (Ending.SILENCE,) * 3),
        is_partial=chance.random() < 0.3,
        room=chance.randrange(1, 5),
    )
    world = _World(chance, plan)
    for _ in range(chance.randrange(1, 12)):
        chance.choice((world.leaf, world.interior, world.action, world.action))()
    parts = world.parts
    chance.shuffle(parts)
    sent = [one for one in parts if isinstance(one, pb.NodeFragment)]
    if sent and chance.random() < 0.1:
        parts.remove(sent.pop())  # it never comes
        plan.is_faulty = True
    if sent:
        parts += chance.choices(sent, k=2)  # what comes twice counts once
    while parts:
        some = [parts.pop() for _ in range(min(len(parts), chance.randrange(1, 6)))]
        plan.frames.append(
            pb.SessionMessage(
                node_fragments=[one for one in some if isinstance(one, pb.NodeFragment)],
                actions=[one for one in some if isinstance(one, pb.Action)],
            ).SerializeToString()
        )
    if chance.random() < 0.05:
        plan.frames.insert(chance.randrange(len(plan.frames) + 1), b"\xff\xff")
        plan.is_faulty = True
    if chance.random() < 0.05:
        plan.drains_at = chance.randrange(5)
    return plan


class _World:
    """Nodes and actions, each made of earlier ones."""

    def __init__(self, chance: Random, plan: SessionPlan) -> None:
        self.parts: list[pb.NodeFragment | pb.Action] = []
        self._chance = chance
        self._plan = plan
        self._nodes: dict[str, Leaves] = {}

    def leaf(self) -> str:
        """A leaf of some pieces, one of which may be a reference."""
        chance, id = self._chance, f"n{len(self._nodes)}"
        pieces = ["".join(chance.choices("abcé日", k=chance.randrange(4))) for _ in range(chance.choice((1, 1, 2, 9)))]
        for seq, piece in enumerate(pieces):
            chunk = pb.Chunk(metadata=pb.ChunkMetadata(mimetype="text/plain") if seq == 0 else None)
            if chance.random() < 0.1:
                chunk.ref = f"http://x/{quote(piece)}"
            else:
                chunk.data = piece.encode()
            self.parts.append(pb.NodeFragment(id=id, seq=seq, continued=seq < len(pieces) - 1, chunk_fragment=chunk))
        self._nodes[id] = ["".join(pieces)]
        return id

    def interior(self) -> None:
        """A node of earlier ones, in one or two fragments."""
        chance, id = self._chance, f"n{len(self._nodes)}"
        children = [self._any() for _ in range(chance.randrange(4))]
        leaves = [leaf for child in children for leaf in self._nodes[child]]
        id = f"n{len(self._nodes)}"
        if len(leaves) > _MOST_LEAVES:
            return
        cut = chance.randrange(len(children) + 1)
        self.parts.append(pb.NodeFragment(id=id, child_ids=children[:cut], continued=True))
        self.parts.append(pb.NodeFragment(id=id, seq=1, child_ids=children[cut:]))
        self._nodes[id] = leaves

    def action(self) -> None:
        """An action that reads earlier nodes; its outputs are nodes."""
        chance = self._chance
        kind = chance.choice(ACTIONS if chance.random() < 0.1 else [one for one in ACTIONS if not one.is_faulty])
        inputs = [self._any() for _ in kind.inputs]
        read = [self._nodes[one] for one in inputs]
        if kind.is_strict and any(len(one) != 1 for one in read):
            return
        made = pb.Action(name=kind.name)
        for name, node in zip(kind.inputs, inputs, strict=True):
            made.inputs.add(name=name, id=node)
        for name, gives in kind.outputs.items():
            if chance.random() < 0.9:
                id = f"n{len(self._nodes)}"
                made.outputs.add(name=name, id=id)
                self._nodes[id] = self._plan.outputs[id] = gives(*read)
        self._plan.is_faulty |= kind.is_faulty
        self._plan.is_endless |= kind.is_endless
        self.parts.append(made)

    def _any(self) -> str:
        return self._chance.choice(list(self._nodes)) if self._nodes else self.leaf()
