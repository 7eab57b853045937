"""What a seed decides before anything runs, for every world: functions, callers, limits, what goes wrong."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from invoker.core.streams import Limits
from tests.simulate.peer import Ending, Plan, Reads, draw_plan


@dataclass(frozen=True, slots=True)
class Scene:
    """The circumstances of some conversations.

    Attributes:
        seed: Of which all was drawn.
        limits: Of each invocation.
        is_tight: Whether a caller that sends quickly may meet the hard cap.
        slots: Invocations at once; 0: any number.
        is_full: All slots are taken from the beginning by somebody else.
        drains_at: When the process begins to drain, in ticks; None: never.
        cut_after: How long after that conversations are cut, in ticks.
        plans: The conversations.
    """

    seed: int
    limits: Limits
    is_tight: bool
    slots: int
    is_full: bool
    drains_at: int | None
    cut_after: int
    plans: list[Plan]

    def is_sure(self, plan: Plan) -> bool:
        """Whether a conversation must end in the same way in each world, when it is alone there."""
        is_calm = not self.is_tight and self.drains_at is None and not plan.is_racy
        return is_calm and plan.ending is Ending.HALF_CLOSE and plan.reads is Reads.ALWAYS and plan.deadline is None


def draw_scene(seed: int) -> Scene:
    """Draw everything."""
    random = Random(seed)
    high_frames, high_bytes = random.randrange(1, 7), random.choice((40, 200, 100_000))
    is_tight = random.random() < 0.2
    room = random.randrange(3) if is_tight else 1_000
    limits = Limits(high_frames, high_bytes, high_frames + room, high_bytes + (60 if is_tight else 100_000))
    slots = random.choice((0, 0, 0, 0, 1, 2))
    is_full = bool(slots) and random.random() < 0.1
    drains_at = random.randrange(10) if random.random() < 0.1 else None
    cut_after = random.randrange(1, 20)
    plans = [draw_plan(random, number) for number in range(random.randrange(1, 4))]
    return Scene(seed, limits, is_tight, slots, is_full, drains_at, cut_after, plans)
