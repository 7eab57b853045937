"""Random sessions: nodes are shared, split and shuffled, and the outputs are compared with a model. Catalogue 4."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from invoker._pb.evergreen import evergreen_pb2 as pb
from invoker_conformance.evergreen.actions import items, replay
from invoker_conformance.evergreen.frames import TEXT, A, F, K, Part
from invoker_conformance.evergreen.stage import Stage
from invoker_conformance.scenario import scenario

_SESSIONS = 60
_MOST_LEAVES = 200


class _Draft:
    """One random session: its parts, and the expected values of its outputs.

    Args:
        dice: Makes every random choice.
    """

    def __init__(self, dice: random.Random) -> None:
        self.parts: list[Part] = []
        self.expected: dict[str, Any] = {}
        self._dice = dice
        self._leaves: dict[str, list[str]] = {}
        for n in range(dice.randint(1, 8)):
            self._add_leaf(f"l{n}", "".join(dice.choices("abc日ü🙂 ", k=dice.randint(0, 12))))
        for n in range(dice.randint(1, 14)):
            self._add_root(f"k{n}") if dice.random() < 0.5 else self._add_action(f"r{n}")
        fragments = [part for part in self.parts if isinstance(part, pb.NodeFragment)]
        self.parts += dice.sample(fragments, len(fragments) // 3)
        dice.shuffle(self.parts)

    def _add_leaf(self, id_: str, text: str) -> None:
        data = text.encode()
        self._split(id_, len(data), lambda seq, a, b, mark: F(id_, seq, mark, m=None if seq else TEXT, d=data[a:b]))
        self._leaves[id_] = [text]

    def _add_root(self, id_: str) -> None:
        children = [self._pick() for _ in range(self._dice.randint(1, 4))]
        leaves = [leaf for child in children for leaf in self._leaves[child]]
        if len(leaves) <= _MOST_LEAVES:
            self._split(id_, len(children), lambda seq, a, b, mark: K(id_, *children[a:b], seq=seq, mark=mark))
            self._leaves[id_] = leaves

    def _add_action(self, out: str) -> None:
        node, other = self._pick(), self._pick()
        leaves, text = self._leaves[node], "".join(self._leaves[node])
        match self._dice.randrange(4):
            case 0:
                self.parts.append(items(node, out))
                self.expected[out] = [{"items": leaves}]
                return
            case 1:
                self.parts.append(A("both", {"left": node, "right": other}, {"out": out}))
                self.expected[out] = [{"left": leaves, "right": self._leaves[other]}]
                return
            case 2:
                self.parts.append(A("pieces", {"text": node}, {"out": out}))
            case _:
                self.parts.append(replay(node, out))
        self.expected[out] = text
        if leaves:  # an output without leaves is not used by later actions
            self._leaves[out] = [text]

    def _pick(self) -> str:
        return self._dice.choice(list(self._leaves))

    def _split(self, id_: str, size: int, make: Callable[[int, int, int, str], pb.NodeFragment]) -> None:
        """Add a node of ``size`` bytes or children, in fragments of any size, maybe with a terminator."""
        places = sorted({0, size, *(self._dice.randint(0, size) for _ in range(self._dice.randint(0, 4)))})
        cuts = list(pairwise(places)) or [(0, 0)]
        has_terminator = self._dice.random() < 0.3
        for seq, (a, b) in enumerate(cuts):
            self.parts.append(make(seq, a, b, "+" if has_terminator or seq < len(cuts) - 1 else "."))
        if has_terminator:
            self.parts.append(F(id_, len(cuts)))


@scenario(
    "ET-82", "ET-83", "E-009", "E-018", "E-019", "E-040", "E-060", "E-062", "E-063", "E-068", "E-079", "E-082", "E-089",
    function=("items", "both", "pieces", "replay"),
)  # fmt: skip
async def random_sessions(stage: Stage) -> None:
    """Sixty sessions of shared and nested nodes and actions that feed each other, in any order, give valid outputs."""
    for seed in range(_SESSIONS):
        dice = random.Random(seed)
        draft = _Draft(dice)
        async with stage.session() as session:
            while draft.parts:
                count = dice.randint(1, 5)
                await session.together(*draft.parts[:count])
                del draft.parts[:count]
            await session.succeeds()
            for root, expected in draft.expected.items():
                met: Any = session.read(root)
                if isinstance(expected, str):
                    met = "".join(met)
                if met != expected:
                    raise session.failure(f"{met!r:.300} in {root!r} (session {seed})", f"{expected!r:.300}")
