"""Messages that a session must survive: broken ones, mad ones, and those that ask for too much."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from invoker._pb.evergreen import evergreen_pb2 as pb

EXTENSIONS = "drop, ttl, partial-failures, cancel, accept, discovery"

_IDS = (*"abcdefgh", "日\n", "", "i" * 1024, "j" * 5000)
_SEQS = (0, 0, 0, 0, 1, 1, 2, 3, 7, 2**31 - 1, -1)
_TYPES = (
    "text/plain",
    "text/plain",
    "application/json",
    "",
    "no type",
    "image/png",
    "application/x-protobuf; type=EndOfTurn",
)
_REFS = (
    "data:,abc",
    "data:;base64,YWJj",
    "data:;base64,!",
    "file:///etc/passwd",
    "http://127.0.0.1/",
    "x",
    "",
    "//a/b",
)
_INPUTS_OF: dict[str, tuple[str, ...]] = {
    "upper": ("text",), "add": ("a", "b"), "relay": ("x",), "items": ("x",), "both": ("x", "y"), "fails": ("x",),
    "endless": (), "dozes": ("x",), "ignores": ("x",), "__list_actions": (), "DROP": ("node",), "CANCEL": ("output",),
    "SET_TTL": ("node",),
}  # fmt: skip
_NAMES = (*_INPUTS_OF, "relay", "both", "upper", "nobody", "")
_NAMES_OF_INPUTS = ("x", "y", "a", "b", "text", "node", "output", "", "zzz")
_CONFIGS = ("", "google.protobuf.Struct", "type.googleapis.com/google.protobuf.Duration")
_OUTPUTS = ("out", "out", "out", "actions", "__status__", "", "zzz")


def attack(chance: Random) -> list[bytes]:
    """The messages of one session."""
    kinds: tuple[Callable[[Random], list[bytes]], ...] = (
        _random, _random, _random, _random, _garbage, _mutated, _mutated, _deep, _wide, _laughs, _cycle, _many, _crowd,
    )  # fmt: skip
    return chance.choice(kinds)(chance)


def _fragment(chance: Random, world: dict[str, tuple[bool, int]], mad: float) -> pb.NodeFragment:
    """One of a node, which is what it is in this session; but mad ones are anything."""
    is_mad = chance.random() < mad
    id = chance.choice(_IDS if is_mad else sorted(world))
    is_leaf, count = world.get(id, (True, 1))
    one = pb.NodeFragment(id=id, seq=chance.choice(_SEQS) if is_mad else chance.randrange(count))
    one.continued = one.seq < count - 1 if not is_mad else chance.random() < 0.4
    if not is_leaf or chance.random() < mad / 2:
        later = [*sorted(world)[sorted(world).index(id) + 1 :], "z"] if id in world and not is_mad else _IDS
        one.child_ids.extend(chance.choices(later, k=chance.randrange(4)))
    if is_leaf and chance.random() < 0.9:
        _fill(chance, one, mad)
    return one


def _fill(chance: Random, one: pb.NodeFragment, mad: float) -> None:
    chunk = one.chunk_fragment
    if one.seq == 0 or chance.random() < mad / 2:
        chunk.metadata.mimetype = chance.choice(_TYPES) if chance.random() < 2 * mad else "text/plain"
        if chance.random() < 0.2:
            chunk.metadata.role = chance.choice(("USER", "日", "x" * 3000))
        if chance.random() < 0.1:
            chunk.metadata.capture_time.seconds = chance.choice((0, -1, 2**62, 1_700_000_000))
    if chance.random() < mad:
        chunk.ref = chance.choice(_REFS)
    else:
        chunk.data = chance.randbytes(chance.randrange(8)) if chance.random() < mad else b"12"


def _action(chance: Random, mad: float) -> pb.Action:
    one = pb.Action(name=chance.choice(_NAMES if chance.random() < mad else _NAMES[:-2]))
    if one.name in _INPUTS_OF and chance.random() > mad:
        names: tuple[str, ...] = _INPUTS_OF[one.name]
        outputs = [chance.choice(("out", "out", "__status__"))] if one.name not in ("DROP", "CANCEL", "SET_TTL") else []
    else:
        names = tuple(chance.choices(_NAMES_OF_INPUTS, k=chance.randrange(3)))
        outputs = chance.choices(_OUTPUTS, k=chance.randrange(3))
    for name in names:
        one.inputs.add(name=name, id=chance.choice(_IDS[:9]) + chance.choice(("", "", "", "'")))
    for name in outputs:
        one.outputs.add(name=name, id=chance.choice(_IDS[:8]) + f"'{chance.choice(('', chance.randrange(99)))}")
    if chance.random() < 0.1:
        one.configs.add(type_url=chance.choice(_CONFIGS), value=chance.randbytes(chance.randrange(9)))
    if chance.random() < mad / 5:
        one.target_spec.id = "nowhere"
    return one


def _random(chance: Random) -> list[bytes]:
    world = {one: (chance.random() < 0.7, chance.randrange(1, 4)) for one in _IDS[:8]}
    mad = chance.choice((0, 0, 0.02, 0.1, 0.5))
    return [
        pb.SessionMessage(
            node_fragments=[_fragment(chance, world, mad) for _ in range(chance.randrange(6))],
            actions=[_action(chance, mad) for _ in range(chance.randrange(3) // 2)],
        ).SerializeToString()
        for _ in range(chance.randrange(1, 30))
    ]


def _garbage(chance: Random) -> list[bytes]:
    return [chance.randbytes(chance.randrange(200))]


def _mutated(chance: Random) -> list[bytes]:
    """Good to begin with; then bytes are changed, or the message is cut short."""
    found = _random(chance)
    for index, one in enumerate(found):
        if one and chance.random() < 0.3:
            changed = bytearray(one)
            for _ in range(chance.randrange(1, 4)):
                changed[chance.randrange(len(changed))] = chance.randrange(256)
            found[index] = bytes(changed[: chance.randrange(len(changed))] if chance.random() < 0.3 else changed)
    return found


def _node(id: str, *children: str) -> pb.NodeFragment:
    return pb.NodeFragment(id=id, child_ids=children)


def _text(id: str, data: bytes = b"x") -> pb.NodeFragment:
    one = pb.NodeFragment(id=id)
    one.chunk_fragment.metadata.mimetype = "text/plain"
    one.chunk_fragment.data = data
    return one


def _reads(root: str, name: str = "relay") -> pb.Action:
    one = pb.Action(name=name)
    one.inputs.add(name="x", id=root)
    one.outputs.add(name="out", id="answer")
    return one


def _shuffled(chance: Random, fragments: list[pb.NodeFragment], *actions: pb.Action) -> list[bytes]:
    """In several messages and any order; the actions come anywhere."""
    if chance.random() < 0.7:
        chance.shuffle(fragments)
    size = len(fragments) // chance.randrange(1, 5) + 1
    found = [
        pb.SessionMessage(node_fragments=fragments[at : at + size]).SerializeToString()
        for at in range(0, len(fragments), size)
    ]
    at = chance.randrange(len(found) + 1)
    return [*found[:at], pb.SessionMessage(actions=actions).SerializeToString(), *found[at:]]


def _deep(chance: Random) -> list[bytes]:
    depth = chance.choice((63, 64, 65, 1000, 20_000))
    chain = [_node(f"n{level}", f"n{level + 1}") for level in range(depth)]
    return _shuffled(chance, [*chain, _text(f"n{depth}")], _reads("n0"))


def _wide(chance: Random) -> list[bytes]:
    width = chance.choice((1000, 10_000, 50_000))
    leaves = [f"l{number % chance.choice((7, 10_000))}" for number in range(width)]
    return _shuffled(chance, [_node("root", *leaves), *map(_text, sorted(set(leaves))[:2000])], _reads("root"))


def _laughs(chance: Random) -> list[bytes]:
    levels = chance.choice((10, 40, 60))
    nodes = [_node(f"n{level}", f"n{level + 1}", f"n{level + 1}") for level in range(levels)]
    return _shuffled(chance, [*nodes, _text(f"n{levels}")], _reads("n0", chance.choice(("relay", "items"))))


def _cycle(chance: Random) -> list[bytes]:
    length = chance.choice((1, 2, 3, 500, 5000))
    return _shuffled(chance, [_node(f"n{at}", f"n{(at + 1) % length}") for at in range(length)], _reads("n0"))


def _many(chance: Random) -> list[bytes]:
    """Fragments of some bytes, of which most are ahead of a gap."""
    count = chance.choice((100, 5000))
    size = 1_000_000 // count
    fragments = [
        pb.NodeFragment(id="p", seq=seq, continued=True, chunk_fragment=pb.Chunk(data=b"x" * size))
        for seq in range(1, count)
    ]
    return _shuffled(chance, fragments, _reads("p"))


def _crowd(chance: Random) -> list[bytes]:
    """Actions that wait for each other, more than may run at once."""
    count = chance.choice((10, 100, 300, 1500))
    actions = []
    for number in range(count):
        one = pb.Action(name=chance.choice(("relay", "both")) if number % 3 else "relay")
        one.inputs.add(name="x", id=f"n{number}")
        if one.name == "both":
            one.inputs.add(name="y", id=f"n{chance.randrange(number + 1)}")
        one.outputs.add(name="out", id=f"n{number + 1}")
        actions.append(one)
    if chance.random() < 0.5:
        chance.shuffle(actions)
    return _shuffled(chance, [_text("n0")], *actions)
